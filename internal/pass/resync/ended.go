package resync

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/pass/report"
	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/statemachine"
)

// ended reports an execution that failed, was stopped or timed out, frees its rack, and starts a pass if requests remain.
func (r *Resync) ended(ctx context.Context, event Event) (Answer, error) {
	name := store.OfInput(event.Detail.Input, r.Paths)
	if name == "" {
		return Answer{}, nil
	}
	where, err := r.where(ctx, event)
	if err != nil {
		return Answer{}, err
	}
	exists, listed, err := r.Store.Exists(ctx, r.Parameters, r.Paths, name)
	if err != nil {
		return Answer{}, err
	}
	if exists && !listed { // no pass has read its parameters yet
		if err := r.Store.Enlist(ctx, name, false); err != nil {
			return Answer{}, err
		}
	}
	if slices.Contains(Uncounted, where.state) {
		// The event is not counted in the table, so the next execution starts with the same event.
		return r.follow(ctx, event, name, event.Detail.Input)
	}
	// The status is written while the ended pass still has the lease. Later it could overwrite that of another pass.
	var reporting error
	if exists {
		reporting = r.report(ctx, event, name, where)
	}
	remain, err := r.Store.Free(ctx, name, event.Detail.ExecutionARN, r.quiet(event, where))
	if err != nil {
		return Answer{}, err
	}
	next := request(events.ReconcileRequested{Rack: name, Reason: "an execution ended early"})
	if where.state == "" {
		next = event.Detail.Input // it may not have been counted; if it has been, the repetition is harmless
	} else if !remain {
		return Answer{}, reporting
	}
	answer, err := r.follow(ctx, event, name, next)
	if err != nil {
		return answer, err
	}
	return answer, reporting
}

// report writes the failure to the status and sends its event. If the pass does not have the lease any more, it has done so
// itself, or another pass has taken over.
func (r *Resync) report(ctx context.Context, event Event, name string, where place) error {
	failed := report.Event{
		Rack: name, Execution: event.Detail.ExecutionARN, Generation: where.generation, Step: where.step,
		Started: time.UnixMilli(event.Detail.StartDate), Outcome: outcome.PassFailed, Error: event.Detail.Error, Cause: where.cause,
	}
	if failed.Error == "" {
		failed.Error = event.Detail.Status
	}
	if _, err := r.Report(ctx, failed); err != nil && !errors.Is(err, store.ErrLeaseLost) {
		return fmt.Errorf("rack %s: report execution %s: %w", name, event.Detail.ExecutionARN, err)
	}
	return nil
}

// quiet returns the time until which a function call of the execution may still run, or the zero time if none does. Step
// Functions does not stop a function when an execution is stopped or times out. An execution that failed has waited for it.
func (r *Resync) quiet(event Event, where place) time.Time {
	if event.Detail.Status == string(types.ExecutionStatusFailed) || where.waiting {
		return time.Time{}
	}
	return r.Now().Add(store.CallTime)
}

// Uncounted has the states in which the event may not be counted in the table yet.
var Uncounted = []string{"Intake", "Known", "Request"}

// functions maps states to the functions that they call, except for RunStep, which calls those of the plan's steps.
var functions = map[string]string{"Validate": "validate", "Report": "report", "ReportFailure": "report"}

// place is where in the state machine an execution ended. It is zero if that is unknown.
type place struct {
	state string
	// waiting means that it ended in a Wait state, so no function was running.
	waiting    bool
	step       string
	generation int64
	cause      string
}

// where returns where an execution ended. If it ended in the state Failed, its cause says so. Otherwise where reads the end
// of its history. A throttled read is an error, so that Lambda repeats the call for the notice. If the history cannot be
// read for another reason, the place is unknown.
func (r *Resync) where(ctx context.Context, event Event) (place, error) {
	var failure statemachine.Failure
	if json.Unmarshal([]byte(event.Detail.Cause), &failure) == nil && failure.State != "" {
		return place{state: failure.State, step: failure.Step, generation: failure.Generation, cause: failure.Cause}, nil
	}
	const events = 200 // more than a state with all its retries has
	unknown := place{cause: event.Detail.Cause}
	history, err := r.Machine.GetExecutionHistory(ctx, &sfn.GetExecutionHistoryInput{
		ExecutionArn: &event.Detail.ExecutionARN, ReverseOrder: true, MaxResults: events,
	})
	if retry.IsErrorThrottles(retry.DefaultThrottles).IsErrorThrottle(err).Bool() {
		return unknown, fmt.Errorf("execution %s: read history: %w", event.Detail.ExecutionARN, err)
	}
	if err != nil {
		return unknown, nil
	}
	for _, e := range history.Events {
		entered := e.StateEnteredEventDetails
		if entered == nil || e.Type == types.HistoryEventTypeFailStateEntered { // the state before it is the one that failed
			continue
		}
		p := place{state: *entered.Name, waiting: e.Type == types.HistoryEventTypeWaitStateEntered, cause: event.Detail.Cause}
		var about statemachine.StepInput
		if entered.Input != nil && json.Unmarshal([]byte(*entered.Input), &about) == nil {
			p.step, p.generation = about.Step, about.Generation
		}
		p.step = cmp.Or(p.step, functions[p.state])
		return p, nil
	}
	return unknown, nil
}

// followers is the number of follow-up executions in a row. If they end early too, nothing starts until the next event or
// the schedule, so that a permanent failure does not start passes endlessly.
const followers = 3

// follow starts the execution after one that ended early. Its name has a hash of the other's ARN, so that a repeated notice
// starts one pass, and its number in the row of follow-ups. A name may have at most 80 characters.
func (r *Resync) follow(ctx context.Context, event Event, name, input string) (Answer, error) {
	dead := event.Detail.ExecutionARN[strings.LastIndex(event.Detail.ExecutionARN, ":")+1:]
	before := 0
	_, _ = fmt.Sscanf(dead, "after-%d-", &before) // any other name is that of the first one in a row
	if before >= followers {
		return Answer{}, nil
	}
	id := sha256.Sum256([]byte(event.Detail.ExecutionARN))
	return Answer{Racks: []string{name}}, r.start(ctx, name, input, fmt.Sprintf("after-%d-%s", before+1, hex.EncodeToString(id[:16])))
}
