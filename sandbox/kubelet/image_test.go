package kubelet

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// A pod whose image does not exist is Pending, and says so as a kubelet does. It has no restarts.
func TestAPodWhoseImageCannotBePulledSaysWhy(t *testing.T) {
	for _, wanted := range []string{"example.com/karpenter/controller:9.9.9", "elsewhere.com/karpenter/controller:1.10.0", "gone:1.0.0"} {
		s := newScene(t, account(nil))
		s.scheduleImage(wanted)
		for _, reason := range []string{"ErrImagePull", "ImagePullBackOff", "ErrImagePull"} {
			s.await(reason, func() bool {
				pod := s.pod()
				if pod == nil || len(pod.Status.ContainerStatuses) != 1 {
					return false
				}
				c := pod.Status.ContainerStatuses[0]
				return pod.Status.Phase == corev1.PodPending && !c.Ready && c.RestartCount == 0 && c.State.Waiting != nil &&
					c.State.Waiting.Reason == reason && strings.Contains(c.State.Waiting.Message, wanted+": not found")
			})
		}
	}
}
