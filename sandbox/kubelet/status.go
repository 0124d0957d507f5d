package kubelet

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// containerState is the state of the pod's only container for the pod's status: running, or waiting for a reason.
type containerState struct {
	since    metav1.Time
	ready    bool
	restarts int32
	waiting  string
	message  string
}

// tell writes the state into the pod's status if it has changed. It reports whether the API server has the state now.
func (w *worker) tell(ctx context.Context, state containerState) bool {
	if w.reported != nil && *w.reported == state {
		return true
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": w.pod.UID}, "status": w.status(state)})
	if err == nil {
		_, err = w.client.CoreV1().Pods(w.pod.Namespace).Patch(ctx, w.pod.Name, types.StrategicMergePatchType, patch,
			metav1.PatchOptions{FieldManager: "kubelet"}, "status")
	}
	if err != nil {
		if ctx.Err() == nil {
			w.complain("write status", err)
		}
		return false
	}
	w.reported = &state
	return true
}

func (w *worker) status(state containerState) corev1.PodStatus {
	now := metav1.Now()
	container := corev1.ContainerStatus{Name: w.container().Name, Image: w.container().Image, Ready: state.ready,
		Started: new(bool), RestartCount: state.restarts}
	if state.waiting != "" {
		container.State.Waiting = &corev1.ContainerStateWaiting{Reason: state.waiting, Message: state.message}
	} else {
		container.State.Running = &corev1.ContainerStateRunning{StartedAt: state.since}
		*container.Started = true
	}
	began := w.pod.CreationTimestamp
	ready := corev1.ConditionFalse
	if state.ready {
		ready = corev1.ConditionTrue
	}
	conditions := []corev1.PodCondition{
		{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionTrue, LastTransitionTime: began},
		{Type: corev1.PodInitialized, Status: corev1.ConditionTrue, LastTransitionTime: began},
		{Type: corev1.ContainersReady, Status: ready, LastTransitionTime: now},
		{Type: corev1.PodReady, Status: ready, LastTransitionTime: now},
	}
	// Until its first start, the pod of a container that waits for its image is Pending.
	phase := corev1.PodRunning
	if state.waiting != "" && state.restarts == 0 {
		phase = corev1.PodPending
	}
	address := podAddress(w.pod.UID)
	return corev1.PodStatus{
		Phase: phase, Conditions: conditions, ContainerStatuses: []corev1.ContainerStatus{container},
		StartTime: &began, PodIP: address, PodIPs: []corev1.PodIP{{IP: address}},
	}
}

// podAddress returns an address for display only; nothing listens there. The process itself listens on the loopback
// address, which an EndpointSlice may not contain.
func podAddress(uid types.UID) string {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(uid))
	n := sum.Sum32()
	return fmt.Sprintf("10.245.%d.%d", n>>8&0xff, 1+n%254)
}
