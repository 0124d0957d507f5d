// Package steps holds what the steps of a pass have in common. Each step has a package of its own below this one.
package steps

import (
	"fmt"
	"time"

	"github.com/sawhorse-io/sawhorse/internal/params"
)

// Change is one thing that a step did.
type Change struct {
	// Subject names the thing as its owner does: "role demo-karpenter", "NodePool/workload".
	Subject string `json:"subject"`
	// Action is what was done: "created", "updated", "deleted", "tagged", …
	Action string `json:"action"`
}

// Progress is how far a step came. The zero Progress means: nothing to do, all is as planned.
type Progress struct {
	Changes []Change
	// Wait above zero means "not yet": call the step again after that time. A step itself never sleeps.
	Wait time.Duration
	// Unfinished lets the pass go on although the step has more to do: a later pass does it.
	Unfinished bool
	// Note says what is being waited for, or what the operator should know.
	Note string
	// Warnings are what is not as it should be: in the rack's status for as long as no later call of the step says otherwise.
	Warnings []params.Problem
	// Incidents are what happened in this call and is told once, as a warning of this pass.
	Incidents []params.Problem
	// Outputs are values for the rack's outputs folder; an empty value removes one.
	Outputs map[string]string
}

// Changed adds one change.
func (p *Progress) Changed(action, format string, args ...any) {
	p.Changes = append(p.Changes, Change{Subject: fmt.Sprintf(format, args...), Action: action})
}

// Warn adds one warning under a parameter.
func (p *Progress) Warn(parameter, format string, args ...any) {
	p.Warnings = append(p.Warnings, params.Problem{Parameter: parameter, Message: fmt.Sprintf(format, args...)})
}

// Happened adds one incident under a parameter.
func (p *Progress) Happened(parameter, format string, args ...any) {
	p.Incidents = append(p.Incidents, params.Problem{Parameter: parameter, Message: fmt.Sprintf(format, args...)})
}

// NotYet is a Progress that waits.
func (p Progress) NotYet(wait time.Duration, format string, args ...any) (Progress, error) {
	p.Wait, p.Note = wait, fmt.Sprintf(format, args...)
	return p, nil
}

// Rejected is the error of a step that found the input impossible before it changed anything: the pass ends as Rejected.
type Rejected struct {
	Problems []params.Problem
	// Change is the id of the change request that was refused; empty where it was the rack's parameters.
	Change string
}

func (r *Rejected) Error() string {
	text := "rejected"
	for _, p := range r.Problems {
		text += ": " + p.Parameter + ": " + p.Message
	}
	return text
}

// Reject makes a Rejected of one problem.
func Reject(parameter, format string, args ...any) error {
	return &Rejected{Problems: []params.Problem{{Parameter: parameter, Message: fmt.Sprintf(format, args...)}}}
}

// NotReady is an error that time cures within seconds, like an access entry that does not work yet or a server that fails: the
// same call is made again, a few times.
type NotReady struct{ Reason string }

func (n *NotReady) Error() string { return n.Reason }

// Unreachable is the error of a cluster whose API server gave no answer at all. It keeps its Cause to itself: one that is a
// context.DeadlineExceeded client-go's RetryOnConflict takes for its own end, and forgets, and so Helm would count what it has not
// deleted as deleted.
type Unreachable struct {
	Cluster, Host string
	Cause         error
}

// NoAnswer is what its text can be told by, where only the text is left.
const NoAnswer = "the API server gave no answer"

func (u *Unreachable) Error() string {
	return fmt.Sprintf("cluster %s: %s: %s: %v", u.Cluster, u.Host, NoAnswer, u.Cause)
}

// Busy is a server's request for patience: the same call is made again, for minutes.
type Busy struct{ Reason string }

func (b *Busy) Error() string { return b.Reason }
