package nodes

import (
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// static reports whether a NodePool has a number of nodes, whatever pods there are.
func static(pool plan.Object) bool { return inner(pool, "spec")["replicas"] != nil }

// Kinds returns a problem for each pool in force that would become static or would no longer be: the API server refuses both, so
// that the step would fail.
func (c Compiled) Kinds(inForce *plan.Plan) (found []params.Problem) {
	if inForce == nil {
		return nil
	}
	was, all := byPool(inForce.NodePools.Objects), findings{}
	for _, d := range c.drafts {
		before := was[d.name].pool
		if d.kind != "NodePool" || d.idle || before == nil || static(before) == static(d.object) {
			continue
		}
		own := d.layers[len(d.layers)-1]
		is, instead := "is there, and NodePool %s in force is not static", "leave it out"
		if static(before) {
			is, instead = "is not there, and NodePool %s in force is static", "write it again"
		}
		all.refuse(own.from("nodePool", "replicas"), is+": Kubernetes refuses to change a pool from one kind to the other; %s, or make a pool "+
			"of another name", d.name, instead)
	}
	return all
}
