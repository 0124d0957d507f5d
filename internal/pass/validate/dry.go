package validate

import (
	"context"

	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

// dryRun answers a dry run with the steps that a pass would take, and with the differences from the plan in force.
func (v *Validate) dryRun(ctx context.Context, answer Answer, run store.Run, f finding) (Answer, error) {
	answer.Outcome = DryRun
	if len(run.Problems) > 0 {
		return answer, v.bus.DryRun(ctx, run, f.due, nil)
	}
	inForce, err := v.store.Plan(ctx, run.Rack)
	if err != nil {
		return answer, err
	}
	return answer, v.bus.DryRun(ctx, run, f.due, plan.Differences(inForce, &f.Plan))
}
