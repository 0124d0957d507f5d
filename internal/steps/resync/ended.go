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
	"github.com/sawhorse-io/sawhorse/internal/rack"
	"github.com/sawhorse-io/sawhorse/internal/steps/report"
)

// ended tells of an execution that was stopped or died, frees its rack, and starts a pass if requests remain.
func (r *Resync) ended(ctx context.Context, event Event) (Answer, error) {
	name := rack.OfInput(event.Detail.Input, r.Paths)
	if name == "" {
		return Answer{}, nil
	}
	where, err := r.where(ctx, event)
	if err != nil {
		return Answer{}, err
	}
	exists, err := r.Store.Exists(ctx, r.Parameters, r.Paths, name)
	if err != nil {
		return Answer{}, err
	}
	if exists { // a pass that never came to reading its rack's parameters has not put the rack on the list
		if err := r.Store.Enlist(ctx, name); err != nil {
			return Answer{}, err
		}
	}
	if slices.Contains(Uncounted, where.state) {
		// Nothing but this execution had the event, so the event itself is taken up again.
		return r.follow(ctx, event, name, event.Detail.Input)
	}
	// The status is written while the dead pass still has the lease: later, it could hide what another pass has written.
	var telling error
	if exists {
		telling = r.tell(ctx, event, name, where)
	}
	remain, err := r.Store.Free(ctx, name, event.Detail.ExecutionARN, r.quiet(event, where))
	if err != nil {
		return Answer{}, err
	}
	next := request(events.ReconcileRequested{Rack: name, Reason: "an execution ended early"})
	if where.state == "" {
		next = event.Detail.Input // it may not have been counted; where it has been, the same event again does no harm
	} else if !remain {
		return Answer{}, telling
	}
	answer, err := r.follow(ctx, event, name, next)
	if err != nil {
		return answer, err
	}
	return answer, telling
}

// tell writes the failure into the status and onto the bus, unless the pass had let go of its rack: then it has done so
// itself, or another pass has the word.
func (r *Resync) tell(ctx context.Context, event Event, name string, where place) error {
	failed := report.Event{
		Rack: name, Execution: event.Detail.ExecutionARN, Generation: where.generation, Step: where.step,
		Started: time.UnixMilli(event.Detail.StartDate), Outcome: "Failed", Error: event.Detail.Error, Cause: where.cause,
	}
	if failed.Error == "" {
		failed.Error = event.Detail.Status
	}
	if _, err := r.Report(ctx, failed); err != nil && !errors.Is(err, rack.ErrLeaseLost) {
		return fmt.Errorf("rack %s: report execution %s: %w", name, event.Detail.ExecutionARN, err)
	}
	return nil
}

// quiet is when nothing of an execution runs any more; the zero time where nothing does. Step Functions does not stop the
// function that it has called; only an execution that failed by itself has waited for it.
func (r *Resync) quiet(event Event, where place) time.Time {
	if event.Detail.Status == string(types.ExecutionStatusFailed) || where.waiting {
		return time.Time{}
	}
	return r.Now().Add(rack.CallTime)
}

// Uncounted are the states in which an event is not in the table yet.
var Uncounted = []string{"Intake", "Known", "RecordChange", "Request"}

// functions are those that are called outside of a plan's steps, by the state that calls them.
var functions = map[string]string{"Validate": "validate", "Report": "report", "ReportFailure": "report"}

// place is where in the state machine an execution ended; the zero place where nobody knows.
type place struct {
	state string
	// waiting tells that no function was being called.
	waiting    bool
	step       string
	generation int64
	cause      string
}

// where tells where an execution ended. One that came to the state Failed says so in its cause. Of any other the end of the
// history is read; a throttled look is an error, so that Lambda calls again for the notice. Where the history cannot be read for
// another reason, less is told, and the worst is assumed.
func (r *Resync) where(ctx context.Context, event Event) (place, error) {
	var said struct {
		Cause, State, Step string
		Generation         int64
	}
	if json.Unmarshal([]byte(event.Detail.Cause), &said) == nil && said.State != "" {
		return place{state: said.State, step: said.Step, generation: said.Generation, cause: said.Cause}, nil
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
		if entered == nil || e.Type == types.HistoryEventTypeFailStateEntered { // which state went there is of interest
			continue
		}
		p := place{state: *entered.Name, waiting: e.Type == types.HistoryEventTypeWaitStateEntered, cause: event.Detail.Cause}
		var about struct {
			Step       string `json:"step"`
			Generation int64  `json:"generation"`
		}
		if entered.Input != nil && json.Unmarshal([]byte(*entered.Input), &about) == nil {
			p.step, p.generation = about.Step, about.Generation
		}
		p.step = cmp.Or(p.step, functions[p.state])
		return p, nil
	}
	return unknown, nil
}

// followers is how many executions in a row may end early before the next event, or the schedule, is waited for: what kills
// every pass must not start passes without end.
const followers = 3

// follow starts the execution after one that ended early. Its name is made of the other's, so that the same notice twice
// starts one pass, and begins with its place in the row. It has a hash, because names of executions have 80 characters.
func (r *Resync) follow(ctx context.Context, event Event, name, input string) (Answer, error) {
	dead := event.Detail.ExecutionARN[strings.LastIndex(event.Detail.ExecutionARN, ":")+1:]
	before := 0
	_, _ = fmt.Sscanf(dead, "after-%d-", &before) // any other name is that of the first
	if before >= followers {
		return Answer{}, nil
	}
	id := sha256.Sum256([]byte(event.Detail.ExecutionARN))
	return Answer{Racks: []string{name}}, r.start(ctx, name, input, fmt.Sprintf("after-%d-%s", before+1, hex.EncodeToString(id[:16])))
}
