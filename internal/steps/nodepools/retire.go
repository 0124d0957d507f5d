package nodepools

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// retire retires the pools that the plan does not have any more, and deletes those that have no node left. A pool that the pass
// is forced to remove is deleted with its nodes, and so is a static one, which is judged before: it takes no limit of cpu, and its
// nodes end without regard to budgets in any case. It comes last, when other pools are Ready for the pods.
func (r *run) retire(ctx context.Context) error {
	all, err := r.client.Ours(ctx, k8s.NodePool, r.plan.Rack)
	if err != nil {
		return err
	}
	kept := r.plan.NodePools.Names()
	gone := slices.DeleteFunc(all, func(pool unstructured.Unstructured) bool { return slices.Contains(kept, pool.GetName()) })
	populated, err := r.populated(ctx, gone)
	if err != nil {
		return err
	}
	for i := range gone {
		pool := &gone[i]
		name := pool.GetName()
		switch {
		case !populated[name] || r.plan.Force.Retires(name) || static(pool):
			err = r.delete(ctx, k8s.NodePool, gone[i:i+1])
		case pool.GetDeletionTimestamp() == nil:
			kept = append(kept, name)
			err = r.empty(ctx, pool)
		}
		if err != nil {
			return err
		}
	}
	return r.prune(ctx, k8s.EC2NodeClass, kept)
}

// static reports whether a NodePool has a number of nodes, whatever pods there are.
func static(pool *unstructured.Unstructured) bool {
	_, is, _ := unstructured.NestedFieldNoCopy(pool.Object, "spec", "replicas")
	return is
}

// pruneOverlays deletes the NodeOverlays that the plan does not have. A plan of an earlier release gives no right to list them.
func (r *run) pruneOverlays(ctx context.Context) error {
	mayList := func(right plan.Right) bool { return right.Resource == "nodeoverlays" }
	if !slices.ContainsFunc(r.plan.Access.Rights["nodepools"], mayList) {
		return nil
	}
	var kept []string
	for _, object := range r.plan.NodePools.Overlays {
		name, _, _ := unstructured.NestedString(object, "metadata", "name")
		kept = append(kept, name)
	}
	return r.prune(ctx, k8s.NodeOverlay, kept)
}

func (r *run) prune(ctx context.Context, kind k8s.Kind, kept []string) error {
	deleted, err := r.client.Prune(ctx, kind, r.plan.Rack, kept)
	for _, subject := range deleted {
		r.progress.Changed("deleted", "%s", subject)
	}
	return err
}

// populated returns which pools have NodeClaims.
func (r *run) populated(ctx context.Context, pools []unstructured.Unstructured) (map[string]bool, error) {
	found := map[string]bool{}
	if len(pools) == 0 {
		return found, nil
	}
	err := r.client.Each(ctx, k8s.NodeClaim, "", "", func(claim *unstructured.Unstructured) error {
		found[claim.GetLabels()[ownership.LabelPool]] = true
		return nil
	})
	return found, err
}

// empty makes Karpenter empty a pool: its limit keeps it from launching nodes, and its template differs from its nodes by a
// taint, so that they are drifted, and replaced by nodes of other pools. They get the taint too, or pods would move from one to
// the next. The nodes of the build pool end by themselves when their builds have.
func (r *run) empty(ctx context.Context, pool *unstructured.Unstructured) error {
	applied, err := r.client.Apply(ctx, r.plan.Rack, r.retiring(pool))
	if err != nil {
		return err
	}
	if r.note(applied); pool.GetName() == ownership.BuildPool {
		return nil
	}
	return r.taint(ctx, "tainted", []string{pool.GetName()}, func(others []any) []any { return append(others, taint()) })
}

// taint is the taint of a pool that is being removed, and of its nodes.
func taint() any { return map[string]any{"key": ownership.Retiring, "effect": "NoSchedule"} }

// retiring returns the manifest that Sawhorse has applied for a live NodePool, as that of a pool that is being removed.
func (r *run) retiring(live *unstructured.Unstructured) plan.Object {
	manifest := &unstructured.Unstructured{Object: r.rebudgeted(live, r.budgets(live))}
	manifest.SetLabels(map[string]string{ownership.TagRack: r.plan.Rack, ownership.Retiring: "true"})
	set := func(value any, path ...string) {
		if err := unstructured.SetNestedField(manifest.Object, value, path...); err != nil {
			panic("nodepools: retire: " + err.Error()) // the CRD has objects there
		}
	}
	set("0", "spec", "limits", "cpu")
	if live.GetName() != ownership.BuildPool {
		taints, _, _ := unstructured.NestedSlice(manifest.Object, "spec", "template", "spec", "taints")
		set(append(untainted(taints), taint()), "spec", "template", "spec", "taints")
	}
	return manifest.Object
}

// takeBack takes the taint off the nodes of retiring pools that the plan has again. The label of the NodePool goes after it, when
// the plan's manifest is applied.
func (r *run) takeBack(ctx context.Context) error {
	pools, err := r.client.List(ctx, k8s.NodePool, "", ownership.TagRack+"="+r.plan.Rack+","+ownership.Retiring)
	if err != nil {
		return err
	}
	var back []string
	for i := range pools {
		name := pools[i].GetName()
		wanted := r.nodePool(name)
		if wanted == nil {
			continue
		}
		if static(&unstructured.Unstructured{Object: wanted}) && !static(&pools[i]) { // static ones do not retire
			parameter := params.ParamAdditional
			if name == ownership.BuildPool {
				parameter = params.ParamBuildConfig
			}
			return outcome.Reject(parameter, "pool %s has replicas, and the pool of that name that is being removed has not: "+
				"Kubernetes refuses to change a pool from one kind to the other. Leave replicas out, or wait until the nodes of the "+
				"one that is being removed have gone.", name)
		}
		back = append(back, name)
	}
	if len(back) == 0 {
		return nil
	}
	return r.taint(ctx, "taint removed", back, func(others []any) []any { return others })
}

// taint gives the nodes of pools the taints that wanted returns for their others. action says what that does.
func (r *run) taint(ctx context.Context, action string, pools []string, wanted func(others []any) []any) error {
	nodes, err := r.nodesOf(ctx, pools)
	if err != nil {
		return err
	}
	for i := range nodes {
		has, _, _ := unstructured.NestedSlice(nodes[i].Object, "spec", "taints")
		taints := wanted(untainted(has))
		if len(taints) == len(has) {
			continue
		}
		if err := r.client.Taint(ctx, &nodes[i], taints); err != nil {
			return err
		}
		r.progress.Changed(action, "%s", k8s.Subject(&nodes[i]))
	}
	return nil
}

// untainted returns taints without the one of pools that are being removed.
func untainted(taints []any) []any {
	return slices.DeleteFunc(slices.Clone(taints), func(taint any) bool {
		fields, _ := taint.(map[string]any)
		return fields["key"] == ownership.Retiring
	})
}
