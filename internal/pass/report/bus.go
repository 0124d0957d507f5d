package report

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/canonical"
	"github.com/sawhorse-io/sawhorse/internal/metrics"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

// Bus sends events to Sawhorse's event bus.
type Bus struct {
	Events interface {
		PutEvents(context.Context, *eventbridge.PutEventsInput, ...func(*eventbridge.Options)) (*eventbridge.PutEventsOutput, error)
	}
	Name string
	// Metrics is for the passes that have no report.
	Metrics metrics.Writer
}

// Quiet writes the metrics of an iteration that changes nothing and has no report, because the status says already what
// it found. The rack is in the given state.
func (b Bus) Quiet(run store.Run, state outcome.State) error {
	return b.Metrics.Pass(metrics.Pass{Rack: run.Rack, Generation: run.Generation, Execution: run.Execution, State: state})
}

// maxDetail is the largest size of an event's detail, in bytes. It leaves room in EventBridge's 256 KB for the envelope and
// for the count of what is left out.
const maxDetail = 250_000

// Send puts one event on the bus. It shortens the detail if it is too long.
func (b Bus) Send(ctx context.Context, detail events.Outbound) error {
	text := canonical.JSON(detail)
	if len(text) > maxDetail {
		detail.Shorten(len(text) - maxDetail)
		text = canonical.JSON(detail)
	}
	return b.put(ctx, detail.DetailType(), string(text))
}

// Request requests a pass.
func (b Bus) Request(ctx context.Context, request events.ReconcileRequested) error {
	return b.put(ctx, request.DetailType(), string(canonical.JSON(request)))
}

func (b Bus) put(ctx context.Context, kind, detail string) error {
	out, err := b.Events.PutEvents(ctx, &eventbridge.PutEventsInput{Entries: []types.PutEventsRequestEntry{{
		EventBusName: &b.Name, Source: new(events.Source), DetailType: &kind, Detail: &detail,
	}}})
	if err == nil && out.FailedEntryCount > 0 {
		err = outcome.EntryRefused(out.Entries[0].ErrorCode, out.Entries[0].ErrorMessage)
	}
	if err != nil {
		return fmt.Errorf("event %s: put: %w", kind, err)
	}
	return nil
}

// Started sends the event that an iteration with steps begins. before is the status that was reported before, or nil.
func (b Bus) Started(ctx context.Context, run store.Run, steps []plan.Step, before *store.Status) error {
	pass := planned(run, steps)
	pass.Warnings, pass.UnchangedWarnings = store.Status{Warnings: run.Warnings}.NewWarnings(before)
	return b.Send(ctx, &events.ReconcileStarted{Pass: pass})
}

// DryRun sends the result of a dry run: Rejected, or Reconciled with the steps that a pass would run, and what differs from
// the plan in force. It returns what it has sent.
func (b Bus) DryRun(ctx context.Context, run store.Run, steps []plan.Step, differences []plan.Difference) (*events.Pass, error) {
	pass := planned(run, steps)
	pass.DryRun = true
	if len(run.Problems) > 0 {
		sent := events.Rejected{Pass: pass}
		return &sent.Pass, b.Send(ctx, &sent)
	}
	pass.Differs, pass.Differences = events.List[string]{}, events.List[events.Difference]{}
	for _, d := range differences {
		pass.Differs = append(pass.Differs, d.Step)
		for _, line := range d.Lines {
			pass.Differences = append(pass.Differences, events.Difference{Step: d.Step, Field: line})
		}
	}
	sent := events.Reconciled{Pass: pass}
	return &sent.Pass, b.Send(ctx, &sent)
}

// Refused sends the event that a change, by its version, is refused or given up, with its problems. The pass continues without it.
func (b Bus) Refused(ctx context.Context, run store.Run, change int64, problems []params.Problem) error {
	return b.Send(ctx, &events.Rejected{Pass: withProblems(run, problems), Change: change})
}

// Answer sends the answer to an event that is no valid request, by its ID.
func (b Bus) Answer(ctx context.Context, run store.Run, event string, problems []params.Problem) error {
	return b.Send(ctx, &events.Rejected{Pass: withProblems(run, problems), Event: event})
}

func withProblems(run store.Run, problems []params.Problem) events.Pass {
	pass := planned(run, nil)
	pass.Problems, pass.Warnings = problems, nil
	return pass
}

func planned(run store.Run, steps []plan.Step) events.Pass {
	pass := events.Pass{
		Rack: run.Rack, Generation: run.Generation, Execution: run.Execution, Request: run.Request,
		Pools: run.Effects, Problems: run.Problems, Warnings: run.Warnings,
	}
	for _, s := range steps {
		pass.Steps = append(pass.Steps, s.Name)
	}
	return pass
}
