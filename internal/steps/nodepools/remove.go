package nodepools

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/steps"
)

const (
	// labelPool is on every NodeClaim: the NodePool that it was made for.
	labelPool = "karpenter.sh/nodepool"
	// annotationDeadline on a NodeClaim is the moment from which Karpenter no longer waits for PodDisruptionBudgets and
	// do-not-disrupt; RFC 3339.
	annotationDeadline = "karpenter.sh/nodeclaim-termination-timestamp"
)

// remove goes backwards: NodePools, then (Karpenter drains and ends them) their NodeClaims, then EC2NodeClasses, whose
// clean-up is Karpenter's too. Each waits for the one before. A cluster without the CRDs has none of them.
func (r *run) remove(ctx context.Context) (steps.Progress, error) {
	pools, err := r.client.Ours(ctx, k8s.NodePool, r.plan.Rack)
	if err != nil {
		return r.progress, err
	}
	classes, err := r.client.Ours(ctx, k8s.EC2NodeClass, r.plan.Rack)
	if err != nil {
		return r.progress, err
	}
	if len(pools) == 0 && len(classes) == 0 {
		return r.progress, nil
	}
	if err := r.delete(ctx, k8s.NodePool, pools); err != nil {
		return r.progress, err
	}
	// Listed after the deletion: a NodeClaim that was made just before it is among them.
	claims, err := r.claims(ctx, pools, classes)
	if err != nil {
		return r.progress, err
	}
	if err := r.limit(ctx, claims); err != nil {
		return r.progress, err
	}
	if len(claims) > 0 {
		return r.progress.NotYet(poll, "%s", r.remaining(claims))
	}
	if len(pools) > 0 {
		return r.progress.NotYet(poll, "%s: being deleted", k8s.Subject(&pools[0]))
	}
	if err := r.delete(ctx, k8s.EC2NodeClass, classes); err != nil {
		return r.progress, err
	}
	return r.progress.NotYet(poll, "%s: being deleted, Karpenter cleans up its instance profile and launch templates", k8s.Subject(&classes[0]))
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

// claims are the NodeClaims of our pools. Once a NodePool has gone, its NodeClaims are still known by their EC2NodeClass,
// which outlives them.
func (r *run) claims(ctx context.Context, pools, classes []unstructured.Unstructured) ([]unstructured.Unstructured, error) {
	ourPools, ourClasses := nameSet(pools), nameSet(classes)
	all, err := r.client.List(ctx, k8s.NodeClaim, "", "")
	if err != nil {
		return nil, err
	}
	var ours []unstructured.Unstructured
	for _, claim := range all {
		class, _, _ := unstructured.NestedString(claim.Object, "spec", "nodeClassRef", "name")
		if ourPools[claim.GetLabels()[labelPool]] || ourClasses[class] {
			ours = append(ours, claim)
		}
	}
	return ours, nil
}

// limit gives every NodeClaim the end of its drain window, once. An earlier one stays as it is, and does not count for the
// others: it may have passed already, and a deadline in the past is no grace at all. A later one, as from a pool with a
// long terminationGracePeriod, is brought forward.
func (r *run) limit(ctx context.Context, claims []unstructured.Unstructured) error {
	deadline := r.now().Add(r.drain).UTC().Truncate(time.Second)
	for i := range claims {
		if set, ok := deadlineOf(&claims[i]); ok && !set.After(deadline) {
			continue
		}
		if err := r.client.Annotate(ctx, k8s.NodeClaim, &claims[i], annotationDeadline, deadline.Format(time.RFC3339)); err != nil {
			return err
		}
		r.progress.Changed("draining until "+deadline.Format(time.RFC3339), "%s", k8s.Subject(&claims[i]))
	}
	return nil
}

func deadlineOf(claim *unstructured.Unstructured) (time.Time, bool) {
	set, err := time.Parse(time.RFC3339, claim.GetAnnotations()[annotationDeadline])
	return set, err == nil
}

// remaining names some of the NodeClaims that are still there.
func (r *run) remaining(claims []unstructured.Unstructured) string {
	const most = 5
	var shown []string
	for i := range claims[:min(len(claims), most)] {
		shown = append(shown, claims[i].GetName())
	}
	if len(claims) > most {
		shown = append(shown, "…")
	}
	return fmt.Sprintf("%d NodeClaim(s) draining: %s", len(claims), strings.Join(shown, ", "))
}

func nameSet(objects []unstructured.Unstructured) map[string]bool {
	set := map[string]bool{}
	for i := range objects {
		set[objects[i].GetName()] = true
	}
	return set
}
