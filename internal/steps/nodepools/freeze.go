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

// freeze gives the rack's NodePools that exist the budgets of the plan, with its freeze or without one, and changes nothing
// else of them. A new pool has no nodes that could be replaced. If a pool is no longer Ready, it waits once: a change of
// version counts the pools that were Ready. A freeze stands over what others write; without one, their budgets may be contested.
func (r *run) freeze(ctx context.Context) error {
	if !r.plan.NodePools.Frozen {
		r.arbitrate()
	}
	pools, err := r.client.Ours(ctx, k8s.NodePool, r.plan.Rack)
	if err != nil {
		return err
	}
	var waiting []string
	for i := range pools {
		live := &pools[i]
		wanted := r.budgets(live)
		if equality.Semantic.DeepEqual(budgets(live.Object), wanted) {
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
		return outcome.Wait(poll, "%s", strings.Join(waiting, "; "))
	}
	return nil
}

// budgets returns the budgets that a live NodePool gets. One that the plan does not have any more, and that is not removed
// yet, has nodes that a freeze must keep too.
func (r *run) budgets(live *unstructured.Unstructured) []any {
	if wanted := r.nodePool(live.GetName()); wanted != nil {
		return budgets(wanted)
	}
	own := plan.UnfrozenBudgets(budgets(live.Object))
	if r.plan.NodePools.Frozen {
		return plan.FrozenBudgets(own)
	}
	return own
}

// nodePool returns the plan's manifest of a NodePool, or nil if it has none.
func (r *run) nodePool(name string) plan.Object {
	for _, object := range r.plan.NodePools.Manifests() {
		if metadata, _ := object["metadata"].(map[string]any); object["kind"] == k8s.NodePool.Name && metadata["name"] == name {
			return object
		}
	}
	return nil
}

// rebudget writes a live NodePool with other budgets. It returns what to wait for if the pool was Ready and is not any more.
func (r *run) rebudget(ctx context.Context, live *unstructured.Unstructured, budgets []any) (note string, err error) {
	applied, err := r.client.Apply(ctx, r.plan.Rack, r.rebudgeted(live, budgets))
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
	labels := map[string]any{ownership.TagRack: r.plan.Rack}
	if value, is := live.GetLabels()[ownership.Retiring]; is {
		labels[ownership.Retiring] = value
	}
	return plan.Object{"apiVersion": live.GetAPIVersion(), "kind": live.GetKind(), "spec": spec, "metadata": map[string]any{
		"name": live.GetName(), "labels": labels, "resourceVersion": live.GetResourceVersion(),
	}}
}
