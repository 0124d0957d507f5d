package nodes

import (
	"slices"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/canonical"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// Inherit returns the manifests of a plan, in which pools keep those of the plan in force if Karpenter would replace their
// nodes although nothing has changed that the pools are made from: then only Sawhorse itself has. It also returns the names of
// these pools. before is the configuration that the plan in force was made from, and Karpenter has the same version in both
// plans. The new one must have passed all checks.
func Inherit(inForce, next plan.Plan, before params.Config, facts plan.Facts) (objects []plan.Object, kept []string) {
	was, is := byPool(inForce.NodePools.Objects), byPool(next.NodePools.Objects)
	differs := func(pool string) bool { return was[pool].text != is[pool].text }
	if !slices.ContainsFunc(next.NodePools.Names(), differs) {
		return next.NodePools.Objects, nil
	}
	facts.Aged = agedIn(inForce, before) // a newer release is not Sawhorse's doing
	unchanged := byPool(Compile(before, facts).Objects())
	next.Network = inForce.Network // other networks replace nodes whatever the manifests are
	for _, effect := range Effects(inForce, next, facts) {
		old, new := was[effect.Pool], is[effect.Pool]
		if differs(effect.Pool) && (effect.Replaces || effect.MayReplace) && unchanged[effect.Pool].text == new.text &&
			architectures(old.pool) == architectures(new.pool) { // which may come from the node groups
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

// agedIn returns the releases that the pools of a plan have of aliases by age, as Facts.Aged has them.
func agedIn(p plan.Plan, config params.Config) map[string]string {
	aged, written := map[string]string{}, config.Aliases() // of pools that select their own
	for _, object := range p.NodePools.Objects {
		for _, term := range objects(inner(object, "spec")["amiSelectorTerms"]) {
			alias, _ := term["alias"].(string)
			family, _, _ := strings.Cut(alias, "@")
			named := config.AMIAliases[family]
			if _, _, is := plan.AgedAlias(named); is && !slices.Contains(written, alias) {
				aged[named] = alias
			}
		}
	}
	return aged
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
