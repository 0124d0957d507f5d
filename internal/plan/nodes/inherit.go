package nodes

import (
	"slices"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/canonical"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// Earlier is a plan that pools may stay as, and the configuration that it was made from.
type Earlier struct {
	Plan   plan.Plan
	Config params.Config
}

// Inherit returns the manifests of a plan, in which pools keep those of an earlier plan if Karpenter would replace their nodes although
// nothing has changed since that the pools are made from: then only Sawhorse itself has. It also returns the names of these pools.
// Of several plans the first counts in which a pool is the same or was made from the same. The new plan must have passed all checks.
func Inherit(earlier []Earlier, next plan.Plan, facts plan.Facts) (objects []plan.Object, kept []string) {
	is, from := byPool(next.NodePools.Objects), map[string]manifests{}
	left := next.NodePools.Names()
	for _, e := range earlier {
		if e.Plan.Controller.Release.Version != next.Controller.Release.Version {
			continue
		}
		was := byPool(e.Plan.NodePools.Objects)
		left = slices.DeleteFunc(left, func(pool string) bool { return was[pool].text == is[pool].text })
		if len(left) == 0 {
			break
		}
		facts, to := facts, next
		facts.Aged = agedIn(e.Plan, e.Config) // a newer release is not Sawhorse's doing
		unchanged := byPool(Compile(e.Config, facts).Objects())
		to.Network = e.Plan.Network // other networks replace nodes whatever the manifests are
		replaced := Effects(e.Plan, to, facts)
		left = slices.DeleteFunc(left, func(pool string) bool {
			old, new := was[pool], is[pool]
			if unchanged[pool].text != new.text || architectures(old.pool) != architectures(new.pool) { // which may come from the node groups
				return false
			}
			if slices.ContainsFunc(replaced, func(r plan.Effect) bool { return r.Pool == pool && (r.Replaces || r.MayReplace) }) {
				from[pool], kept = old, append(kept, pool)
			}
			return true
		})
	}
	for _, object := range next.NodePools.Objects {
		name, _ := inner(object, "metadata")["name"].(string)
		switch old, keeps := from[name]; {
		case !keeps:
		case object["kind"] == "NodePool":
			object = old.pool
		default:
			object = old.class
		}
		objects = append(objects, object)
	}
	slices.Sort(kept)
	return objects, kept
}

// agedIn returns the releases that the pools of a plan have of aliases by age, as Facts.Aged has them.
func agedIn(p plan.Plan, config params.Config) map[string]string {
	aged := map[string]string{}
	for _, object := range p.NodePools.Objects {
		if name, _ := inner(object, "metadata")["name"].(string); config.SelectsImages(name) {
			continue
		}
		for _, term := range objects(inner(object, "spec")["amiSelectorTerms"]) {
			alias, _ := term["alias"].(string)
			family, _, _ := strings.Cut(alias, "@")
			named := config.AMIAliases[family]
			if _, _, is := plan.AgedAlias(named); is {
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
