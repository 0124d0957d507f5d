package k8s

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Leader says when the pods of a controller last elected their leader, and when that leader was last alive. Both are the
// zero time if there is none.
type Leader struct {
	Acquired, Renewed time.Time
}

// LeaderOf reads the Lease by which the pods of a controller elect their leader.
func (c *Client) LeaderOf(ctx context.Context, namespace, name string) (Leader, error) {
	object, err := c.Get(ctx, Lease, namespace, name)
	if err != nil || object == nil {
		return Leader{}, err
	}
	var lease coordinationv1.Lease
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &lease); err != nil {
		return Leader{}, fmt.Errorf("%s: decode: %w", Subject(object), err)
	}
	var leader Leader
	if holder := lease.Spec.HolderIdentity; holder == nil || *holder == "" {
		return leader, nil // the last leader has stepped down
	}
	if lease.Spec.AcquireTime != nil {
		leader.Acquired = lease.Spec.AcquireTime.Time
	}
	if lease.Spec.RenewTime != nil {
		leader.Renewed = lease.Spec.RenewTime.Time
	}
	return leader, nil
}
