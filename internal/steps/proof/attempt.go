package proof

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// attempt is the record of a proof that is under way. Its end is reached when a record is deleted, or has no Start.
type attempt struct {
	// Generation is that of the pass that waits since Start. Another pass has the whole time again.
	Generation int64     `json:"generation"`
	Start      time.Time `json:"start"`
	// Requested are the pools that a pod was created for, also by earlier passes, whose node may still be there. A node of
	// these proves nothing without a pod that has a network on it.
	Requested []string `json:"asked,omitempty"`
}

// checkpoint names the record of an attempt.
const checkpoint = "proof"

// begin reads the record. There is none until the first pod is created.
func (r *run) begin(ctx context.Context) error {
	record, err := outcome.Recorded[attempt](ctx, r.Checkpoints, r.plan.Rack, checkpoint)
	if err != nil {
		return err
	}
	r.attempt = ptr.Deref(record, attempt{})
	if !r.attempt.Start.IsZero() && r.attempt.Generation == r.plan.Generation {
		return nil
	}
	r.attempt.Generation, r.attempt.Start = r.plan.Generation, r.Now().UTC()
	if record == nil {
		return nil
	}
	return r.save(ctx)
}

func (r *run) save(ctx context.Context) error {
	return outcome.Record(ctx, r.Checkpoints.Replace, r.plan.Rack, checkpoint, r.attempt)
}

// createPod creates the pod that requests a pool's node.
func (r *run) createPod(ctx context.Context, manifest plan.Object) error {
	if pool := nameOf(manifest); !slices.Contains(r.attempt.Requested, pool) {
		r.attempt.Requested = append(r.attempt.Requested, pool)
		if err := r.save(ctx); err != nil {
			return err
		}
	}
	subject, err := r.client.Create(ctx, manifest)
	if err == nil {
		r.progress.Changed(k8s.Created, "%s", subject)
	}
	return err
}

// giveUp ends an attempt that took too long, and fails with what was missing. The next pass begins another one.
func (r *run) giveUp(ctx context.Context, why string) error {
	r.attempt.Start = time.Time{}
	if err := r.save(ctx); err != nil {
		return err
	}
	if err := r.deleteAll(ctx); err != nil {
		return err
	}
	return fmt.Errorf("%s; that took longer than %s, and %s", why, r.Limit, outcome.NotHandedOver)
}

// end deletes the record and then the pods. Karpenter removes their nodes if nothing else runs there.
func (r *run) end(ctx context.Context) error {
	if err := outcome.ForgetIfRecorded(ctx, r.Checkpoints, r.plan.Rack, checkpoint); err != nil {
		return err
	}
	return r.deleteAll(ctx)
}

func (r *run) deleteAll(ctx context.Context) error {
	pods, err := r.pods(ctx)
	if err != nil {
		return err
	}
	for _, pod := range pods {
		if err := r.delete(ctx, pod); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) delete(ctx context.Context, pod *corev1.Pod) error {
	if pod.DeletionTimestamp != nil {
		return nil
	}
	err := r.client.Delete(ctx, k8s.Pod, pod)
	if err == nil {
		r.progress.Changed("deleted", "Pod/%s/%s", pod.Namespace, pod.Name)
	}
	return err
}
