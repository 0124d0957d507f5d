package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/statemachine"
)

// passes reads one rack's passes from Step Functions. It lists the executions of all racks, and determines each one's
// rack from its input.
type passes struct {
	states  *sfn.Client
	machine string
	rack    string
	known   map[string]*pass // by execution; nil for one of another rack
	// foreign are executions that the event, whose execution is looked for, has not started.
	foreign map[string]bool
}

// pass is an execution for the rack, as far as its history has been read.
type pass struct {
	execution string
	started   time.Time
	read      int64 // the last event that was read
	// holds is true if the execution took the rack's lease. An execution without it left its request to the pass that
	// holds the lease, or is a dry run.
	holds bool
	// state is the execution's current state in the state machine. step and note describe what it does there. since is the
	// time at which it began to.
	state, step, note string
	since             time.Time
	ended             bool
	// failed is the reason why the execution failed, was stopped or timed out.
	failed string
	// versions has the versions of the parameters that it read last. It is nil if it has read none.
	versions map[string]int64
	// lines has the functions' answers that have not been printed yet. found is the last line of validate. said is the
	// last line without its time.
	lines       []string
	found, said string
}

// newPasses finds the stack's state machine by its name.
func newPasses(ctx context.Context, config aws.Config, rack string) (*passes, error) {
	p := &passes{states: sfn.NewFromConfig(config), rack: rack, known: map[string]*pass{}, foreign: map[string]bool{}}
	wanted := ownership.StateMachine(stack())
	pages := sfn.NewListStateMachinesPaginator(p.states, &sfn.ListStateMachinesInput{})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("state machines: list: %w", err)
		}
		for _, m := range page.StateMachines {
			if *m.Name == wanted {
				p.machine = *m.StateMachineArn
				return p, nil
			}
		}
	}
	return nil, fmt.Errorf("there is no stack %s in %s: no state machine is named %s; choose another region with AWS_REGION or another stack "+
		"with SAWHORSE_STACK, or deploy this one", stack(), config.Region, wanted)
}

// running returns the pass that holds the rack's lease now; nil if there is none.
func (p *passes) running(ctx context.Context) (*pass, error) {
	var found *pass
	pages := sfn.NewListExecutionsPaginator(p.states, &sfn.ListExecutionsInput{
		StateMachineArn: &p.machine, StatusFilter: types.ExecutionStatusRunning,
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("executions: list: %w", err)
		}
		for _, e := range page.Executions {
			one, err := p.pass(ctx, *e.ExecutionArn)
			if err != nil {
				return nil, err
			}
			if one != nil && one.holds && !one.ended && (found == nil || one.started.After(found.started)) {
				found = one
			}
		}
	}
	return found, nil
}

// mostLooked is the number of executions that are examined to find the rack's last pass. A rack in which nothing
// is due has none for long.
const mostLooked = 300

// last returns the rack's latest pass that has ended; nil if it is not among the latest executions.
func (p *passes) last(ctx context.Context) (*pass, error) {
	// The latest execution comes first.
	list, err := p.states.ListExecutions(ctx, &sfn.ListExecutionsInput{StateMachineArn: &p.machine, MaxResults: mostLooked})
	if err != nil {
		return nil, fmt.Errorf("executions: list: %w", err)
	}
	for _, e := range list.Executions {
		if one, err := p.pass(ctx, *e.ExecutionArn); err != nil || one != nil && one.holds && one.ended {
			return one, err
		}
	}
	return nil, nil
}

// pass returns the current state of an execution. It returns nil for one of another rack or stack, and for one that
// Step Functions no longer has.
func (p *passes) pass(ctx context.Context, execution string) (*pass, error) {
	one, known := p.known[execution]
	if !known && strings.HasPrefix(execution, strings.Replace(p.machine, ":stateMachine:", ":execution:", 1)+":") {
		about, err := p.states.DescribeExecution(ctx, &sfn.DescribeExecutionInput{ExecutionArn: &execution})
		if err != nil && !errors.As(err, new(*types.ExecutionDoesNotExist)) {
			return nil, fmt.Errorf("execution %s: describe: %w", execution, err)
		}
		if err == nil && store.OfInput(aws.ToString(about.Input), paths()) == p.rack {
			one = &pass{execution: execution, started: aws.ToTime(about.StartDate)}
		}
		p.known[execution] = one
	}
	if one == nil || one.ended {
		return one, nil
	}
	return one, p.update(ctx, one)
}

// update reads what an execution has done since the last update. It reads the history from its end, because a long
// history has many pages.
func (p *passes) update(ctx context.Context, one *pass) error {
	var news []types.HistoryEvent
	pages := sfn.NewGetExecutionHistoryPaginator(p.states, &sfn.GetExecutionHistoryInput{ExecutionArn: &one.execution, ReverseOrder: true})
	for known := false; pages.HasMorePages() && !known; {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("execution %s: read history: %w", one.execution, err)
		}
		for _, event := range page.Events {
			if known = event.Id <= one.read; known {
				break
			}
			news = append(news, event)
		}
	}
	for _, event := range slices.Backward(news) {
		one.happened(event)
	}
	return nil
}

// happened updates the pass with one event of the history.
func (p *pass) happened(event types.HistoryEvent) {
	p.read = event.Id
	switch event.Type {
	case types.HistoryEventTypeExecutionSucceeded:
		p.ended = true
	case types.HistoryEventTypeExecutionFailed:
		p.ended, p.failed = true, aws.ToString(event.ExecutionFailedEventDetails.Error)
	case types.HistoryEventTypeExecutionAborted:
		p.ended, p.failed = true, "somebody stopped the execution"
	case types.HistoryEventTypeExecutionTimedOut:
		p.ended, p.failed = true, "the execution took longer than a pass may"
	}
	if entered := event.StateEnteredEventDetails; entered != nil {
		p.enters(*entered.Name, aws.ToString(entered.Input), aws.ToTime(event.Timestamp))
	}
	if done := event.TaskSucceededEventDetails; done != nil {
		p.answered(aws.ToString(done.Output), aws.ToTime(event.Timestamp))
	}
}

// enters records the state that the pass has entered, and what it does there.
func (p *pass) enters(state, input string, at time.Time) {
	step := p.step
	switch p.state = state; state {
	case "Debounce":
		p.holds, step = true, "debounce"
	case "Validate", "Report":
		step = strings.ToLower(state)
	case "ReportFailure":
		step = "report"
	case "RunStep":
		var about statemachine.StepInput
		if json.Unmarshal([]byte(input), &about) == nil {
			step = about.Step
		}
	}
	if step != p.step {
		p.step, p.since, p.note = step, at, ""
	}
}

// answered records a function's answer. A repeated note of a waiting step is ignored.
func (p *pass) answered(output string, at time.Time) {
	var out struct {
		Payload struct {
			statemachine.ValidateAnswer
			statemachine.StepAnswer
		}
	}
	if json.Unmarshal([]byte(output), &out) != nil {
		return
	}
	answer, line := out.Payload, ""
	switch {
	case answer.Outcome == outcome.PassOutdated:
		line = column("validate", "wait  Parameter Store does not show the last write yet")
	case answer.Outcome != "":
		line = column("validate", validated(answer.Outcome, len(answer.Steps), answer.Report))
		p.versions = answer.Versions
	case answer.Step != "":
		p.note = strings.Join(strings.Fields(answer.Note), " ") // Karpenter's words may have several lines
		line = column(answer.Step, answer.Status+"  "+p.note)
	default:
		return
	}
	if line == p.said {
		return
	}
	p.said = line
	line = at.Format(time.TimeOnly) + "  " + line
	if p.lines = append(p.lines, line); answer.Outcome != "" {
		p.found = line
	}
}

func column(step, text string) string {
	return strings.TrimRight(fmt.Sprintf("%-20s %s", step, text), " ")
}

// validated describes the result of validate. If the pass does not report, the status already has this result.
func validated(of outcome.Outcome, steps int, report bool) string {
	count := fmt.Sprintf("%d steps", steps)
	if steps == 1 {
		count = "1 step"
	}
	switch {
	case of == outcome.PassUnchanged && report:
		return "Unchanged, nothing to do"
	case of == outcome.PassUnchanged:
		return "Unchanged, nothing to do and nothing new to say"
	case of == outcome.PassPaused && report:
		return "Paused, " + count + " due"
	case of == outcome.PassPaused:
		return "Paused, " + count + " due, as the status says already"
	case of == outcome.PassRejected && !report:
		return "Rejected, for what the status says already"
	case steps > 0:
		return string(of) + ", " + count
	default:
		return string(of)
	}
}

// unseen returns the parameters whose version differs from the one that the pass has read, and those that were created
// or deleted since.
func (p *pass) unseen(versions map[string]int64) []string {
	if p.versions == nil {
		return nil
	}
	var all []string
	for name, version := range versions {
		if p.versions[name] != version {
			all = append(all, fmt.Sprintf("%s version %d", name, version))
		}
	}
	for name := range p.versions {
		if _, there := versions[name]; !there {
			all = append(all, name+" deleted")
		}
	}
	slices.Sort(all)
	return all
}

// concluded reports whether the pass ended by itself, so that the status has its result. A pass that handed the rack
// over, or lost it, is followed by another one. A pass that was stopped may be.
func (p *pass) concluded() bool { return p.ended && (p.state == "Done" || p.state == "Failed") }
