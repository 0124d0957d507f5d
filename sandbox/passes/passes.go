// Package passes reads from the state machine's histories which passes there were.
package passes

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"
	"golang.org/x/sync/errgroup"
)

// Round is one round of a pass: from validate's answer to the release of the rack, or to the next round.
type Round struct {
	Rack, Outcome string
	Steps         int
	From, To      time.Time
}

// History is what the executions since a time did.
type History struct {
	// Rounds are in the order of their beginnings.
	Rounds []Round
	// Executions is how many there were; those without a round found their rack held.
	Executions int
	// Lambdas is how many calls of functions there were.
	Lambdas int
	// Paths are the states that each execution entered, in order.
	Paths [][]string
	// Failed are the executions that did not succeed.
	Failed []string
}

// Since waits until no execution runs, and reads those that began after a time.
func Since(ctx context.Context, config aws.Config, since time.Time) (History, error) {
	states := sfn.NewFromConfig(config)
	machines, err := states.ListStateMachines(ctx, &sfn.ListStateMachinesInput{})
	if err != nil || len(machines.StateMachines) != 1 {
		return History{}, fmt.Errorf("state machines: %d found: %w", len(machines.StateMachines), err)
	}
	machine := machines.StateMachines[0].StateMachineArn
	if err := idle(ctx, states, machine); err != nil {
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
				history.Failed = append(history.Failed, fmt.Sprintf("%s %s %s: %s", *e.Name, e.Status, aws.ToString(end.Error), aws.ToString(end.Cause)))
			}
			readers.Go(func() error {
				rounds, path, lambdas, err := read(readCtx, states, *e.ExecutionArn)
				mu.Lock()
				defer mu.Unlock()
				history.Rounds, history.Paths, history.Lambdas = append(history.Rounds, rounds...), append(history.Paths, path), history.Lambdas+lambdas
				return err
			})
		}
	}
	err = readers.Wait()
	slices.SortFunc(history.Rounds, func(a, b Round) int { return a.From.Compare(b.From) })
	return history, err
}

// limit only ends a wait that would hang.
const limit = 5 * time.Minute

func idle(ctx context.Context, states *sfn.Client, machine *string) error {
	for deadline := time.Now().Add(limit); ; {
		running, err := states.ListExecutions(ctx, &sfn.ListExecutionsInput{StateMachineArn: machine, StatusFilter: types.ExecutionStatusRunning})
		if err != nil {
			return fmt.Errorf("executions: list: %w", err)
		}
		if len(running.Executions) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("after %s %d executions still run", limit, len(running.Executions))
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// read is an execution's rounds (validate's answer begins one, the next one or the execution's end ends it), the states it
// entered, and how many functions it called.
func read(ctx context.Context, states *sfn.Client, execution string) (rounds []Round, path []string, lambdas int, err error) {
	rack := ""
	pages := sfn.NewGetExecutionHistoryPaginator(states, &sfn.GetExecutionHistoryInput{ExecutionArn: &execution, MaxResults: 1000})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, nil, 0, fmt.Errorf("execution %s: history: %w", execution, err)
		}
		for _, event := range page.Events {
			if len(rounds) > 0 {
				rounds[len(rounds)-1].To = *event.Timestamp
			}
			if entered := event.StateEnteredEventDetails; entered != nil {
				path = append(path, *entered.Name)
			}
			if start := event.ExecutionStartedEventDetails; start != nil {
				rack = rackOf(aws.ToString(start.Input))
			}
			if task := event.TaskScheduledEventDetails; task != nil && strings.Contains(aws.ToString(task.Resource), "lambda") {
				lambdas++
			}
			done := event.TaskSucceededEventDetails
			if done == nil || done.Output == nil {
				continue
			}
			var answer struct {
				Payload struct {
					Outcome string
					Steps   []any
				}
			}
			if json.Unmarshal([]byte(*done.Output), &answer) == nil && answer.Payload.Outcome != "" {
				p := answer.Payload
				rounds = append(rounds, Round{Rack: rack, Outcome: p.Outcome, Steps: len(p.Steps), From: *event.Timestamp, To: *event.Timestamp})
			}
		}
	}
	return rounds, path, lambdas, nil
}

// rackOf is the rack that an execution's event names.
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

// Overlaps are rounds of one rack that ran at the same time: there must be none.
func (h History) Overlaps() []string {
	var found []string
	last := map[string]Round{}
	for _, r := range h.Rounds {
		if before, known := last[r.Rack]; known && r.From.Before(before.To) {
			found = append(found, fmt.Sprintf("%+v and %+v", before, r))
		}
		last[r.Rack] = r
	}
	return found
}

// AtOnce is how many rounds ran at the same time, at most.
func (h History) AtOnce() int {
	most := 0
	for _, r := range h.Rounds {
		n := 0
		for _, other := range h.Rounds {
			if !other.From.After(r.From) && other.To.After(r.From) {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}
