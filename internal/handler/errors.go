package handler

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go"

	"github.com/sawhorse-io/sawhorse/internal/rack"
	"github.com/sawhorse-io/sawhorse/internal/steps"
)

// The errors that functions return to the state machine. The Lambda runtime reports the outermost Go type's name, so these
// are bare types, named as package statemachine names them; a wrapped error would reach the state machine as "wrapError".
type (
	// Throttled asks for the same call again, for minutes.
	Throttled struct{ message }
	// Unavailable asks for the same call again, a few times.
	Unavailable struct{ message }
	// LeaseLost ends the pass.
	LeaseLost struct{ message }
	// Rejected says that a step found the input impossible before it changed anything.
	Rejected struct{ message }
	// StepFailed is every other failure.
	StepFailed struct{ message }
)

type message struct{ text string }

func (m message) Error() string { return m.text }

func said(err error) message { return message{steps.Shorten(err.Error())} }

// edge turns an error into one of the named types. The context is the call's: its end is the function's own time limit, while
// a deadline in the error alone may be that of one request.
func edge(ctx context.Context, err error) error {
	var rejected *steps.Rejected
	switch {
	case err == nil:
		return nil
	case errors.Is(err, rack.ErrLeaseLost):
		return LeaseLost{said(err)}
	case errors.As(err, &rejected):
		return Rejected{said(err)}
	case quotaReached(err):
		return StepFailed{said(err)}
	case throttled(err):
		return Throttled{said(err)}
	case ctx.Err() != nil:
		return StepFailed{said(fmt.Errorf("the call took longer than its time: %w", err))}
	case unavailable(err):
		return Unavailable{said(err)}
	default:
		return StepFailed{said(err)}
	}
}

// quotaReached tells whether a quota of the account is used up. The SDK has the code among those of throttling; of the services
// that the functions call, EventBridge alone answers it, where a bus has all the rules that it may have, and waiting changes nothing.
func quotaReached(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && api.ErrorCode() == "LimitExceededException"
}

// throttled tells whether AWS or the API server asked for patience, after the tries of one call.
func throttled(err error) bool {
	if errors.As(err, new(*steps.Busy)) {
		return true
	}
	var api smithy.APIError
	if !errors.As(err, &api) {
		return false
	}
	if _, sdk := retry.DefaultThrottleErrorCodes[api.ErrorCode()]; sdk {
		return true
	}
	switch api.ErrorCode() {
	case "RequestThrottledException", "TooManyUpdates":
		return true
	}
	return false
}

// unavailable tells whether somebody failed himself or did not answer: what the SDK takes for worth another try, and every
// request that broke on its way (net/http's error for that is a *url.Error).
func unavailable(err error) bool {
	var api smithy.APIError
	if errors.As(err, &api) {
		switch api.ErrorCode() {
		case "ConcurrentModification", "ConcurrentModificationException", "EntityTemporarilyUnmodifiable":
			return true // IAM's and EventBridge's, for two changes of one thing at a time
		case "ResourceInUseException":
			return true // EKS's: the answer of a creation was lost, and the SDK's next try finds what it has made; so will the step
		}
	}
	// AWS's answer may break off too: it has come then, so the SDK does not ask again.
	return errors.As(err, new(*steps.NotReady)) || errors.As(err, new(*steps.Unreachable)) || errors.As(err, new(*url.Error)) ||
		errors.Is(err, io.ErrUnexpectedEOF) || retry.IsErrorRetryables(retry.DefaultRetryables).IsErrorRetryable(err) == aws.TrueTernary
}
