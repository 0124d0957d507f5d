package plan

import (
	"maps"
	"reflect"
	"slices"

	"github.com/sawhorse-io/sawhorse/internal/params"
)

// FreezeStep is the name of the step that lays the freeze over the NodePools that exist, or takes it off them. It changes
// nothing else of them, so it comes before all steps that may fail for another reason.
const FreezeStep = "nodepools/freeze"

// MostBudgets is the most budgets that Karpenter's CRD allows in a NodePool.
const MostBudgets = 50

// Manifests returns what is applied, in order of kind and name: the Overlays and the Objects, with the freeze, if there is one.
func (n NodePools) Manifests() []Object {
	if !n.Frozen && n.Overlays == nil {
		return n.Objects
	}
	all := make([]Object, 0, len(n.Objects)+len(n.Overlays))
	overlays := n.Overlays
	for _, object := range n.Objects {
		if object["kind"] == "NodePool" {
			all, overlays = append(all, overlays...), nil
			if n.Frozen {
				object = frozen(object)
			}
		}
		all = append(all, object)
	}
	return all
}

// freezing is the budget of the freeze: no nodes, for all reasons.
func freezing() any { return map[string]any{"nodes": "0"} }

// FrozenBudgets returns the budgets of a NodePool with the freeze, which is one more. Karpenter keeps the most restrictive of all
// budgets, so where no more are allowed it takes the place of the last one. Without budgets (nil: the API server's default, 10%) a
// NodePool gets one that says the same: a single budget of 0 nodes is always a pool's own.
func FrozenBudgets(budgets []any) []any {
	switch {
	case budgets == nil:
		budgets = []any{map[string]any{"nodes": "10%"}}
	case len(budgets) == 0:
		budgets = []any{map[string]any{"nodes": "100%"}}
	}
	return append(slices.Clone(budgets[:min(len(budgets), MostBudgets-1)]), freezing())
}

// UnfrozenBudgets returns the budgets of a NodePool without the freeze, if it lies over them. A pool's own budget of 0 nodes at all times,
// after others, looks the same.
func UnfrozenBudgets(budgets []any) []any {
	if last := len(budgets) - 1; last > 0 && reflect.DeepEqual(budgets[last], freezing()) {
		return budgets[:last]
	}
	return budgets
}

// frozen returns a NodePool with the freeze.
func frozen(pool Object) Object {
	pool = maps.Clone(pool)
	spec, disruption := map[string]any{}, map[string]any{}
	maps.Copy(spec, fields(pool["spec"]))
	maps.Copy(disruption, fields(spec["disruption"]))
	budgets, _ := disruption["budgets"].([]any)
	disruption["budgets"] = FrozenBudgets(budgets)
	spec["disruption"], pool["spec"] = disruption, spec
	return pool
}

// Freeze lays the freeze over the NodePools of a plan that is in force, or takes it off, and reports whether that changes
// the plan. The plan then has the FreezeStep. A plan without NodePools stays as it is.
func (p *Plan) Freeze(freeze bool) bool {
	if len(p.NodePools.Objects) == 0 || p.NodePools.Frozen == freeze {
		return false
	}
	p.NodePools.Frozen = freeze
	named := func(name string) func(Step) bool { return func(s Step) bool { return s.Name == name } }
	if !slices.ContainsFunc(p.Steps, named(FreezeStep)) {
		afterAccess := slices.IndexFunc(p.Steps, named("access")) + 1
		p.Steps = slices.Insert(p.Steps, afterAccess, entry{FreezeStep, on, nil}.step())
	}
	for i, s := range p.Steps {
		if s.Name == FreezeStep || s.Name == "nodepools" { // what was recorded of the other steps still holds
			p.setFingerprint(i)
		}
	}
	return true
}

// Frozen reports whether the freeze is in force: it lies over all NodePools of the rack.
func (r Records) Frozen() bool {
	return r.Applied[FreezeStep] == fingerprint(freezeSection(&Plan{NodePools: NodePools{Frozen: true}}))
}

// Brakes returns the names of the parameters whose brake is in force; the stack's hold is named hold.
func (r Records) Brakes() (names []string) {
	if r.WasOn && r.Frozen() {
		names = append(names, params.ParamFreeze)
	}
	if r.Paused {
		names = append(names, params.ParamPaused)
	}
	if r.Held {
		names = append(names, "hold")
	}
	return names
}

// unfrozen is what a freeze does not stop, and how it ends.
const unfrozen = "Karpenter consolidates no nodes and replaces none after a change; it still replaces nodes that expire " +
	"(karpenter_node_expiry), that EC2 interrupts, or, before Karpenter 1.15, that node repair finds unhealthy; write false when the " +
	"freeze is over"

// FreezeAdvice returns the warning about the freeze of a rack: what it does if it is in force, and why it is not, or still
// is, if the parameter says something else. wanted is the parameter, or nil if it was refused or is not known: then the
// freeze stays as it is.
func (r Records) FreezeAdvice(wanted *bool) []params.Problem {
	asked, because := wanted != nil && *wanted, "no pass has done the step "+FreezeStep+" for it yet"
	switch {
	case r.Paused:
		because = "the rack is paused, and nothing is changed"
	case r.Held:
		because = "the rack is held, and nothing is changed"
	}
	switch {
	case !r.WasOn || !r.Frozen() && !asked:
		return nil
	case r.Frozen() && (asked || wanted == nil):
		return []params.Problem{params.NewProblem(params.ParamFreeze, "", "the freeze is in force: %s", unfrozen)}
	case asked:
		return []params.Problem{params.NewProblem(params.ParamFreeze, "", "%s is true, and the freeze is not in force, because %s",
			params.ParamFreeze, because)}
	}
	return []params.Problem{params.NewProblem(params.ParamFreeze, "", "%s is not true, and the freeze is still in force, because %s",
		params.ParamFreeze, because)}
}
