package outcome

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/smithy-go"
)

// Early is the error of a call that came too early: pods start or end, EKS is at work, or AWS, which is eventually
// consistent, does not know of a resource that was created or deleted seconds ago. Only a step can tell the last from a
// permanent refusal: by the age of the resource. The step is called again after Wait; Note says what it waits for.
type Early struct {
	Wait time.Duration
	Note string
}

func (e *Early) Error() string { return e.Note }

// NotYet returns an Early.
func NotYet(wait time.Duration, format string, args ...any) error {
	return &Early{Wait: wait, Note: fmt.Sprintf(format, args...)}
}

// Until ends a call of a step: it turns an Early into a wait and returns every other error as it is.
func (p Progress) Until(err error) (Progress, error) {
	var early *Early
	if !errors.As(err, &early) {
		return p, err
	}
	return p.NotYet(early.Wait, "%s", early.Note)
}

// Code returns the code of an error of AWS. It is empty for other errors.
func Code(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

// Deletions records when Sawhorse last deleted a resource of a rack, because AWS may still return the resource, or hold
// its name, for a while.
type Deletions interface {
	NoteDeletion(ctx context.Context, rack, resource string, at time.Time) error
	// Deletion returns the zero time if Sawhorse never deleted the resource.
	Deletion(ctx context.Context, rack, resource string) (time.Time, error)
}

// propagation is how long parts of AWS may not know of a new resource. IAM's own reads lag by seconds, and other
// services learn of a change in IAM after some 10 s. A refusal after a minute has another reason.
const propagation = time.Minute

// Young reports whether something was created so recently that parts of AWS may not know of it. The time is AWS's own;
// nil counts as old.
func Young(made *time.Time, now time.Time) bool { return made != nil && now.Sub(*made) < propagation }
