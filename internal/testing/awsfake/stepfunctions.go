package awsfake

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"
)

// MachineARN is the ARN of the state machine. ExecutionARN is how those of its executions begin.
const (
	machineName  = "Sawhorse-reconcile"
	MachineARN   = "arn:aws:states:" + Region + ":" + Account + ":stateMachine:" + machineName
	ExecutionARN = "arn:aws:states:" + Region + ":" + Account + ":execution:" + machineName + ":"
)

// Execution is an execution of the state machine, with its history from the first event on.
type Execution struct {
	Name, Input string
	Status      types.ExecutionStatus
	Started     time.Time
	Events      []types.HistoryEvent
}

// Add adds an event to the history.
func (e *Execution) Add(at time.Time, event types.HistoryEvent) {
	event.Id, event.PreviousEventId, event.Timestamp = int64(len(e.Events)+1), int64(len(e.Events)), &at
	e.Events = append(e.Events, event)
}

// StepFunctions has one state machine, or none if Gone is set, and its executions, the first one first. They do nothing
// by themselves.
type StepFunctions struct {
	*Calls
	Gone       bool
	Executions []*Execution
}

// ListStateMachines returns the state machine.
func (s *StepFunctions) ListStateMachines(context.Context, *sfn.ListStateMachinesInput,
	...func(*sfn.Options)) (*sfn.ListStateMachinesOutput, error) {
	out := &sfn.ListStateMachinesOutput{StateMachines: []types.StateMachineListItem{}}
	if !s.Gone {
		out.StateMachines = append(out.StateMachines, types.StateMachineListItem{Name: new(machineName), StateMachineArn: new(MachineARN)})
	}
	return out, s.call("StepFunctions.ListStateMachines", "")
}

// ListExecutions returns the last one first, two per page unless more are asked for.
func (s *StepFunctions) ListExecutions(_ context.Context, in *sfn.ListExecutionsInput,
	_ ...func(*sfn.Options)) (*sfn.ListExecutionsOutput, error) {
	if err := s.call("StepFunctions.ListExecutions", string(in.StatusFilter)); err != nil {
		return nil, err
	}
	var all []types.ExecutionListItem
	for _, e := range slices.Backward(s.Executions) {
		if in.StatusFilter == "" || in.StatusFilter == e.Status {
			all = append(all, types.ExecutionListItem{
				ExecutionArn: new(ExecutionARN + e.Name), Name: &e.Name, StartDate: &e.Started, StateMachineArn: new(MachineARN), Status: e.Status,
			})
		}
	}
	page, next := pageOf(all, in.NextToken, max(2, int(in.MaxResults)))
	return &sfn.ListExecutionsOutput{Executions: page, NextToken: next}, nil
}

func (s *StepFunctions) execution(call, arn string) (*Execution, error) {
	if err := s.call("StepFunctions."+call, arn); err != nil {
		return nil, err
	}
	if e := s.named(strings.TrimPrefix(arn, ExecutionARN)); e != nil {
		return e, nil
	}
	return nil, &types.ExecutionDoesNotExist{}
}

func (s *StepFunctions) named(name string) *Execution {
	for _, e := range s.Executions {
		if e.Name == name {
			return e
		}
	}
	return nil
}

// DescribeExecution returns an execution with its input.
func (s *StepFunctions) DescribeExecution(_ context.Context, in *sfn.DescribeExecutionInput,
	_ ...func(*sfn.Options)) (*sfn.DescribeExecutionOutput, error) {
	e, err := s.execution("DescribeExecution", *in.ExecutionArn)
	if err != nil {
		return nil, err
	}
	return &sfn.DescribeExecutionOutput{
		ExecutionArn: in.ExecutionArn, Input: &e.Input, Name: &e.Name, StartDate: &e.Started, StateMachineArn: new(MachineARN), Status: e.Status,
	}, nil
}

// GetExecutionHistory returns three events per page.
func (s *StepFunctions) GetExecutionHistory(_ context.Context, in *sfn.GetExecutionHistoryInput,
	_ ...func(*sfn.Options)) (*sfn.GetExecutionHistoryOutput, error) {
	e, err := s.execution("GetExecutionHistory", *in.ExecutionArn)
	if err != nil {
		return nil, err
	}
	events := slices.Clone(e.Events)
	if in.ReverseOrder {
		slices.Reverse(events)
	}
	page, next := pageOf(events, in.NextToken, 3)
	return &sfn.GetExecutionHistoryOutput{Events: page, NextToken: next}, nil
}

// StartExecution starts one execution for each name. A repeated start succeeds while the first one runs with the same input.
func (s *StepFunctions) StartExecution(_ context.Context, in *sfn.StartExecutionInput,
	_ ...func(*sfn.Options)) (*sfn.StartExecutionOutput, error) {
	if err := s.call("StepFunctions.StartExecution", value(in.Name)); err != nil {
		return nil, err
	}
	name := value(in.Name)
	if len(name) > 80 {
		return nil, &types.InvalidName{}
	}
	if e := s.named(name); e != nil && name != "" {
		if e.Status != types.ExecutionStatusRunning || e.Input != *in.Input {
			return nil, &types.ExecutionAlreadyExists{}
		}
	} else {
		s.Executions = append(s.Executions, &Execution{
			Name: name, Input: *in.Input, Status: types.ExecutionStatusRunning, Started: s.Now(),
		})
	}
	return &sfn.StartExecutionOutput{ExecutionArn: new(ExecutionARN + name), StartDate: new(s.Now())}, nil
}
