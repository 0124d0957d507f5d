package handler

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

// The errors that functions return to the state machine, which package statemachine describes. The Lambda runtime reports
// the name of the outermost Go type, so these types must not be wrapped: a wrapped error would arrive as "wrapError".
type (
	Throttled   struct{ message }
	Unavailable struct{ message }
	LeaseLost   struct{ message }
	Rejected    struct{ message }
	StepFailed  struct{ message }
)

type message struct{ text string }

func (m message) Error() string { return m.text }

func shortened(err error) message { return message{outcome.Shorten(err.Error())} }

// edge converts an error to one of the named types. ctx is the context of the function's call, which ends at the function's
// timeout. A deadline in the error alone may be that of one request.
func edge(ctx context.Context, err error) error {
	var rejected *outcome.Rejected
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrLeaseLost):
		return LeaseLost{shortened(err)}
	case errors.As(err, &rejected):
		return Rejected{shortened(err)}
	case quotaReached(err):
		return StepFailed{shortened(err)}
	case throttled(err):
		return Throttled{shortened(err)}
	case ctx.Err() != nil:
		return StepFailed{shortened(fmt.Errorf("the call took longer than its time: %w", err))}
	case unavailable(err):
		return Unavailable{shortened(err)}
	default:
		return StepFailed{shortened(err)}
	}
}

// quotaReached reports whether a quota of the account is used up. The SDK counts this code as throttling. Of the services
// that the functions call, only EventBridge returns it, if a bus has its maximum number of rules, and waiting does not help.
func quotaReached(err error) bool { return outcome.Code(err) == "LimitExceededException" }

// throttled reports whether AWS or the API server still asked to slow down after all tries of one call.
func throttled(err error) bool {
	if outcome.IsNotYet(err, outcome.Throttled) {
		return true
	}
	code := outcome.Code(err)
	_, sdk := retry.DefaultThrottleErrorCodes[code]
	return sdk || code == "RequestThrottledException" || code == "TooManyUpdates"
}

// unavailable reports whether the error is a server failure (5xx), a conflict that passes, or a lost connection: all that the
// SDK retries, and every request that net/http could not complete (*url.Error).
func unavailable(err error) bool {
	switch outcome.Code(err) {
	case "ConcurrentModification", "ConcurrentModificationException", "EntityTemporarilyUnmodifiable":
		return true // of IAM and EventBridge, for two changes to one resource at the same time
	case "InternalFailure", "InternalException":
		return true // of EventBridge, for one entry
	case "ResourceInUseException":
		return true // of EKS: the answer to a creation was lost, and the SDK's next try found the resource; the next call finds it too
	}
	// If AWS's answer breaks off, the SDK does not repeat the call.
	return outcome.IsNotYet(err, outcome.Unready) || errors.As(err, new(*outcome.Unreachable)) || errors.As(err, new(*url.Error)) ||
		errors.Is(err, io.ErrUnexpectedEOF) || retry.IsErrorRetryables(retry.DefaultRetryables).IsErrorRetryable(err) == aws.TrueTernary
}
