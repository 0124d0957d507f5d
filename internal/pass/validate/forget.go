package validate

import (
	"context"
	"maps"

	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

// forget has the report end the rack, once Sawhorse's functions are out of its cluster. Their access counts as not applied from here
// on, so that a rack that comes back before the end has it again.
func (v *Validate) forget(ctx context.Context, answer Answer, run store.Run, records plan.Records) (Answer, error) {
	answer.Outcome, answer.Report, run.Outcome = Forgotten, true, string(Forgotten)
	last, err := v.store.Plan(ctx, run.Rack)
	if err != nil {
		return answer, err
	}
	if last != nil && records.Goal != "" { // else nothing in a cluster was ever changed, or the end was stopped behind the step
		records.Applied = maps.Clone(records.Applied)
		delete(records.Applied, "access")
		if err := v.store.SaveRecords(ctx, run.Rack, records); err != nil {
			return answer, err
		}
		answer.Steps = []plan.Step{plan.CloseStep}
	}
	return answer, v.store.SaveRun(ctx, run)
}
