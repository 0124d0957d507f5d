package nodepools

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// freeze gives the NodePools that exist the budgets of the plan, with its freeze or without one, and changes nothing else
// of them. A new pool has no nodes that could be replaced, and one of somebody else's is rejected later. If a pool is no
// longer Ready, it waits once: a change of version counts the pools that were Ready.
func (r *run) freeze(ctx context.Context) error {
	var waiting []string
	for _, object := range r.plan.NodePools.Manifests() {
		live, err := r.client.GetLike(ctx, object)
		if err != nil {
			return err
		}
		wanted := budgets(object)
		if live == nil || live.GetKind() != k8s.NodePool.Name || k8s.Owned(live, r.plan.Rack) != nil ||
			equality.Semantic.DeepEqual(budgets(live.Object), wanted) {
			continue
		}
		note, err := r.rebudget(ctx, live, wanted)
		if err != nil {
			return err
		}
		if note != "" {
			waiting = append(waiting, note)
		}
	}
	if len(waiting) > 0 {
		return outcome.NotYet(poll, "%s", strings.Join(waiting, "; "))
	}
	return nil
}

// rebudget writes a live NodePool with other budgets. It returns what to wait for if the pool was Ready and is not any more.
func (r *run) rebudget(ctx context.Context, live *unstructured.Unstructured, budgets []any) (note string, err error) {
	applied, err := r.client.Apply(ctx, r.plan.Rack, r.rebudgeted(live, budgets))
	if k8s.IsConflict(err) {
		return "", outcome.NotYet(poll, "%v", err) // the object was written between our read and our write
	}
	if err != nil {
		return "", err
	}
	r.note(applied)
	was, _ := k8s.Ready(live)
	if is, why := k8s.Ready(applied.Live); was && !is {
		note = applied.Subject + ": " + why
	}
	return note, nil
}

// budgets returns the budgets of a NodePool. They are nil if it has none of its own.
func budgets(pool plan.Object) []any {
	all, _, _ := unstructured.NestedSlice(pool, "spec", "disruption", "budgets")
	return all
}

// rebudgeted returns the manifest that Sawhorse has applied for a live NodePool, with other budgets. With the version of the
// object, what somebody writes meanwhile is not set back.
func (r *run) rebudgeted(live *unstructured.Unstructured, budgets []any) plan.Object {
	spec := k8s.AppliedSpec(live)
	disruption, _ := spec["disruption"].(map[string]any)
	if disruption == nil {
		disruption = map[string]any{}
	}
	if disruption["budgets"] = budgets; budgets == nil {
		delete(disruption, "budgets") // the API server has a default
	}
	spec["disruption"] = disruption
	return plan.Object{"apiVersion": live.GetAPIVersion(), "kind": live.GetKind(), "spec": spec, "metadata": map[string]any{
		"name": live.GetName(), "labels": map[string]any{ownership.TagRack: r.plan.Rack}, "resourceVersion": live.GetResourceVersion(),
	}}
}
