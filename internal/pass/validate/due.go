package validate

import (
	"context"
	"maps"
	"slices"

	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// due returns the steps that a pass takes, with the reason for each: the steps whose part of the plan differs from what
// was applied, and those that the auditor finds due. A full pass audits all steps. Every other pass audits only the
// queue's step, because users lose pods if interruptions are not received.
func (v *Validate) due(ctx context.Context, p *plan.Plan, records plan.Records, full bool) ([]plan.Step, map[string]string) {
	if full && !v.audits(p) {
		return p.Steps, nil
	}
	const queue = "queue"
	why := map[string]string{}
	for _, s := range p.Due(records.Applied) {
		why[s.Name] = "it has not been done for this plan"
	}
	var look []plan.Step
	for _, s := range p.Steps {
		if why[s.Name] == "" && (full || s.Name == queue && p.Queue.Present) {
			look = append(look, s)
		}
	}
	maps.Copy(why, v.Auditor.Due(ctx, p, look, records.Warnings))
	applied := maps.Clone(records.Applied)
	maps.DeleteFunc(applied, func(step, _ string) bool { return why[step] != "" })
	for _, s := range p.Due(applied) {
		if why[s.Name] == "" {
			why[s.Name] = "it comes with " + s.PrecheckFor
		}
	}
	return slices.DeleteFunc(slices.Clone(p.Steps), func(s plan.Step) bool { return why[s.Name] == "" }), why
}

// audits reports whether the auditor can run all steps of a plan. If it cannot, a full pass takes all steps. This
// happens in the function validate, if the request for a full pass came after the state machine had read the lease.
func (v *Validate) audits(p *plan.Plan) bool {
	return !slices.ContainsFunc(p.Steps, func(s plan.Step) bool { return !v.Auditor.Audits(s) })
}
