package handler

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/smithy-go"

	"github.com/sawhorse-io/sawhorse/internal/rack"
	"github.com/sawhorse-io/sawhorse/internal/steps"
)

// The errors that functions return to the state machine. The Lambda runtime reports the outermost Go type's name, so these
// are bare types, named as package statemachine names them; a wrapped error would reach the state machine as "wrapError".
type (
	// Throttled asks for the same call again a little later.
	Throttled struct{ message }
	// LeaseLost ends the pass.
	LeaseLost struct{ message }
	// Rejected says that a step found the input impossible before it changed anything.
	Rejected struct{ message }
	// StepFailed is every other failure.
	StepFailed struct{ message }
)

type message struct{ text string }

func (m message) Error() string { return m.text }

// edge turns an error into one of the named types.
func edge(err error) error {
	var rejected *steps.Rejected
	switch {
	case err == nil:
		return nil
	case errors.Is(err, rack.ErrLeaseLost):
		return LeaseLost{message{err.Error()}}
	case errors.As(err, &rejected):
		return Rejected{message{err.Error()}}
	case throttled(err), errors.As(err, new(*steps.NotReady)):
		return Throttled{message{err.Error()}}
	case errors.Is(err, context.DeadlineExceeded):
		return StepFailed{message{fmt.Sprintf("the call took longer than its time: %v", err)}}
	default:
		return StepFailed{message{err.Error()}}
	}
}

// throttled tells whether AWS asked for patience, after the SDK's own retries.
func throttled(err error) bool {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return false
	}
	switch api.ErrorCode() {
	case "Throttling", "ThrottlingException", "ThrottledException", "TooManyRequestsException", "RequestLimitExceeded",
		"ProvisionedThroughputExceededException", "RequestThrottled", "RequestThrottledException", "TooManyUpdates", "SlowDown", "PriorRequestNotComplete":
		return true
	}
	return false
}
