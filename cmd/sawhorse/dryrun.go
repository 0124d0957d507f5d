package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/canonical"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/statemachine"
)

const (
	// dryPatience is how long apply waits for a dry pass. Few of them run at a time.
	dryPatience = 3 * time.Minute
	// skew is how much earlier an execution may seem to begin than the request for it, by another clock.
	skew = 5 * time.Minute
)

// bus is the stack's event bus.
func bus() string { return cmp.Or(os.Getenv("SAWHORSE_BUS"), ownership.Bus) }

// rehearse asks for a dry pass of a proposal, and takes its answer in place of what was judged without the cluster. If there is none, it
// says why, and the proposal stays as it is.
func (w *watcher) rehearse(ctx context.Context, p *proposal) *events.Pass {
	waiting := newProgress()
	defer waiting.end()
	waiting.say("waiting for a dry pass")
	answer, err := w.dryPass(ctx, *p)
	waiting.end()
	if err != nil {
		warn("judged without the cluster, because there is no dry pass: %v", err)
		return nil
	}
	p.judge(answerOf(answer.Problems, answer.Warnings))
	if p.Pools = answer.Pools; p.Pools == nil {
		p.Pools = []events.PoolEffect{}
	}
	return answer
}

// dryPass puts the request for a dry pass on the stack's bus, and waits for the answer.
func (w *watcher) dryPass(ctx context.Context, p proposal) (*events.Pass, error) {
	if err := w.locate(ctx); err != nil { // before the request, because nobody could read its answer otherwise
		return nil, err
	}
	began := w.now()
	event, err := w.request(ctx, p.request())
	if err != nil {
		return nil, err
	}
	for w.now().Sub(began) <= dryPatience {
		if answer, err := w.passes.dryAnswer(ctx, event, began.Add(-skew)); answer != nil || err != nil {
			return answer, err
		}
		if err := w.wait(ctx, time.Second); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("no execution has answered event %s for %s", event, dryPatience)
}

// request is the request for a dry pass of a proposal.
func (p proposal) request() events.ReconcileRequested {
	r := events.ReconcileRequested{Rack: p.Rack, Reason: "sawhorse apply --dry-run", DryRun: true, Set: map[string]string{}}
	for _, d := range p.Differs {
		if d.Then == params.Unset {
			r.Unset = append(r.Unset, d.Parameter)
		} else {
			r.Set[d.Parameter] = d.Then
		}
	}
	return r
}

// request puts a request on the stack's bus, and returns the event's ID.
func (w *watcher) request(ctx context.Context, request events.ReconcileRequested) (string, error) {
	out, err := eventbridge.NewFromConfig(w.aws).PutEvents(ctx, &eventbridge.PutEventsInput{Entries: []types.PutEventsRequestEntry{{
		EventBusName: new(bus()), Source: new("sawhorse-command"), DetailType: new(request.DetailType()),
		Detail: new(string(canonical.JSON(request))),
	}}})
	if err == nil && (out.FailedEntryCount > 0 || len(out.Entries) == 0) {
		err = errors.New("EventBridge refused it")
		if len(out.Entries) > 0 {
			err = fmt.Errorf("EventBridge refused it: %s %s", aws.ToString(out.Entries[0].ErrorCode), aws.ToString(out.Entries[0].ErrorMessage))
		}
	}
	if err != nil {
		return "", fmt.Errorf("request on bus %s: %w; it needs events:PutEvents there (docs/deploy.md, People)", bus(), err)
	}
	return aws.ToString(out.Entries[0].EventId), nil
}

// dryAnswer returns the answer of the dry pass that an event has started, or nil if there is none yet.
func (p *passes) dryAnswer(ctx context.Context, event string, since time.Time) (*events.Pass, error) {
	execution, err := p.startedBy(ctx, event, since)
	if execution == "" || err != nil {
		return nil, err
	}
	pages := sfn.NewGetExecutionHistoryPaginator(p.states, &sfn.GetExecutionHistoryInput{ExecutionArn: &execution, ReverseOrder: true})
	ended := false
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("execution %s: read history: %w", execution, err)
		}
		for _, e := range page.Events {
			var out struct{ Payload statemachine.ValidateAnswer }
			done := e.TaskSucceededEventDetails
			if done != nil && json.Unmarshal([]byte(aws.ToString(done.Output)), &out) == nil && out.Payload.DryRun != nil {
				return out.Payload.DryRun, nil
			}
			ended = ended || strings.HasPrefix(string(e.Type), "Execution") && e.Type != sfntypes.HistoryEventTypeExecutionStarted
		}
	}
	if ended {
		return nil, fmt.Errorf("execution %s ended without an answer", execution)
	}
	return nil, nil
}

// startedBy returns the execution that an event has started since a time, or "" if there is none yet.
func (p *passes) startedBy(ctx context.Context, event string, since time.Time) (string, error) {
	list, err := p.states.ListExecutions(ctx, &sfn.ListExecutionsInput{StateMachineArn: &p.machine, MaxResults: mostLooked})
	if err != nil {
		return "", fmt.Errorf("executions: list: %w", err)
	}
	for _, e := range list.Executions {
		if p.foreign[*e.ExecutionArn] || aws.ToTime(e.StartDate).Before(since) {
			continue
		}
		about, err := p.states.DescribeExecution(ctx, &sfn.DescribeExecutionInput{ExecutionArn: e.ExecutionArn})
		if err != nil {
			return "", fmt.Errorf("execution %s: describe: %w", *e.ExecutionArn, err)
		}
		var input struct {
			ID string `json:"id"`
		}
		if json.Unmarshal([]byte(aws.ToString(about.Input)), &input) == nil && input.ID == event {
			return *e.ExecutionArn, nil
		}
		p.foreign[*e.ExecutionArn] = true
	}
	return "", nil
}

// showSteps prints what a dry pass says that a pass would do, and why it would not do it now.
func showSteps(to io.Writer, pass events.Pass, stopped string) {
	switch {
	case len(pass.Problems) > 0:
		return
	case len(pass.Steps) == 0:
		fmt.Fprintln(to, "a pass would find nothing to do")
		return
	case stopped != "":
		fmt.Fprintln(to, stopped+takesNone)
	}
	fmt.Fprintf(to, "a pass would take these steps: %s\n", strings.Join(pass.Steps, ", "))
	for _, d := range pass.Differences {
		fmt.Fprintf(to, "    %s  %s\n", d.Step, d.Field)
	}
}
