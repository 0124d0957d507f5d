package validate

import (
	"context"

	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

// rejected reports the problems. A full pass still repairs the rack towards the last good plan.
func (v *Validate) rejected(ctx context.Context, answer Answer, run store.Run, f finding, lease store.Lease) (Answer, error) {
	answer.Outcome = Rejected
	answer.Steps = append(answer.Steps, f.due...) // the rest of a change request that was valid when it was accepted
	if !lease.Full && f.writing {
		answer.Report, run.Outcome = true, string(Rejected)
		return answer, v.store.SaveRun(ctx, run)
	}
	if !lease.Full {
		return v.reportIfNew(ctx, answer, run, f, store.Rejected, false)
	}
	last, repairs, _, err := v.repairs(ctx, run.Rack, f)
	if err != nil {
		return answer, err
	}
	if len(answer.Steps)+len(repairs) == 0 {
		return v.reportIfNew(ctx, answer, run, f, store.Rejected, true)
	}
	if len(repairs) > 0 {
		answer.Steps = append(answer.Steps, repairs...)
		if err := v.force(ctx, last, lease); err != nil {
			return answer, err
		}
	}
	answer.Report, run.Outcome = true, string(Rejected)
	return answer, v.store.SaveRun(ctx, run)
}

// repairs returns the last good plan of a rejected rack, and the steps that a full pass takes towards it, with the
// reason for each.
func (v *Validate) repairs(ctx context.Context, name string, f finding) (*plan.Plan, []plan.Step, map[string]string, error) {
	last, err := v.store.Plan(ctx, name)
	gone := f.Plan.Goal != plan.GoalNone && f.Plan.Cluster.Name == "" // there is no cluster to repair
	if err != nil || last == nil || f.Config.Paused || gone {
		return last, nil, nil, err
	}
	steps, why := v.due(ctx, last, f.records, true)
	return last, steps, why, nil
}

// force sets whether the last good plan skips the checks that protect running pods. Only an event of this pass decides
// that, and not one of the pass that made the plan.
func (v *Validate) force(ctx context.Context, last *plan.Plan, lease store.Lease) error {
	if last.Force == lease.Force {
		return nil
	}
	last.Force = lease.Force
	return v.store.SavePlan(ctx, last)
}
