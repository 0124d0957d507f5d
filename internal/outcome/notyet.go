package outcome

import (
	"errors"
	"fmt"
	"time"

	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/ptr"
)

// NotYet is the error of what cannot be done yet, although nothing is wrong with it.
type NotYet struct {
	Reason NotYetReason
	// Wait is after how long a step is called again that is Waiting.
	Wait time.Duration
	// Note says what is waited for, or what answered so.
	Note string
}

// NotYetReason decides who tries again, and for how long.
type NotYetReason int

const (
	// Waiting means that pods start or end, that EKS is at work, or that AWS, which is eventually consistent, does not know of
	// a resource that was created or deleted seconds ago. Only a step can tell the last from a permanent refusal: by the
	// age of the resource. The step is called again after Wait.
	Waiting NotYetReason = iota
	// Unready is an answer that usually passes within seconds, such as an access entry that does not work yet or a server
	// failure. The same call is made again, a few times.
	Unready
	// Throttled is the answer of a server that asks to be called less often (HTTP 429). The same call is made again, for
	// minutes.
	Throttled
)

func (e *NotYet) Error() string { return e.Note }

// Wait returns a NotYet that is Waiting.
func Wait(wait time.Duration, format string, args ...any) error {
	return &NotYet{Reason: Waiting, Wait: wait, Note: fmt.Sprintf(format, args...)}
}

// IsNotYet reports whether an error is a NotYet for a reason.
func IsNotYet(err error, reason NotYetReason) bool {
	var early *NotYet
	return errors.As(err, &early) && early.Reason == reason
}

// Until ends a call of a step: it turns a NotYet that is Waiting into a wait and returns every other error as it is.
func (p Progress) Until(err error) (Progress, error) {
	var early *NotYet
	if !errors.As(err, &early) || early.Reason != Waiting {
		return p, err
	}
	p.Wait, p.Note = early.Wait, early.Note
	return p, nil
}

// Code returns the code of an error of AWS. It is empty for other errors.
func Code(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

// EntryRefused is the error of one entry that EventBridge refused in an answer that is itself no error. With its code, a throttled
// entry is one like any other throttled call. AWS names the codes that pass in its reference of PutEvents.
func EntryRefused(code, text *string) error {
	return fmt.Errorf("EventBridge refused it: %w", &smithy.GenericAPIError{Code: ptr.ToString(code), Message: ptr.ToString(text)})
}

// propagation is how long parts of AWS may not know of a new resource. IAM's own reads lag by seconds, and other
// services learn of a change in IAM after some 10 s; Terraform's AWS provider waits two minutes. A later refusal has another reason.
const propagation = 3 * time.Minute

// Young reports whether something was created so recently that parts of AWS may not know of it. The time is AWS's own;
// nil counts as old.
func Young(made *time.Time, now time.Time) bool { return made != nil && now.Sub(*made) < propagation }
