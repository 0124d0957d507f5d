package steps

import (
	"errors"
	"fmt"
	"time"
)

// Early is the error of a call that came before AWS knew everywhere what was made or deleted seconds ago. The step is called
// again after Wait, and Note says what it waits for. Only a step can tell it from a refusal that stays: by the age of what the
// call is about.
type Early struct {
	Wait time.Duration
	Note string
}

func (e *Early) Error() string { return e.Note }

// NotYet makes an Early.
func NotYet(wait time.Duration, format string, args ...any) error {
	return &Early{Wait: wait, Note: fmt.Sprintf(format, args...)}
}

// Until is the end of a call of a step: an Early becomes a wait, every other error stays one.
func (p Progress) Until(err error) (Progress, error) {
	var early *Early
	if !errors.As(err, &early) {
		return p, err
	}
	return p.NotYet(early.Wait, "%s", early.Note)
}

// propagation is how long something new may be unknown to parts of AWS. IAM's answers are seconds behind, others' knowledge of
// IAM some 10 s; what is refused after a minute is refused for another reason.
const propagation = time.Minute

// Young tells whether something was made so recently that parts of AWS may not know of it. The time is AWS's own; nil is old.
func Young(made *time.Time, now time.Time) bool { return made != nil && now.Sub(*made) < propagation }
