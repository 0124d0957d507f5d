package autoscaler

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// back restores Cluster Autoscaler's Deployment, waits for its pods and forgets the baseline. It does not touch a
// Deployment that Sawhorse has not changed.
func (r *run) back(ctx context.Context, all []unstructured.Unstructured, marked deployment) error {
	if marked.Unstructured != nil {
		return r.restore(ctx, marked)
	}
	before, err := r.recorded(ctx)
	if err != nil || before == nil {
		return err
	}
	if found := k8s.Find(all, before.Deployment); found != nil {
		live := deployment{found}
		made, err := r.made(ctx, live)
		switch {
		case err != nil:
			return err
		case !made:
			if err := r.arbiter().Withdraw(ctx, r.plan.Rack, contest(live)); err != nil {
				return err
			}
			return r.finish(ctx, live)
		}
		marked := live.copy() // again, so that restoring it may be interrupted
		k8s.SetAnnotation(marked.Unstructured, ownership.AnnotationAutoscaler, r.plan.Rack)
		return r.write(ctx, live, marked)
	}
	return r.Baselines.Forget(ctx, r.plan.Rack, outcome.BaselineAutoscaler)
}

// restore restores a Deployment that carries our annotation. The same write removes the annotation, so an interruption
// before the baseline is forgotten does no harm.
func (r *run) restore(ctx context.Context, live deployment) error {
	before, err := r.recorded(ctx)
	if err != nil {
		return err
	}
	if err := r.arbiter().Withdraw(ctx, r.plan.Rack, contest(live)); err != nil {
		return err
	}
	wanted := live.copy()
	k8s.SetAnnotation(wanted.Unstructured, ownership.AnnotationAutoscaler, "")
	k8s.SetAnnotation(wanted.Unstructured, ownership.AnnotationUnpinned, "")
	if before != nil && before.Deployment == live.key() {
		wanted.scale(before.Replicas)
		wanted.setLine(live.line().restored(before.line))
		wanted.setPin(before.Pin)
		return r.write(ctx, live, wanted)
	}
	if live.line().inShell() {
		return shell(live)
	}
	wanted.scale(1)
	wanted.setLine(live.line().retarget(r.plan.Autoscaler.FallbackArgs))
	wanted.setPin(nil)
	return r.write(ctx, live, wanted)
}

// patience is how long finish waits for pods that do not get ready. Kubernetes gives up on a new template only, and not on one that was
// scaled up again.
const patience = 5 * time.Minute

// finish waits for the restored Deployment's pods and forgets the baseline. Pods that do not get ready do not keep Karpenter from
// being turned off.
func (r *run) finish(ctx context.Context, live deployment) error {
	rollout, err := k8s.RolloutOf(live.Unstructured)
	if err != nil {
		return err
	}
	subject := k8s.Subject(live.Unstructured)
	available, since, _ := k8s.Condition(live.Unstructured, "Available")
	if !rollout.Done && (rollout.Stuck || available == "False" && r.Now().Sub(since) >= patience) {
		r.progress.Warn("karpenter_enabled", "%s is as it was before Karpenter, and its pods do not get ready: %s. "+
			"Look at the pods (kubectl describe): they failed before Karpenter too, or what they need has changed.", subject, rollout.Note)
	} else if !rollout.Done {
		return outcome.Wait(poll, "%s: %s", subject, rollout.Note)
	}
	return r.Baselines.Forget(ctx, r.plan.Rack, outcome.BaselineAutoscaler)
}

// recorded returns the baseline; nil if there is none.
func (r *run) recorded(ctx context.Context) (*baseline, error) {
	return outcome.Recorded[baseline](ctx, r.Baselines, r.plan.Rack, outcome.BaselineAutoscaler)
}
