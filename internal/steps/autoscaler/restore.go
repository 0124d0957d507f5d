package autoscaler

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/steps"
)

// restore puts the Cluster Autoscaler back as it was found. The mark on the Deployment tells whether that is still to be
// done: it goes in the same write as the change, so being stopped anywhere between that and forgetting the baseline does
// no harm, and a Deployment without the mark is as its owner wants it.
func (r *run) restore(ctx context.Context, live deployment) (steps.Progress, error) {
	kept, err := r.kept(ctx, live)
	if err != nil {
		return r.progress, err
	}
	if !live.marked(r.plan.Rack) {
		return r.finish(ctx, live, kept)
	}
	wanted := live.copy()
	wanted.unmark()
	if kept != nil {
		wanted.scale(kept.Replicas)
		wanted.setLine(live.line().restored(kept.line))
		wanted.setPin(kept.Pin)
		return r.write(ctx, live, wanted)
	}
	if live.line().inShell() {
		return r.progress, shell(live)
	}
	wanted.scale(1)
	wanted.setLine(live.line().retarget(r.plan.Autoscaler.FallbackArgs))
	wanted.setPin(nil)
	return r.write(ctx, live, wanted)
}

// finish waits for the pods of what was restored, and forgets the baseline. Pods that Kubernetes has given up on do not
// hold up turning Karpenter off.
func (r *run) finish(ctx context.Context, live deployment, kept *baseline) (steps.Progress, error) {
	if kept == nil {
		return r.progress, nil
	}
	rollout, err := k8s.RolloutOf(live.Unstructured)
	if err != nil {
		return r.progress, err
	}
	subject := k8s.Subject(live.Unstructured)
	if rollout.Stuck {
		r.progress.Warn("karpenter_enabled", "%s is as it was before Karpenter, and its pods do not get ready: %s.", subject, rollout.Note)
	} else if !rollout.Done {
		return r.progress.NotYet(poll, "%s: %s", subject, rollout.Note)
	}
	return r.progress, r.baselines.Forget(ctx, r.plan.Rack, baselineKey)
}

// kept is the Deployment's baseline; nil where there is none, or where it is another Deployment's.
func (r *run) kept(ctx context.Context, live deployment) (*baseline, error) {
	value, ok, err := r.baselines.Get(ctx, r.plan.Rack, baselineKey)
	if err != nil || !ok {
		return nil, err
	}
	var kept baseline
	if err := json.Unmarshal(value, &kept); err != nil {
		return nil, fmt.Errorf("%s: baseline: %w", k8s.Subject(live.Unstructured), err)
	}
	if kept.Deployment != live.key() {
		return nil, nil
	}
	return &kept, nil
}
