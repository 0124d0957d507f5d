package nodepools

import (
	"context"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/steps/refusals"
)

const (
	// annotationDeadline on a NodeClaim is the time (RFC 3339) from which Karpenter no longer waits for
	// PodDisruptionBudgets and do-not-disrupt.
	annotationDeadline = "karpenter.sh/nodeclaim-termination-timestamp"
	// grace is how long Karpenter has after that deadline to end what is left, and to clean up after an EC2NodeClass.
	grace = 2 * time.Minute
)

// remove deletes NodePools, waits until Karpenter has drained and deleted their NodeClaims, and then deletes the
// EC2NodeClasses, which Karpenter cleans up too. What Karpenter has not done in time, Sawhorse does. A cluster without
// the CRDs has none of these objects.
func (r *run) remove(ctx context.Context) error {
	var err error
	if r.begun, err = recorded[removal](ctx, r, outcome.CheckpointRemoval); err != nil {
		return err
	}
	if r.set, err = r.client.PoolSet(ctx, r.plan.Rack, r.begun.Pools...); err != nil {
		return err
	}
	claims, err := r.client.Claims(ctx, r.set)
	if err != nil {
		return err
	}
	pools, classes := r.set.Pools, r.set.Classes
	if len(pools)+len(classes)+len(claims) == 0 {
		return r.finish(ctx)
	}
	// Steps before this one refuse, or wait; what they let begin is not refused halfway.
	if err := refusals.UnmanagedNodePools(r.set.Unmanaged, true, &r.progress); err != nil {
		return err
	}
	if err := r.begin(ctx); err != nil {
		return err
	}
	if err := r.delete(ctx, k8s.NodePool, pools); err != nil {
		return err
	}
	if len(pools) > 0 { // includes NodeClaims made just before the deletion
		if claims, err = r.client.Claims(ctx, r.set); err != nil {
			return err
		}
	}
	switch {
	case len(claims) > 0:
		return r.drain(ctx, claims)
	case len(pools) > 0:
		return outcome.Wait(poll, "%s: being deleted", k8s.Subject(&pools[0]))
	default:
		return r.deleteClasses(ctx)
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

// drain waits for the NodeClaims until Karpenter's time for them is over.
func (r *run) drain(ctx context.Context, claims []unstructured.Unstructured) error {
	if err := r.limit(ctx, claims); err != nil {
		return err
	}
	if err := r.dismiss(ctx, claims); err != nil {
		return err
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
		return outcome.Wait(poll,
			"%d NodeClaim(s) draining: %s, until %s; Karpenter ends them then, and at %s Sawhorse ends through EC2 "+
				"what is left", len(claims), left, deadline, later)
	case now.Before(end.Add(grace)):
		return outcome.Wait(poll,
			"%d NodeClaim(s): %s, for which the time to drain ended at %s: Karpenter ends them, and at %s Sawhorse "+
				"ends through EC2 what is left", len(claims), left, deadline, later)
	default:
		return r.end(ctx, claims)
	}
}

// limit gives every NodeClaim the end of its drain window, once. An earlier deadline stays and does not count for the
// other NodeClaims: it may have passed already, and a deadline in the past gives pods no time at all. A later deadline,
// as from a pool with a long terminationGracePeriod, is brought forward.
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
		k8s.SetAnnotation(&claims[i], annotationDeadline, text)
		r.progress.Changed("draining until "+text, "%s", k8s.Subject(&claims[i]))
	}
	return nil
}

func deadlineOf(claim *unstructured.Unstructured) (time.Time, bool) {
	set, err := time.Parse(time.RFC3339, claim.GetAnnotations()[annotationDeadline])
	return set, err == nil
}

// dismiss deletes NodeClaims that nothing else deletes. Kubernetes deletes those of a deleted NodePool, but not one
// without an owner reference, as one restored from a backup.
func (r *run) dismiss(ctx context.Context, claims []unstructured.Unstructured) error {
	going := map[string]bool{} // pools that this call deleted
	for i := range r.set.Pools {
		going[r.set.Pools[i].GetName()] = r.set.Pools[i].GetDeletionTimestamp() == nil
	}
	for i := range claims {
		if going[claims[i].GetLabels()[ownership.LabelPool]] {
			continue
		}
		if err := r.delete(ctx, k8s.NodeClaim, claims[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

// remaining names some of the remaining NodeClaims.
func remaining(claims []unstructured.Unstructured) string {
	var all []string
	for i := range claims {
		all = append(all, claims[i].GetName())
	}
	return some(all)
}

// some returns the first few elements of a list.
func some(list []string) string {
	const most = 5
	if len(list) > most {
		return strings.Join(list[:most], ", ") + ", …"
	}
	return strings.Join(list, ", ")
}

// deleteClasses deletes the EC2NodeClasses. If Karpenter has not cleaned up after one in time, it removes the finalizer.
func (r *run) deleteClasses(ctx context.Context) error {
	classes := r.set.Classes
	if err := r.delete(ctx, k8s.EC2NodeClass, classes); err != nil {
		return err
	}
	for i := range classes {
		deleted, now := classes[i].GetDeletionTimestamp(), r.Now()
		if deleted == nil || now.Before(r.begun.Start.Add(r.Drain+grace)) || now.Before(deleted.Add(grace)) {
			continue
		}
		if err := r.removeFinalizers(ctx, k8s.EC2NodeClass, classes[i:i+1], ownership.ClassFinalizer); err != nil {
			return err
		}
	}
	return outcome.Wait(poll, "%s: being deleted, Karpenter cleans up its instance profile and launch templates",
		k8s.Subject(&classes[0]))
}

// finish runs when nothing of the rack is left in the cluster. It checks now whether instances are left in EC2, because
// the controller, which would find them, is removed next.
func (r *run) finish(ctx context.Context) error {
	if err := refusals.UnmanagedNodePools(r.set.Unmanaged, true, &r.progress); err != nil {
		return err
	}
	if err := r.end(ctx, nil); err != nil {
		return err
	}
	if err := r.displaced(ctx); err != nil {
		return err
	}
	if err := r.pruneOverlays(ctx); err != nil {
		return err
	}
	return r.conclude(ctx)
}

// abandon terminates the instances of a cluster that is gone: they outlive it.
func (r *run) abandon(ctx context.Context) error {
	var err error
	if r.begun, err = recorded[removal](ctx, r, outcome.CheckpointRemoval); err != nil {
		return err
	}
	if err := r.endInstances(ctx, nil); err != nil {
		return err
	}
	return r.conclude(ctx)
}
