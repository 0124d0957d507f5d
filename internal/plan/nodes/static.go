package nodes

import (
	"maps"
	"slices"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// static reports whether a NodePool has a number of nodes, whatever pods there are.
func static(pool plan.Object) bool { return inner(pool, "spec")["replicas"] != nil }

// Taken returns a problem for each pool that is new and whose name a NodePool has that the rack did not make.
func (c Compiled) Taken(facts plan.Facts, inForce *plan.Plan) (found []params.Problem) {
	if inForce == nil || !c.config.Enabled {
		return nil
	}
	was, all := inForce.NodePools.Names(), findings{}
	for _, d := range c.drafts {
		if d.kind == "NodePool" && !d.idle && facts.Pools[d.name].Others && !slices.Contains(was, d.name) {
			all.warn(d.fallback, "the cluster has a NodePool %s that rack %s did not make, and what others made is left alone; choose another "+
				"name for the pool, or take that NodePool out when its pods run elsewhere", d.name, c.config.Rack)
		}
	}
	return all
}

// Static returns a problem for each pool in force, or that is being removed, that would become static or would no longer be, because the
// API server refuses both; and for each static one that the plan does not have any more and that has nodes, unless the pass is forced
// to remove it: Karpenter ends them without regard to budgets.
func (c Compiled) Static(facts plan.Facts, inForce *plan.Plan) (found []params.Problem) {
	if inForce == nil || !c.config.Enabled {
		return nil
	}
	was, all := byPool(inForce.NodePools.Objects), findings{}
	claims := claimsByPool(facts.NodeClaims)
	names := plan.NodePools{Objects: c.Objects()}.Names()
	for _, name := range slices.Sorted(maps.Keys(was)) {
		empty := facts.NodeClaims != nil && len(claims[name]) == 0
		if slices.Contains(names, name) || !static(was[name].pool) || empty || facts.Force.Retires(name) {
			continue
		}
		from, again := origin{parameter: params.ParamAdditional}, "write its entry again"
		if name == ownership.BuildPool {
			from, again = origin{parameter: "build_node_enabled"}, "write true"
		}
		all.warn(from, "pool %[1]s is not there any more, and it is static: Karpenter would end its nodes at once, whatever its budgets say; "+
			"%[2]s, or, to have it so, send Rack Reconcile Requested with \"force\": [\"%[3]s%[1]s\"]", name, again, events.ForceRetire)
	}
	for _, d := range c.drafts {
		live, is := facts.Pools[d.name]
		fixed := live.Static // of a pool that is being removed
		if before := was[d.name].pool; before != nil {
			is, fixed = true, static(before)
		}
		if d.kind != "NodePool" || d.idle || !is || live.Others || fixed == static(d.object) {
			continue
		}
		last := d.layers[len(d.layers)-1]
		says, instead := "is there, and NodePool %s in force is not static", "leave it out"
		if fixed {
			says, instead = "is not there, and NodePool %s in force is static", "write it again"
		}
		all.refuse(last.from("nodePool", "replicas"), says+": Kubernetes refuses to change a pool from one kind to the other; %s, or make "+
			"a pool of another name", d.name, instead)
	}
	return all
}
