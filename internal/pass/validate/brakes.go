package validate

import (
	"maps"
	"slices"
	"strconv"

	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

// brake finds what the parameters of the brakes ask for, whatever is wrong with the others. A brake whose own value was
// refused, or not read because the rack has too many names, stays as it is.
func (f *finding) brake(tree store.Tree) {
	known := func(name string) bool {
		_, read := tree.Values[name]
		return !f.Config.HasRefused(name) && (read || len(tree.Values) <= params.MostNames)
	}
	if known(params.ParamFreeze) {
		f.freeze = new(f.Config.Freeze)
	}
	if !known(params.ParamPaused) {
		f.Config.Paused = f.records.Paused
	}
	f.records.Paused = f.Config.Paused
}

// written returns the steps with the one that writes change requests, if it is due. Only a freeze comes before it, which
// must not wait for Parameter Store.
func (f *finding) written(steps []plan.Step) []plan.Step {
	switch {
	case !f.writing:
		return steps
	case len(steps) > 0 && steps[0].Name == plan.FreezeStep:
		return slices.Insert(slices.Clone(steps), 1, plan.ChangeStep)
	}
	return append([]plan.Step{plan.ChangeStep}, steps...)
}

// freezes lays the freeze that a rejected rack asks for over the last good plan, or takes it off, and reports whether that
// changes the plan. The steps that apply the freeze then count as not applied, in the finding's records.
func (f *finding) freezes(last *plan.Plan) bool {
	if f.freeze == nil || !last.Freeze(*f.freeze) {
		return false
	}
	f.records.Applied, f.records.Params = maps.Clone(f.records.Applied), maps.Clone(f.records.Params)
	for _, step := range []string{plan.FreezeStep, "nodepools"} {
		delete(f.records.Applied, step)
	}
	f.records.Params[params.ParamFreeze] = strconv.FormatBool(*f.freeze)
	return true
}
