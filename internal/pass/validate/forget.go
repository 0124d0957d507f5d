package validate

import (
	"context"
	"maps"

	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

// forget answers with the step that removes Sawhorse's access to the rack's cluster, and asks for the report, which
// deletes the rack's records. The step access counts as not applied from here on, so that a rack that is created again
// before the end gets its access again.
func (v *Validate) forget(ctx context.Context, answer Answer, run store.Run, records plan.Records) (Answer, error) {
	answer.Outcome, answer.Report, run.Outcome = Forgotten, true, string(Forgotten)
	last, err := v.store.Plan(ctx, run.Rack)
	if err != nil {
		return answer, err
	}
	if last != nil && records.Goal != "" { // otherwise no cluster was changed, or only the report is left
		records.Applied = maps.Clone(records.Applied)
		delete(records.Applied, "access")
		if err := v.store.SaveRecords(ctx, run.Rack, records); err != nil {
			return answer, err
		}
		answer.Steps = []plan.Step{plan.CloseStep}
	}
	return answer, v.store.SaveRun(ctx, run)
}
