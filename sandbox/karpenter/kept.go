package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kept waits until the simulation has written the launched instances to its ConfigMaps, which it does once a second. EC2 keeps
// what it has launched. In the simulation, an instance that was launched just before the controller ends would be unknown
// to its successor, which then replaces the NodeClaim and its pods.
func (j judged) kept(ctx context.Context, out *ec2.CreateFleetOutput) error {
	var ids []string
	for _, launched := range out.Instances {
		ids = append(ids, launched.InstanceIds...)
	}
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		maps := &corev1.ConfigMapList{}
		if err := j.cluster.List(ctx, maps, client.InNamespace(os.Getenv("SYSTEM_NAMESPACE"))); err != nil {
			return false, nil // the API server is asked again
		}
		var written strings.Builder
		for _, one := range maps.Items {
			written.WriteString(one.Data["instances"])
		}
		for _, id := range ids {
			if !strings.Contains(written.String(), id) {
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("the simulation has not written instances %s: %w", strings.Join(ids, ", "), err)
	}
	return nil
}
