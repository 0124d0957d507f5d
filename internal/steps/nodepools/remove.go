package nodepools

import (
	"context"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/names"
	"github.com/sawhorse-io/sawhorse/internal/steps"
)

const (
	// annotationDeadline on a NodeClaim is the moment from which Karpenter no longer waits for PodDisruptionBudgets and
	// do-not-disrupt; RFC 3339.
	annotationDeadline = "karpenter.sh/nodeclaim-termination-timestamp"
	// grace is how long Karpenter has to end what is left after that, and to clean up after an EC2NodeClass.
	grace = 2 * time.Minute
)

// remove goes backwards: NodePools, then (Karpenter drains and ends them) their NodeClaims, then EC2NodeClasses, whose
// clean-up is Karpenter's too. Each waits for the one before, and what Karpenter has not done in time is done in its place.
// A cluster without the CRDs has none of them.
func (r *run) remove(ctx context.Context) (steps.Progress, error) {
	err := r.kept(ctx, steps.RemovalKey, &r.begun)
	if err != nil {
		return r.progress, err
	}
	if r.fleet, err = r.client.Fleet(ctx, r.plan.Rack, r.begun.Pools...); err != nil {
		return r.progress, err
	}
	claims, err := r.client.Claims(ctx, r.fleet)
	if err != nil {
		return r.progress, err
	}
	pools, classes := r.fleet.Pools, r.fleet.Classes
	if len(pools)+len(classes)+len(claims) == 0 {
		return r.finish(ctx)
	}
	if err := k8s.RefuseForeignNodePools(r.fleet.Foreign, r.plan.Force || r.begun.yes(), &r.progress); err != nil {
		return r.progress, err
	}
	if err := r.begin(ctx); err != nil {
		return r.progress, err
	}
	if err := r.delete(ctx, k8s.NodePool, pools); err != nil {
		return r.progress, err
	}
	if len(pools) > 0 { // one that was made just before the deletion counts too
		if claims, err = r.client.Claims(ctx, r.fleet); err != nil {
			return r.progress, err
		}
	}
	switch {
	case len(claims) > 0:
		return r.drain(ctx, claims)
	case len(pools) > 0:
		return r.progress.NotYet(poll, "%s: being deleted", k8s.Subject(&pools[0]))
	default:
		return r.retire(ctx)
	}
}

func (r *run) delete(ctx context.Context, kind k8s.Kind, objects []unstructured.Unstructured) error {
	for i := range objects {
		if objects[i].GetDeletionTimestamp() != nil {
			continue
		}
		if err := r.client.Delete(ctx, kind, &objects[i]); err != nil {
			return err
		}
		r.progress.Changed("deleted", "%s", k8s.Subject(&objects[i]))
	}
	return nil
}

// drain waits for the NodeClaims, as long as Karpenter has time for them.
func (r *run) drain(ctx context.Context, claims []unstructured.Unstructured) (steps.Progress, error) {
	if err := r.limit(ctx, claims); err != nil {
		return r.progress, err
	}
	if err := r.dismiss(ctx, claims); err != nil {
		return r.progress, err
	}
	end := r.begun.Start.Add(r.Drain)
	for i := range claims {
		if set, ok := deadlineOf(&claims[i]); ok && set.After(end) {
			end = set
		}
	}
	left := remaining(claims)
	deadline, later := end.UTC().Format(time.RFC3339), end.Add(grace).UTC().Format(time.RFC3339)
	switch now := r.Now(); {
	case now.Before(end):
		return r.progress.NotYet(poll, "%d NodeClaim(s) draining: %s, until %s; Karpenter ends them then, and at %s Sawhorse ends through EC2 "+
			"what is left", len(claims), left, deadline, later)
	case now.Before(end.Add(grace)):
		return r.progress.NotYet(poll, "%d NodeClaim(s): %s, for which the time to drain ended at %s: Karpenter ends them, and at %s Sawhorse "+
			"ends through EC2 what is left", len(claims), left, deadline, later)
	default:
		note, err := r.end(ctx, claims)
		if err != nil {
			return r.progress, err
		}
		return r.progress.NotYet(poll, "%s", note)
	}
}

// limit gives every NodeClaim the end of its drain window, once. An earlier one stays as it is, and does not count for the
// others: it may have passed already, and a deadline in the past is no grace at all. A later one, as from a pool with a
// long terminationGracePeriod, is brought forward.
func (r *run) limit(ctx context.Context, claims []unstructured.Unstructured) error {
	deadline := r.Now().Add(r.Drain).UTC().Truncate(time.Second)
	for i := range claims {
		if set, ok := deadlineOf(&claims[i]); ok && !set.After(deadline) {
			continue
		}
		text := deadline.Format(time.RFC3339)
		if err := r.client.Annotate(ctx, k8s.NodeClaim, &claims[i], annotationDeadline, text); err != nil {
			return err
		}
		annotations := claims[i].GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[annotationDeadline] = text
		claims[i].SetAnnotations(annotations)
		r.progress.Changed("draining until "+text, "%s", k8s.Subject(&claims[i]))
	}
	return nil
}

func deadlineOf(claim *unstructured.Unstructured) (time.Time, bool) {
	set, err := time.Parse(time.RFC3339, claim.GetAnnotations()[annotationDeadline])
	return set, err == nil
}

// dismiss deletes NodeClaims that nobody else does. Kubernetes deletes those of a NodePool once it has gone, but not one
// that has lost its reference to it, as out of a backup.
func (r *run) dismiss(ctx context.Context, claims []unstructured.Unstructured) error {
	going := map[string]bool{} // pools whose deletion is a call old at most
	for i := range r.fleet.Pools {
		going[r.fleet.Pools[i].GetName()] = r.fleet.Pools[i].GetDeletionTimestamp() == nil
	}
	for i := range claims {
		if going[claims[i].GetLabels()[names.LabelPool]] {
			continue
		}
		if err := r.delete(ctx, k8s.NodeClaim, claims[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

// remaining names some of the NodeClaims that are still there.
func remaining(claims []unstructured.Unstructured) string {
	var all []string
	for i := range claims {
		all = append(all, claims[i].GetName())
	}
	return some(all)
}

// some are the first few of a list.
func some(list []string) string {
	const most = 5
	if len(list) > most {
		return strings.Join(list[:most], ", ") + ", …"
	}
	return strings.Join(list, ", ")
}

// retire deletes the EC2NodeClasses, and takes the finalizer off one that Karpenter has not cleaned up after in time.
func (r *run) retire(ctx context.Context) (steps.Progress, error) {
	classes := r.fleet.Classes
	if err := r.delete(ctx, k8s.EC2NodeClass, classes); err != nil {
		return r.progress, err
	}
	for i := range classes {
		deleted := classes[i].GetDeletionTimestamp()
		if deleted == nil || r.Now().Before(latest(r.begun.Start.Add(r.Drain), deleted.Time).Add(grace)) {
			continue
		}
		if err := r.release(ctx, k8s.EC2NodeClass, classes[i:i+1], names.ClassFinalizer); err != nil {
			return r.progress, err
		}
	}
	return r.progress.NotYet(poll, "%s: being deleted, Karpenter cleans up its instance profile and launch templates", k8s.Subject(&classes[0]))
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// finish comes when nothing of ours is left in the cluster. Whether that is so in EC2, too, is looked at now: the
// controller, which would find out, goes next.
func (r *run) finish(ctx context.Context) (steps.Progress, error) {
	if err := k8s.RefuseForeignNodePools(r.fleet.Foreign, true, &r.progress); err != nil {
		return r.progress, err
	}
	note, err := r.end(ctx, nil)
	if err != nil {
		return r.progress, err
	}
	if note != "" {
		return r.progress.NotYet(poll, "%s", note)
	}
	return r.progress, r.conclude(ctx)
}

// abandon ends the instances of a cluster that is gone: they outlive it.
func (r *run) abandon(ctx context.Context) (steps.Progress, error) {
	if err := r.kept(ctx, steps.RemovalKey, &r.begun); err != nil {
		return r.progress, err
	}
	note, err := r.endInstances(ctx, nil)
	if err != nil {
		return r.progress, err
	}
	if note != "" {
		return r.progress.NotYet(poll, "%s", note)
	}
	return r.progress, r.conclude(ctx)
}
