// Package events defines the EventBridge events that Sawhorse accepts and sends. Each event has a Go type for its
// detail, a JSON Schema of the whole event (NAME.schema.json) and a sample (NAME.sample.json).
package events

import "encoding/json"

// Source is the source of every event that Sawhorse sends. Events that it accepts may have any source that may put
// events on its bus.
const Source = "sawhorse"

// Detail types: the values of detail-type.
const (
	// TypeReconcileRequested requests a pass over one rack. Its detail is a ReconcileRequested.
	TypeReconcileRequested = "Rack Reconcile Requested"
	// TypeReconcileStarted, TypeReconciled, TypeRejected and TypeReconcileFailed report the start and the result of a
	// pass.
	TypeReconcileStarted = "Rack Reconcile Started"
	TypeReconciled       = "Rack Reconciled"
	TypeRejected         = "Rack Rejected"
	TypeReconcileFailed  = "Rack Reconcile Failed"
	// TypeRolledOut reports that the nodes of a rack have followed a pass. Its detail is a RolledOut.
	TypeRolledOut = "Rack Rolled Out"
	// TypeDegraded and TypeRecovered report that Karpenter stops doing for a rack what it is for, and that it does it again.
	TypeDegraded  = "Rack Degraded"
	TypeRecovered = "Rack Recovered"
)

// Events of AWS that Sawhorse accepts.
const (
	// SSMSource and TypeParameterChange identify Parameter Store's event for a write.
	SSMSource           = "aws.ssm"
	TypeParameterChange = "Parameter Store Change"
	// StatesSource and TypeExecutionChange identify Step Functions' event for the end of an execution.
	StatesSource        = "aws.states"
	TypeExecutionChange = "Step Functions Execution Status Change"
)

// Detail is the detail of an event that Sawhorse sends.
type Detail interface {
	// DetailType returns the event's detail-type.
	DetailType() string
}

// List is a list that marshals to [] instead of null if it is empty.
type List[T any] []T

// MarshalJSON encodes the list.
func (l List[T]) MarshalJSON() ([]byte, error) {
	if l == nil {
		return []byte("[]"), nil
	}
	return json.Marshal([]T(l))
}
