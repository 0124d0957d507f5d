package chaos

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/sawhorse-io/sawhorse/sandbox/chaos/fault"
	"github.com/sawhorse-io/sawhorse/sandbox/user"
)

// slice has one fault of each kind, at calls that every change makes, and the ways in which a change event can be
// delivered wrongly. Faults that do not hide each other share a trial.
var slice = []struct {
	event  string // what the sandbox does with SSM's next change event
	faults []fault.Fault
	how    string // how the trial must end; for Resync also by itself, because the schedule may audit the rack at that moment
}{
	{how: Itself, faults: []fault.Fault{
		faultAt("nodepools", "kubernetes", "apply nodepools.karpenter.sh", 1, fault.Lost),
		faultAt("report", "ssm", "PutParameter", 1, fault.Reset),
	}},
	{how: Itself, faults: []fault.Fault{faultAt("validate", "dynamodb", "PutItem", 2, fault.Kill)}},
	{how: Itself, faults: []fault.Fault{faultAt(fault.StateMachine, "dynamodb", "UpdateItem", 1, Stop)}},
	{how: Itself, faults: []fault.Fault{
		faultAt("validate", "ec2", "DescribeSubnets", 1, fault.Timeout),
		faultAt("nodepools", "kubernetes", "get nodepools.karpenter.sh", 1, fault.Slow),
	}},
	{how: Itself, faults: []fault.Fault{
		fourTimes(faultAt("validate", "ssm", "GetParametersByPath", 1, fault.Error)),
		fourTimes(faultAt("nodepools", "kubernetes", "get nodepools.karpenter.sh", 1, fault.Throttle)),
	}},
	{how: Itself, faults: []fault.Fault{
		faultAt(fault.StateMachine, "dynamodb", "UpdateItem", 2, fault.Lost),
		faultAt("nodepools", "kubernetes", "get nodepools.karpenter.sh", 1, RestartAPIServer),
	}},
	{how: Itself, faults: []fault.Fault{faultAt("nodepools", "dynamodb", "UpdateItem", 1, RestartMiniStack)}},
	{event: "repeat", how: Itself},
	{event: "drop", how: Resync},
}

func faultAt(function, service, action string, nth int, kind fault.Kind) fault.Fault {
	return fault.Fault{Call: fault.Call{Function: function, Service: service, Action: action}, Nth: nth, Kind: kind}
}

func fourTimes(f fault.Fault) fault.Fault {
	f.Times = 4
	return f
}

// Kinds that the sandbox implements. RestartAPIServer restarts the API server before the call continues.
// RestartMiniStack restarts MiniStack, which also ends the function that makes the call and its execution.
const (
	RestartAPIServer fault.Kind = "restart-apiserver"
	RestartMiniStack fault.Kind = "restart-ministack"
)

// Slice runs the slice. The rack must be on with all pool parameters unset, and is left in that state.
func Slice(ctx context.Context, environment user.Environment, out io.Writer) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	w, err := NewWorld(ctx, environment)
	if err != nil {
		return err
	}
	states := map[string]State{}
	for _, s := range []story{change, back} {
		if states[s.to], err = w.undisturbed(ctx, s); err != nil {
			return err
		}
	}
	for i, c := range slice {
		s := []story{change, back}[i%2]
		if c.event != "" {
			if err := w.changeEvents(ctx, c.event); err != nil {
				return err
			}
		}
		result, err := w.try(ctx, s, c.faults, states[s.to])
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s %s\n", c.event, result)
		ended := result.How == c.how || c.how == Resync && result.How == Itself
		if !ended || len(result.Broken)+len(result.Unfired) > 0 {
			return fmt.Errorf("chaos: %s %s; it should have recovered %s", c.event, result, c.how)
		}
	}
	_, err = w.try(ctx, back, nil, states[back.to])
	return err
}

// changeEvents sets what happens to SSM's next change event.
func (w *World) changeEvents(ctx context.Context, order string) error {
	err := w.environment.Sandbox(ctx, http.MethodPost, "change-events?count=1&order="+order, nil, nil)
	return err
}
