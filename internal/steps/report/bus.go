package report

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/meter"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/rack"
)

// Bus sends events to Sawhorse's event bus.
type Bus struct {
	Events interface {
		PutEvents(context.Context, *eventbridge.PutEventsInput, ...func(*eventbridge.Options)) (*eventbridge.PutEventsOutput, error)
	}
	Name string
	// Meter is for the passes that nothing else tells of.
	Meter meter.Meter
}

// Quiet tells of a round that changes nothing and has nothing new to say, after which the rack is in this state.
func (b Bus) Quiet(run rack.Run, state rack.State) error {
	return b.Meter.Pass(meter.Pass{Rack: run.Rack, Generation: run.Generation, Execution: run.Execution, State: string(state), Told: state != rack.Reconciled})
}

// maxDetail keeps an event below EventBridge's 256 KB with room for its envelope and the count of what is left out, in bytes.
const maxDetail = 250_000

// Send puts one event on the bus, shortened where it would be too long.
func (b Bus) Send(ctx context.Context, detail events.Outbound) error {
	text, err := json.Marshal(detail)
	if err == nil && len(text) > maxDetail {
		text, err = json.Marshal(detail.Shortened(len(text) - maxDetail))
	}
	if err != nil {
		return fmt.Errorf("event %s: encode: %w", detail.DetailType(), err)
	}
	out, err := b.Events.PutEvents(ctx, &eventbridge.PutEventsInput{Entries: []types.PutEventsRequestEntry{{
		EventBusName: &b.Name, Source: new(events.Source), DetailType: new(detail.DetailType()), Detail: new(string(text)),
	}}})
	if err == nil && out.FailedEntryCount > 0 {
		err = fmt.Errorf("EventBridge refused it: %s", *out.Entries[0].ErrorMessage)
	}
	if err != nil {
		return fmt.Errorf("event %s: put: %w", detail.DetailType(), err)
	}
	return nil
}

// Started tells that a round with steps begins.
func (b Bus) Started(ctx context.Context, run rack.Run, steps []plan.Step) error {
	return b.Send(ctx, events.ReconcileStarted{Pass: planned(run, steps)})
}

// DryRun answers a dry run with what would become of the pass: Rejected, or Reconciled with the steps it would take and
// what differs from the plan in force.
func (b Bus) DryRun(ctx context.Context, run rack.Run, steps []plan.Step, differences []plan.Difference) error {
	pass := planned(run, steps)
	pass.DryRun = true
	if len(run.Problems) > 0 {
		return b.Send(ctx, events.Rejected{Pass: pass})
	}
	pass.Differs = events.List[string]{}
	for _, d := range differences {
		pass.Differs = append(pass.Differs, d.Step)
	}
	return b.Send(ctx, events.Reconciled{Pass: pass})
}

// Refused tells that a change request was refused, and why; the pass goes on without it.
func (b Bus) Refused(ctx context.Context, run rack.Run, change string, problems []params.Problem) error {
	pass := planned(run, nil)
	pass.Problems, pass.Warnings = Problems(problems), nil
	return b.Send(ctx, events.Rejected{Pass: pass, Change: change})
}

func planned(run rack.Run, steps []plan.Step) events.Pass {
	pass := events.Pass{
		Rack: run.Rack, Generation: run.Generation, Execution: run.Execution,
		Pools: pools(run.Effects), Problems: Problems(run.Problems), Warnings: Problems(run.Warnings),
	}
	for _, s := range steps {
		pass.Steps = append(pass.Steps, s.Name)
	}
	return pass
}
