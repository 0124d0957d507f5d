// Package passes reads from the state machine's execution histories which passes ran.
package passes

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"
	"golang.org/x/sync/errgroup"
)

// Iteration is one of a pass: from validate's answer until the rack is released or the next iteration begins. An answer that
// SSM's replica is behind begins none: validate is called again a second later.
type Iteration struct {
	Rack, Outcome string
	Steps         int
	From, To      time.Time
}

// History describes what the executions since a time did.
type History struct {
	// Iterations are sorted by their beginning.
	Iterations []Iteration
	// Executions is the number of executions. Those without an iteration found the rack's lease held.
	Executions int
	// Lambdas is the number of function calls.
	Lambdas int
	// Paths has the states that each execution entered, in order.
	Paths [][]string
	// Timelines has the same with the times, sorted by their beginning.
	Timelines []Timeline
	// Failed lists the executions that did not succeed.
	Failed []string
	// Started has the start time of each execution, Entered the time at which each state was entered.
	Started, Entered []time.Time
	// Calls are the function calls, from begin to end. Throttled counts the calls that were throttled and made again.
	// Slowest is the longest time from the first throttled try of a call to its success.
	Calls     []Span
	Throttled int
	Slowest   time.Duration
}

// Timeline is when an execution began, and when it entered each of its states.
type Timeline struct {
	Began  time.Time
	States []Visit
}

// Visit is a state that an execution entered at a time.
type Visit struct {
	State string
	At    time.Time
}

// Span is a period of time.
type Span struct{ From, To time.Time }

// add adds the history of one execution.
func (h *History) add(one History) {
	h.Iterations, h.Paths, h.Lambdas = append(h.Iterations, one.Iterations...), append(h.Paths, one.Paths...), h.Lambdas+one.Lambdas
	h.Timelines = append(h.Timelines, one.Timelines...)
	h.Started, h.Entered, h.Calls = append(h.Started, one.Started...), append(h.Entered, one.Entered...), append(h.Calls, one.Calls...)
	h.Throttled, h.Slowest = h.Throttled+one.Throttled, max(h.Slowest, one.Slowest)
}

// Since waits as Ended does, and returns the history of the executions that began after a time.
func Since(ctx context.Context, config aws.Config, since time.Time, events int) (History, error) {
	if err := Ended(ctx, config, since, events); err != nil {
		return History{}, err
	}
	states, machine, err := StateMachine(ctx, config)
	if err != nil {
		return History{}, err
	}
	var history History
	var mu sync.Mutex
	readers, readCtx := errgroup.WithContext(ctx)
	readers.SetLimit(8)
	pages := sfn.NewListExecutionsPaginator(states, &sfn.ListExecutionsInput{StateMachineArn: machine})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return history, fmt.Errorf("executions: list: %w", err)
		}
		for _, e := range page.Executions {
			if !e.StartDate.After(since) {
				continue
			}
			history.Executions++
			if e.Status != types.ExecutionStatusSucceeded {
				end, err := states.DescribeExecution(ctx, &sfn.DescribeExecutionInput{ExecutionArn: e.ExecutionArn})
				if err != nil {
					return history, fmt.Errorf("execution %s: describe: %w", *e.Name, err)
				}
				history.Failed = append(history.Failed,
					fmt.Sprintf("%s %s %s: %s", *e.Name, e.Status, aws.ToString(end.Error), aws.ToString(end.Cause)))
			}
			readers.Go(func() error {
				one, err := read(readCtx, states, *e.ExecutionArn)
				mu.Lock()
				defer mu.Unlock()
				history.add(one)
				return err
			})
		}
	}
	err = readers.Wait()
	slices.SortFunc(history.Iterations, func(a, b Iteration) int { return a.From.Compare(b.From) })
	slices.SortFunc(history.Timelines, func(a, b Timeline) int { return a.Began.Compare(b.Began) })
	return history, err
}

// StateMachine returns a client and the ARN of the only state machine.
func StateMachine(ctx context.Context, config aws.Config) (*sfn.Client, *string, error) {
	states := sfn.NewFromConfig(config)
	machines, err := states.ListStateMachines(ctx, &sfn.ListStateMachinesInput{})
	if err != nil {
		return nil, nil, fmt.Errorf("state machines: list: %w", err)
	}
	if n := len(machines.StateMachines); n != 1 {
		return nil, nil, fmt.Errorf("state machines: wanted one, found %d", n)
	}
	return states, machines.StateMachines[0].StateMachineArn, nil
}

var debounce = regexp.MustCompile(`"Seconds": *"{% *\$max\(\[([0-9]+),`)

// Debounce returns how long a pass waits for the end of a burst of writes.
func Debounce(ctx context.Context, config aws.Config) (time.Duration, error) {
	states, machine, err := StateMachine(ctx, config)
	if err != nil {
		return 0, err
	}
	described, err := states.DescribeStateMachine(ctx, &sfn.DescribeStateMachineInput{StateMachineArn: machine})
	if err != nil {
		return 0, fmt.Errorf("state machine: describe: %w", err)
	}
	found := debounce.FindStringSubmatch(*described.Definition)
	if found == nil {
		return 0, fmt.Errorf("state machine: its definition has no debounce time")
	}
	return time.ParseDuration(found[1] + "s")
}

// Running returns the number of running executions.
func Running(ctx context.Context, config aws.Config) (int, error) {
	states, machine, err := StateMachine(ctx, config)
	if err != nil {
		return 0, err
	}
	return running(ctx, states, machine)
}

func running(ctx context.Context, states *sfn.Client, machine *string) (int, error) {
	n := 0
	pages := sfn.NewListExecutionsPaginator(states, &sfn.ListExecutionsInput{
		StateMachineArn: machine, StatusFilter: types.ExecutionStatusRunning,
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return n, fmt.Errorf("executions: list: %w", err)
		}
		n += len(page.Executions)
	}
	return n, nil
}

// limit only bounds a wait that would hang.
const limit = 15 * time.Minute

// Idle waits until no execution runs.
func Idle(ctx context.Context, config aws.Config) error { return Ended(ctx, config, time.Time{}, 0) }

// Ended waits until the passes have ended that serve so many events, which were made after a time: each event starts an
// execution. So it waits until as many have begun, and then until none runs.
func Ended(ctx context.Context, config aws.Config, since time.Time, events int) error {
	states, machine, err := StateMachine(ctx, config)
	if err != nil {
		return err
	}
	begun := 0
	for deadline := time.Now().Add(limit); ; {
		if begun < events {
			if begun, err = beganSince(ctx, states, machine, since); err != nil {
				return err
			}
		}
		n, err := running(ctx, states, machine)
		if err != nil || n == 0 && begun >= events {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("after %s %d executions still run, and %d have begun for %d events", limit, n, begun, events)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// beganSince returns the number of executions that began after a time.
func beganSince(ctx context.Context, states *sfn.Client, machine *string, since time.Time) (n int, err error) {
	pages := sfn.NewListExecutionsPaginator(states, &sfn.ListExecutionsInput{StateMachineArn: machine})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return n, fmt.Errorf("executions: list: %w", err)
		}
		for _, e := range page.Executions {
			if e.StartDate.After(since) {
				n++
			}
		}
	}
	return n, nil
}

// read reads the history of one execution. validate's answer begins an iteration. The next answer or the end of the
// execution ends it.
func read(ctx context.Context, states *sfn.Client, execution string) (History, error) {
	r := reader{}
	pages := sfn.NewGetExecutionHistoryPaginator(states, &sfn.GetExecutionHistoryInput{ExecutionArn: &execution, MaxResults: 1000})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return History{}, fmt.Errorf("execution %s: history: %w", execution, err)
		}
		for _, event := range page.Events {
			r.event(event)
		}
	}
	r.history.Paths, r.history.Timelines = [][]string{r.path}, []Timeline{r.timeline}
	return r.history, nil
}

// reader reads one execution's events.
type reader struct {
	history  History
	rack     string
	path     []string
	timeline Timeline
	// called is when the current function call began. refused is when its first throttled try failed.
	called, refused time.Time
}

func (r *reader) event(event types.HistoryEvent) {
	h := &r.history
	if len(h.Iterations) > 0 {
		h.Iterations[len(h.Iterations)-1].To = *event.Timestamp
	}
	if entered := event.StateEnteredEventDetails; entered != nil {
		r.path, h.Entered = append(r.path, *entered.Name), append(h.Entered, *event.Timestamp)
		r.timeline.States = append(r.timeline.States, Visit{*entered.Name, *event.Timestamp})
		r.refused = time.Time{}
	}
	if start := event.ExecutionStartedEventDetails; start != nil {
		r.rack, h.Started = rackOf(aws.ToString(start.Input)), append(h.Started, *event.Timestamp)
		r.timeline.Began = *event.Timestamp
	}
	if task := event.TaskScheduledEventDetails; task != nil && strings.Contains(aws.ToString(task.Resource), "lambda") {
		h.Lambdas++
		r.called = *event.Timestamp
	}
	if failed := event.TaskFailedEventDetails; failed != nil {
		r.ended(*event.Timestamp)
		if aws.ToString(failed.Error) == "Throttled" {
			h.Throttled++
			if r.refused.IsZero() {
				r.refused = *event.Timestamp
			}
		}
	}
	done := event.TaskSucceededEventDetails
	if done == nil || done.Output == nil {
		return
	}
	r.ended(*event.Timestamp)
	if !r.refused.IsZero() {
		h.Slowest = max(h.Slowest, event.Timestamp.Sub(r.refused))
	}
	var answer struct {
		Payload struct {
			Outcome string
			Steps   []any
		}
	}
	if json.Unmarshal([]byte(*done.Output), &answer) == nil && !slices.Contains([]string{"", "Outdated"}, answer.Payload.Outcome) {
		p := answer.Payload
		h.Iterations = append(h.Iterations, Iteration{
			Rack: r.rack, Outcome: p.Outcome, Steps: len(p.Steps), From: *event.Timestamp, To: *event.Timestamp,
		})
	}
}

// ended ends the current function call, if there is one.
func (r *reader) ended(now time.Time) {
	if !r.called.IsZero() {
		r.history.Calls = append(r.history.Calls, Span{r.called, now})
		r.called = time.Time{}
	}
}

// rackOf returns the rack that an execution's event names.
func rackOf(input string) string {
	var event struct{ Detail struct{ Rack, Name string } }
	if json.Unmarshal([]byte(input), &event) != nil {
		return ""
	}
	if event.Detail.Rack != "" {
		return event.Detail.Rack
	}
	_, rest, _ := strings.Cut(event.Detail.Name, "/racks/")
	rack, _, _ := strings.Cut(rest, "/")
	return rack
}

// Overlaps returns the iterations of one rack that ran at the same time. There must be none.
func (h History) Overlaps() []string {
	var found []string
	last := map[string]Iteration{}
	for _, r := range h.Iterations {
		if before, known := last[r.Rack]; known && r.From.Before(before.To) {
			found = append(found, fmt.Sprintf("%+v and %+v", before, r))
		}
		last[r.Rack] = r
	}
	return found
}

// AtOnce returns the maximum number of concurrent iterations.
func (h History) AtOnce() int {
	var spans []Span
	for _, r := range h.Iterations {
		spans = append(spans, Span{r.From, r.To})
	}
	return AtOnce(spans)
}

// AtOnce returns the maximum number of periods that overlap at one moment.
func AtOnce(spans []Span) int {
	most := 0
	for _, s := range spans {
		n := 0
		for _, other := range spans {
			if !other.From.After(s.From) && other.To.After(s.From) {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// InASecond returns the maximum number of times that lie within one second.
func InASecond(times []time.Time) int {
	times = slices.SortedFunc(slices.Values(times), time.Time.Compare)
	most, first := 0, 0
	for i, at := range times {
		for at.Sub(times[first]) >= time.Second {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}
