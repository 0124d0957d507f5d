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
	{fault: fault.Fault{Call: fault.Call{Function: "nodepools", Service: "kubernetes", Action: "apply nodepools.karpenter.sh"}, Nth: 1, Kind: fault.Lost}, how: Itself},
	{fault: fault.Fault{Call: fault.Call{Function: "validate", Service: "dynamodb", Action: "PutItem"}, Nth: 2, Kind: fault.Kill}, how: Itself},
	{fault: fault.Fault{Call: fault.Call{Function: fault.StateMachine, Service: "dynamodb", Action: "UpdateItem"}, Nth: 1, Kind: Stop}, how: Itself},
	{fault: fault.Fault{Call: fault.Call{Function: "report", Service: "ssm", Action: "PutParameter"}, Nth: 1, Kind: fault.Reset}, how: Itself},
	{fault: fault.Fault{Call: fault.Call{Function: "nodepools", Service: "kubernetes", Action: "get nodepools.karpenter.sh"}, Nth: 1, Kind: fault.Slow}, how: Itself},
	{fault: fault.Fault{Call: fault.Call{Function: "validate", Service: "ec2", Action: "DescribeSubnets"}, Nth: 1, Kind: fault.Timeout}, how: Itself},
	{fault: fault.Fault{Call: fault.Call{Function: "nodepools", Service: "kubernetes", Action: "get nodepools.karpenter.sh"}, Nth: 1, Times: 4, Kind: fault.Throttle}, how: Itself},
	{fault: fault.Fault{Call: fault.Call{Function: "validate", Service: "ssm", Action: "GetParametersByPath"}, Nth: 1, Times: 4, Kind: fault.Error}, how: Itself},
	{fault: fault.Fault{Call: fault.Call{Function: "nodepools", Service: "kubernetes", Action: "get nodepools.karpenter.sh"}, Nth: 1, Kind: RestartAPIServer}, how: Itself},
	{fault: fault.Fault{Call: fault.Call{Function: fault.StateMachine, Service: "dynamodb", Action: "UpdateItem"}, Nth: 2, Kind: fault.Lost}, how: Itself},
	{fault: fault.Fault{Call: fault.Call{Function: "nodepools", Service: "dynamodb", Action: "UpdateItem"}, Nth: 1, Kind: RestartMiniStack}, how: Itself},
	{event: "repeat", how: Itself},
	{event: "drop", how: Resync},
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
