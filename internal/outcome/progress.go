// Package outcome defines what a step returns (changes, progress, rejections and waits), the outcomes of passes and the
// states of racks.
package outcome

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// StepFunc runs one step of a plan, or the named part of it.
type StepFunc func(ctx context.Context, p *plan.Plan, part string) (Progress, error)

// Change is one thing that a step did.
type Change struct {
	// Subject names the thing as its owner does: "role demo-karpenter", "NodePool/workload".
	Subject string `json:"subject"`
	// Action says what was done: "created", "updated", "deleted", "tagged", …
	Action string `json:"action"`
}

// Progress is the result of one call of a step. The zero Progress means that nothing was to be done.
type Progress struct {
	Changes []Change
	// Wait above zero asks for another call of the step after that time. A step never sleeps.
	Wait time.Duration
	// Unfinished means that the step is not complete, but that the pass continues. A later pass completes the step.
	Unfinished bool
	// Note says what the step waits for, or what the operator should know.
	Note string
	// Warnings say what is not as it should be. They stay in the rack's status until a later call of the step replaces
	// them.
	Warnings []params.Problem
	// Incidents say what happened in this call. Each is reported once, as a warning of this pass.
	Incidents []params.Problem
	// Outputs are values for the rack's parameter outputs, by the names of events.Outputs. An empty value removes an output.
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

// Shortened returns the progress with its note, warnings and incidents cut to Longest.
func (p Progress) Shortened() Progress {
	p.Note, p.Warnings, p.Incidents = Shorten(p.Note), slices.Clone(p.Warnings), slices.Clone(p.Incidents)
	for _, problems := range [][]params.Problem{p.Warnings, p.Incidents} {
		for i := range problems {
			problems[i].Message = Shorten(problems[i].Message)
		}
	}
	return p
}

// Rejected is the error of a step that found its input impossible before it changed anything. The pass ends as
// Rejected.
type Rejected struct {
	Problems []params.Problem
	// Change is the version of the change that was given up. It is 0 if the rack's parameters were rejected.
	Change int64
}

func (r *Rejected) Error() string {
	text := "rejected"
	for _, p := range r.Problems {
		text += ": " + p.Parameter + ": " + p.Message
	}
	return text
}

// Reject returns a Rejected with one problem.
func Reject(parameter, format string, args ...any) error {
	return &Rejected{Problems: []params.Problem{{Parameter: parameter, Message: fmt.Sprintf(format, args...)}}}
}

// Unreachable is the error for a cluster whose API server gave no answer at all. It does not unwrap to its Cause,
// because that may be a context.DeadlineExceeded. client-go's RetryOnConflict takes such an error for its own timeout
// and returns nil.
type Unreachable struct {
	Cluster, Host string
	Cause         error
}

// NoAnswer is the substring to match when only the error text is available.
const NoAnswer = "the API server gave no answer"

// Reach says what lets a function reach an API server that gave no answer.
const Reach = "If its endpoint is private, deploy the stack with subnetIds and securityGroupIds " +
	"in a network from which it can be reached (docs/private.md), and let those groups in at port 443 of the cluster security group. " +
	"If it is public, see whether its publicAccessCidrs let the function in."

func (u *Unreachable) Error() string {
	return fmt.Sprintf("cluster %s: %s: %s: %v", u.Cluster, u.Host, NoAnswer, u.Cause)
}

// Unmade is in the error of an update that EKS has accepted, and has not made.
const Unmade = "EKS did not make what it had accepted"

// NotHandedOver is in the error of a proof that has failed.
const NotHandedOver = "nothing was handed over"

// TookBack is the substring of the error of a change of Karpenter's version that failed.
const TookBack = "and Sawhorse took it back to"

// NeitherWorks is in it too if the version before does not work any more.
const NeitherWorks = "which does not work either"

// Longest is the maximum length in bytes of a text in the state machine, the log and the records. Parts of it come from
// the cluster and may have any length, and an execution fails if its state has more than 256 KB.
const Longest = 4 << 10

// Shorten cuts a text to Longest, without splitting a character.
func Shorten(text string) string { return ShortenTo(Longest, text) }

// ShortenTo cuts a text to a length in bytes, without splitting a character.
func ShortenTo(length int, text string) string {
	if len(text) <= length {
		return text
	}
	return strings.ToValidUTF8(text[:length], "") + "…"
}
