package nodes

import (
	"slices"

	"github.com/sawhorse-io/sawhorse/internal/canonical"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// Inherit returns the manifests of a plan, in which pools keep those of the plan in force if Karpenter would replace their
// nodes although nothing has changed that the pools are made from: then only Sawhorse itself has. It also returns the names of
// these pools. before is made from the parameters of the plan in force, and Karpenter has the same version in both. The plan
// must have passed all checks.
func Inherit(inForce, next plan.Plan, before Compiled, facts plan.Facts) (objects []plan.Object, kept []string) {
	was, is, unchanged := byPool(inForce.NodePools.Objects), byPool(next.NodePools.Objects), byPool(before.Objects())
	differs := func(pool string) bool {
		old, existed := was[pool]
		return existed && old.text != is[pool].text && unchanged[pool].text == is[pool].text &&
			architectures(old.pool) == architectures(is[pool].pool) // which may come from the node groups
	}
	if !slices.ContainsFunc(next.NodePools.Names(), differs) {
		return next.NodePools.Objects, nil
	}
	next.Network = inForce.Network // other networks replace nodes whatever the manifests are
	for _, effect := range Effects(inForce, next, facts) {
		if differs(effect.Pool) && (effect.Replaces || effect.MayReplace) {
			kept = append(kept, effect.Pool)
		}
	}
	for _, object := range next.NodePools.Objects {
		name, _ := inner(object, "metadata")["name"].(string)
		switch old := was[name]; {
		case !slices.Contains(kept, name):
		case object["kind"] == "NodePool":
			object = old.pool
		default:
			object = old.class
		}
		objects = append(objects, object)
	}
	return objects, kept
}

// architectures returns the NodePool's requirements of the architecture, as text.
func architectures(pool plan.Object) (text string) {
	requirements, _ := inner(pool, "spec", "template", "spec")["requirements"].([]any)
	for _, r := range requirements {
		if fields, _ := r.(map[string]any); fields["key"] == keyArch {
			text += string(canonical.JSON(fields))
		}
	}
	return text
}
