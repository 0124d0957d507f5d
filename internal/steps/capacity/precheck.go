package capacity

import (
	"context"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/steps/refusals"
)

// precheck rejects turning Karpenter off if pods would have no capacity left or if the cluster has NodePools that are not
// ours. It changes nothing, but records that turning off may begin, so that a later call does not reject it halfway.
func (r *run) precheck(ctx context.Context) error {
	for _, begun := range []string{outcome.CheckpointOff, outcome.CheckpointRemoval} {
		if _, ok, err := r.Checkpoints.Get(ctx, r.plan.Rack, begun); err != nil || ok {
			return err
		}
	}
	if err := r.refuse(ctx); err != nil {
		return err
	}
	return r.Checkpoints.RecordOnce(ctx, r.plan.Rack, outcome.CheckpointOff, []byte("{}"))
}

// refuse returns a *outcome.Rejected with everything that prevents turning off and is not forced; nil if nothing does.
func (r *run) refuse(ctx context.Context) error {
	unmanaged, err := r.client.UnmanagedNodePools(ctx, r.plan.Rack)
	if err != nil {
		return err
	}
	left, err := r.left(ctx, unmanaged)
	if err != nil {
		return err
	}
	refused := &outcome.Rejected{}
	for _, err := range []error{
		refusals.UnmanagedNodePools(left, r.plan.Force.Has(events.ForceForeignPools), &r.progress), r.refuseWithoutCapacity(ctx, unmanaged),
	} {
		var rejected *outcome.Rejected
		switch {
		case errors.As(err, &rejected):
			refused.Problems = append(refused.Problems, rejected.Problems...)
		case err != nil:
			return err
		}
	}
	if len(refused.Problems) > 0 {
		return refused
	}
	return nil
}

// left returns those of the NodePools that Sawhorse did not make that nobody serves without the rack's controller. It is none where
// another Karpenter runs, with which turning on may have been refused.
func (r *run) left(ctx context.Context, unmanaged []string) ([]string, error) {
	if len(unmanaged) == 0 {
		return nil, nil
	}
	if served, err := r.client.ServedByAnother(ctx, r.plan.Rack); err != nil || served {
		return nil, err
	}
	return unmanaged, nil
}

func (r *run) refuseWithoutCapacity(ctx context.Context, unmanaged []string) error {
	if r.plan.Force.Has(events.ForceRoom) {
		return nil
	}
	leaving, err := leavingNodes(ctx, r.client, unmanaged)
	if err != nil || len(leaving) == 0 {
		return err
	}
	lack, err := r.lack(ctx, leaving)
	if err != nil || lack.missing.none() {
		return err
	}
	return lack.refuse()
}

// autoscaler returns the additional pods that Cluster Autoscaler has once it is restored. They need capacity too.
func (r *run) autoscaler(ctx context.Context) ([]displacedPod, error) {
	type baseline struct {
		Deployment string `json:"deployment"`
		Replicas   int32  `json:"replicas"`
	}
	before, err := outcome.Recorded[baseline](ctx, r.Baselines, r.plan.Rack, outcome.BaselineAutoscaler)
	if err != nil || before == nil {
		return nil, err
	}
	all, err := r.client.List(ctx, k8s.Deployment, "", "")
	if err != nil {
		return nil, err
	}
	found := k8s.Find(all, before.Deployment)
	if found == nil {
		return nil, nil
	}
	live, err := k8s.As[appsv1.Deployment](found)
	if err != nil {
		return nil, err
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: live.Namespace, Name: live.Name}, Spec: live.Spec.Template.Spec}
	var pods []displacedPod
	for n := ptr.Deref(live.Spec.Replicas, 1); n < before.Replicas; n++ {
		pods = append(pods, newDisplacedPod(pod))
	}
	return pods, nil
}

// back sets the size to which a group that was emptied will be restored.
func (r *run) back(ctx context.Context, g *group) error {
	asBuild := func(before, live plan.Scaling) plan.Scaling { return r.plan.Nodegroups.Back(g.name, before, live) }
	if err := r.restored(ctx, g, outcome.BaselineSize(g.name), asBuild); err != nil {
		return err
	}
	return r.restored(ctx, g, outcome.BaselineMigrated(g.name), plan.Restored)
}

func (r *run) restored(ctx context.Context, g *group, key string, to func(before, live plan.Scaling) plan.Scaling) error {
	record, err := outcome.Recorded[outcome.Emptied](ctx, r.Baselines, r.plan.Rack, key)
	if before := record.Before(g.created); err == nil && before != nil {
		g.size, g.back = to(*before, g.size), true
	}
	return err
}
