package validate

import (
	"context"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/rack"
)

// UnknownEvent is an event that names a rack and has a detail-type that Sawhorse does not take: a misspelled one, most likely.
type UnknownEvent struct {
	DetailType string `json:"detailType"`
	ID         string `json:"id"`
}

// refuseUnknown answers an unknown event, so that whoever has sent it does not wait for what never comes. Nothing is read or kept for it:
// whoever may put events on the bus may name any rack, and send any number of them.
func (v *Validate) refuseUnknown(ctx context.Context, event Event) (Answer, error) {
	detailType := event.Unknown.DetailType
	problem := params.NewProblem("detail-type", "",
		"the event's detail-type is %q; allowed are %q and %q; nothing was done for it; send it again; %s",
		detailType, events.TypeReconcileRequested, events.TypeParametersChangeRequested, params.DidYouMean(detailType, events.Requests, "write one of these"))
	run := rack.Run{Rack: event.Rack, Execution: event.Execution, Started: v.now()}
	return Answer{Outcome: Rejected, Steps: []plan.Step{}}, v.bus.Refused(ctx, run, event.Unknown.ID, []params.Problem{problem})
}
