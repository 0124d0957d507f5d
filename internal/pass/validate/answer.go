package validate

import (
	"context"
	"maps"
	"slices"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

// dryRun answers a dry run with the steps that a pass would take, and with the differences from the plan in force.
func (v *Validate) dryRun(ctx context.Context, answer Answer, run store.Run, f finding) (Answer, error) {
	answer.Outcome = outcome.PassDryRun
	run.Warnings = slices.Concat(run.Warnings, f.records.FreezeAdvice(run.Freeze))
	if len(run.Problems) > 0 {
		return answer, v.Bus.DryRun(ctx, run, f.due, nil)
	}
	inForce, err := v.Store.Plan(ctx, run.Rack)
	if err != nil {
		return answer, err
	}
	return answer, v.Bus.DryRun(ctx, run, f.due, plan.Differences(inForce, &f.Plan))
}

// forget answers with the step that removes Sawhorse's access to the rack's cluster, and asks for the report, which
// deletes the rack's records. The step access counts as not applied from here on, so that a rack that is created again
// before the end gets its access again.
func (v *Validate) forget(ctx context.Context, answer Answer, run store.Run, records plan.Records) (Answer, error) {
	answer.Outcome = outcome.PassForgotten
	last, err := v.Store.Plan(ctx, run.Rack)
	if err != nil {
		return answer, err
	}
	if last != nil && records.Goal != "" { // otherwise no cluster was changed, or only the report is left
		records.Applied = maps.Clone(records.Applied)
		delete(records.Applied, "access")
		if err := v.Store.SaveRecords(ctx, run.Rack, records); err != nil {
			return answer, err
		}
		answer.Steps = []plan.Step{plan.CloseStep}
	}
	return v.report(ctx, answer, run)
}

// rejected reports the problems. A full pass still repairs the rack towards the last good plan. Every pass completes a
// change of Karpenter's version that is under way, and brings the freeze that the rack asks for.
func (v *Validate) rejected(ctx context.Context, answer Answer, run store.Run, f finding, lease store.Lease) (Answer, error) {
	answer.Outcome = outcome.PassRejected
	r, err := v.repairs(ctx, run.Rack, f, lease.Full)
	if err != nil {
		return answer, err
	}
	// The rest of a change request that was valid when it was accepted is written too.
	answer.Steps = append(answer.Steps, f.written(r.steps)...)
	// As in keep, the records come first: if the pass stops before the plan is saved, the steps of the freeze are due with
	// the plan as it was.
	if r.freezes {
		if err := v.Store.SaveRecords(ctx, run.Rack, r.records); err != nil {
			return answer, err
		}
	}
	// Only an event of this pass decides whether the steps skip the checks that protect running pods, and not one of the
	// pass that made the plan.
	if len(r.steps) > 0 && (r.freezes || r.takenBack || r.plan.Force != lease.Force) {
		r.plan.Force = lease.Force
		if err := v.Store.SavePlan(ctx, r.plan); err != nil {
			return answer, err
		}
	}
	if len(answer.Steps) == 0 {
		return v.reportIfNew(ctx, answer, run, f, outcome.StateRejected, lease.Full)
	}
	return v.report(ctx, answer, run)
}

// repairs is what a pass over a rejected rack does: the last good plan, and the steps towards it with the reason for each.
type repairs struct {
	plan  *plan.Plan
	steps []plan.Step
	why   map[string]string
	// freezes means that the plan has another freeze than the one in force. records are those of the rack with that plan.
	freezes bool
	records plan.Records
	// takenBack means that the plan was made for a version of Karpenter that has failed, and is now for the one that came
	// back.
	takenBack bool
}

// repairs finds what a pass over a rejected rack does: every pass lays the freeze over the last good plan, or takes it off.
// The rest is not only for full passes if a change of Karpenter's version is under way, or the way back from one: nothing
// else would find out whether the new version works, or bring the old one back.
func (v *Validate) repairs(ctx context.Context, name string, f finding, full bool) (r repairs, err error) {
	r.plan, err = v.Store.Plan(ctx, name)
	gone := f.Plan.Goal != plan.GoalNone && f.Plan.Cluster.Name == "" // there is no cluster to repair
	if err != nil || r.plan == nil || f.Config.Paused || gone {
		return r, err
	}
	r.takenBack = r.plan.TakeBack(f.records.Karpenter.RolledBack)
	r.freezes = f.freezes(r.plan)
	r.records = f.records
	if full || r.takenBack || r.plan.Changing(r.records.Applied) {
		r.steps, r.why = v.due(ctx, r.plan, r.records, full)
		return r, nil
	}
	for _, s := range r.plan.Due(r.records.Applied) {
		if s.Name == plan.FreezeStep {
			r.steps = []plan.Step{s}
		}
	}
	return r, nil
}

// unchanged ends an iteration without steps. A full pass saves the plan and the records if they differ from those that
// were found now, because most parameters can change without making a step due. Every pass does if karpenter_version does
// not ask any more for the version that failed: if it asks again later, that is another write.
func (v *Validate) unchanged(ctx context.Context, answer Answer, run store.Run, f finding, full bool) (Answer, error) {
	answer.Outcome = outcome.PassUnchanged
	if f.Plan.Goal != plan.GoalNone && (full || f.records.Karpenter.RolledBack != f.accepted().Karpenter.RolledBack) {
		kept, err := v.kept(ctx, run.Rack, f)
		if err == nil && !kept {
			err = v.keep(ctx, run, f)
		}
		if err != nil {
			return answer, err
		}
	}
	return v.reportIfNew(ctx, answer, run, f, outcome.StateReconciled, full)
}

// reportIfNew asks for a report if the status does not say what was found. A full pass also compares what Parameter
// Store has.
func (v *Validate) reportIfNew(ctx context.Context, answer Answer, run store.Run, f finding, state outcome.State,
	full bool) (Answer, error) {
	reason, err := v.reportReason(ctx, run, f, state, full)
	if err != nil {
		return answer, err
	}
	if reason.why == "" {
		return answer, v.Bus.Quiet(run, state)
	}
	if reason.lost { // otherwise the report would not write the same status again
		if err := v.Store.ClearPublished(ctx, run.Rack); err != nil {
			return answer, err
		}
	}
	return v.report(ctx, answer, run)
}

// report asks for a report of an iteration, even if it has no steps.
func (v *Validate) report(ctx context.Context, answer Answer, run store.Run) (Answer, error) {
	answer.Report, run.Outcome = true, answer.Outcome
	return answer, v.Store.SaveRun(ctx, run)
}

// accept puts a plan into force. The steps that are due count as not applied from here on, so that the next pass runs
// them whatever happens to this one.
func (v *Validate) accept(ctx context.Context, answer Answer, run store.Run, f finding) (Answer, error) {
	answer.Outcome, answer.Steps = outcome.PassPlanned, f.due
	if f.Plan.Goal == plan.GoalNone { // only change requests are to be written
		return v.report(ctx, answer, run)
	}
	if err := v.keep(ctx, run, f); err != nil {
		return answer, err
	}
	answer, err := v.report(ctx, answer, run)
	if err != nil {
		return answer, err
	}
	return answer, v.Bus.Started(ctx, run, f.due)
}
