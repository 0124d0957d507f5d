package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"github.com/sawhorse-io/sawhorse/internal/names"
	"github.com/sawhorse-io/sawhorse/internal/rack"
)

// beginning is how long watch waits for a pass. A write starts one within seconds; one that changes nothing may be over by then.
const beginning = 30 * time.Second

func runWatch(ctx context.Context, use string, args []string) error {
	name, err := rackArgument(args, use)
	if err != nil {
		return err
	}
	aws, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return fmt.Errorf("AWS configuration: %w", err)
	}
	return watch(ctx, aws, name, beginning)
}

// watch follows the rack's pass that runs, or the next one that begins in time, and shows the status that it leaves.
func watch(ctx context.Context, aws aws.Config, name string, patience time.Duration) error {
	before, _ := readStatus(ctx, aws, name) // a rack without a status is watched until it has one
	machine, err := machineARN(ctx, aws)
	if err != nil {
		return err
	}
	w := watcher{states: sfn.NewFromConfig(aws), machine: machine, rack: name, seen: map[string]int64{}}
	for started := time.Now(); ; {
		running, err := w.look(ctx)
		if err != nil {
			return err
		}
		if !running {
			status, err := readStatus(ctx, aws, name)
			if err == nil && (w.any || status.Time != before.Time) {
				return show(status)
			}
			if time.Since(started) > patience {
				if err != nil {
					return err
				}
				fmt.Fprintf(os.Stderr, "No pass of rack %s has begun for %s. The last one reported:\n", name, patience)
				return show(status)
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// watcher follows the executions of one rack.
type watcher struct {
	states  *sfn.Client
	machine string
	rack    string
	seen    map[string]int64 // by execution, the last event that was printed
	line    string           // the last line printed
	any     bool             // something was printed
}

// machineARN finds the state machine by its name, which begins with the stack's.
func machineARN(ctx context.Context, config aws.Config) (string, error) {
	pages := sfn.NewListStateMachinesPaginator(sfn.NewFromConfig(config), &sfn.ListStateMachinesInput{})
	wanted := names.StateMachine(stack())
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return "", fmt.Errorf("state machines: list: %w", err)
		}
		for _, m := range page.StateMachines {
			if *m.Name == wanted {
				return *m.StateMachineArn, nil
			}
		}
	}
	return "", fmt.Errorf("there is no state machine %s in this account and region; deploy the stack, or choose another region", wanted)
}

// look prints what is new in the rack's running executions, and tells whether there is one that holds the rack.
func (w *watcher) look(ctx context.Context) (bool, error) {
	list, err := w.states.ListExecutions(ctx, &sfn.ListExecutionsInput{StateMachineArn: &w.machine, StatusFilter: types.ExecutionStatusRunning})
	if err != nil {
		return false, fmt.Errorf("executions: list: %w", err)
	}
	running := false
	for _, e := range list.Executions {
		ours, err := w.follow(ctx, *e.ExecutionArn)
		if err != nil {
			return false, err
		}
		running = running || ours
	}
	return running, nil
}

// follow prints what one execution has done since the last look, if it is for this rack.
func (w *watcher) follow(ctx context.Context, execution string) (bool, error) {
	ours := false
	pages := sfn.NewGetExecutionHistoryPaginator(w.states, &sfn.GetExecutionHistoryInput{ExecutionArn: &execution})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return false, fmt.Errorf("execution %s: read history: %w", execution, err)
		}
		for _, event := range page.Events {
			if event.ExecutionStartedEventDetails != nil {
				ours = rack.OfInput(*event.ExecutionStartedEventDetails.Input, paths()) == w.rack
			}
			if !ours {
				return false, nil
			}
			w.tell(execution, event)
		}
	}
	return ours, nil
}

// tell prints what a function has answered, once, and a note of a waiting step only when it changes.
func (w *watcher) tell(execution string, event types.HistoryEvent) {
	if event.Id <= w.seen[execution] {
		return
	}
	w.seen[execution] = event.Id
	done := event.TaskSucceededEventDetails
	if done == nil || done.Output == nil {
		return
	}
	var out struct {
		Payload struct {
			Step, Status, Note, Outcome string
			Steps                       []struct{ Name string }
		}
	}
	if json.Unmarshal([]byte(*done.Output), &out) != nil {
		return
	}
	answer, line := out.Payload, ""
	switch {
	case answer.Outcome != "":
		line = fmt.Sprintf("%-20s %s, %d steps", "validate", answer.Outcome, len(answer.Steps))
	case answer.Step != "":
		line = fmt.Sprintf("%-20s %s  %s", answer.Step, answer.Status, answer.Note)
	}
	if line != "" && line != w.line {
		w.line, w.any = line, true
		fmt.Printf("%s  %s\n", event.Timestamp.Format(time.TimeOnly), strings.TrimRight(line, " "))
	}
}
