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
// delivered wrongly.
var slice = []struct {
	event string // what the sandbox does with SSM's next change event
	fault fault.Fault
	how   string // how the trial must end
}{
	{fault: faultAt("nodepools", "kubernetes", "apply nodepools.karpenter.sh", 1, fault.Lost), how: Itself},
	{fault: faultAt("validate", "dynamodb", "PutItem", 2, fault.Kill), how: Itself},
	{fault: faultAt(fault.StateMachine, "dynamodb", "UpdateItem", 1, Stop), how: Itself},
	{fault: faultAt("report", "ssm", "PutParameter", 1, fault.Reset), how: Itself},
	{fault: faultAt("nodepools", "kubernetes", "get nodepools.karpenter.sh", 1, fault.Slow), how: Itself},
	{fault: faultAt("validate", "ec2", "DescribeSubnets", 1, fault.Timeout), how: Itself},
	{fault: fourTimes(faultAt("nodepools", "kubernetes", "get nodepools.karpenter.sh", 1, fault.Throttle)), how: Itself},
	{fault: fourTimes(faultAt("validate", "ssm", "GetParametersByPath", 1, fault.Error)), how: Itself},
	{fault: faultAt("nodepools", "kubernetes", "get nodepools.karpenter.sh", 1, RestartAPIServer), how: Itself},
	{fault: faultAt(fault.StateMachine, "dynamodb", "UpdateItem", 2, fault.Lost), how: Itself},
	{fault: faultAt("nodepools", "dynamodb", "UpdateItem", 1, RestartMiniStack), how: Itself},
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
		var faults []fault.Fault
		if c.event != "" {
			if err := w.changeEvents(ctx, c.event); err != nil {
				return err
			}
		} else {
			faults = append(faults, c.fault)
		}
		result, err := w.try(ctx, s, faults, states[s.to])
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s %s\n", c.event, result)
		if result.How != c.how || len(result.Broken) > 0 {
			return fmt.Errorf("chaos: %s %s; it should have recovered %s", c.event, result, c.how)
		}
	}
	_, err = w.try(ctx, back, nil, states[back.to])
	return err
}

// changeEvents sets what happens to SSM's next change event.
func (w *World) changeEvents(ctx context.Context, order string) error {
	_, err := w.gateway(ctx, http.MethodPost, "/_sandbox/change-events?count=1&order="+order, nil)
	return err
}
