// Package events is what crosses Sawhorse's border as EventBridge events: the ones it takes, the ones it sends. Each has
// a Go type for its detail, a JSON Schema of the whole event (NAME.schema.json) and a sample (NAME.sample.json).
package events

import "encoding/json"

// Source is the source of every event that Sawhorse sends. What it takes may come from any source that is allowed to put
// events on its bus.
const Source = "sawhorse"

// Detail types, as EventBridge carries them in detail-type.
const (
	// TypeReconcileRequested asks for a pass over one rack; its detail is a ReconcileRequested.
	TypeReconcileRequested = "Rack Reconcile Requested"
	// TypeParametersChangeRequested asks for several parameters as one change; its detail is a ParametersChangeRequested.
	TypeParametersChangeRequested = "Rack Parameters Change Requested"
	// TypeReconcileStarted to TypeReconcileFailed are what becomes of a pass.
	TypeReconcileStarted = "Rack Reconcile Started"
	TypeReconciled       = "Rack Reconciled"
	TypeRejected         = "Rack Rejected"
	TypeReconcileFailed  = "Rack Reconcile Failed"
)

// Requests are the detail types that Sawhorse takes on its bus.
var Requests = []string{TypeReconcileRequested, TypeParametersChangeRequested}

// Events of AWS that Sawhorse takes.
const (
	// SSMSource and TypeParameterChange are Parameter Store's notice of a write.
	SSMSource           = "aws.ssm"
	TypeParameterChange = "Parameter Store Change"
	// StatesSource and TypeExecutionChange are Step Functions' notice of an execution's end.
	StatesSource        = "aws.states"
	TypeExecutionChange = "Step Functions Execution Status Change"
)

// Detail is the detail of an event that Sawhorse sends.
type Detail interface {
	// DetailType is the event's detail-type.
	DetailType() string
}

// List is a list that is [] in JSON, and not null, where it is empty.
type List[T any] []T

// MarshalJSON writes the list.
func (l List[T]) MarshalJSON() ([]byte, error) {
	if l == nil {
		return []byte("[]"), nil
	}
	return json.Marshal([]T(l))
}
