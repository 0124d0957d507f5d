package outcome

import (
	"context"
	"time"
)

// Contest records what is known of one setting that Sawhorse applied to an object it does not own, such as the replicas
// of a Deployment.
type Contest struct {
	// Wanted is the value that was applied, as a string that is equal only for equal values.
	Wanted string `json:"wanted"`
	// Written is when Sawhorse last applied it.
	Written time.Time `json:"written"`
	// Times counts how often others have reverted it. Noticed reports whether they have done so since Written.
	Times   int  `json:"times"`
	Noticed bool `json:"noticed,omitempty"`
	// Forced is the generation of the pass that was forced to apply it, or 0.
	Forced int64 `json:"forced,omitempty"`
}

// ReadContest returns what is recorded of a setting, or the zero Contest.
func ReadContest(ctx context.Context, contests Recorder, rack, subject string) (Contest, error) {
	contest, err := Recorded[Contest](ctx, contests, rack, subject)
	if contest == nil {
		return Contest{}, err
	}
	return *contest, nil
}

// truce is how long Sawhorse leaves a contested setting alone before it tries again. If a setting stays unchanged for
// that long, the next revert counts as the first.
const truce = 24 * time.Hour

// Stamp returns the text by which an object says that something failed now. While it Rests, that is not tried again.
func Stamp(now time.Time) string { return now.UTC().Format(time.RFC3339) }

// Rests reports whether a Stamp is so young that what failed is left alone.
func Rests(stamp string, now time.Time) bool {
	at, err := time.Parse(time.RFC3339, stamp)
	return err == nil && now.Sub(at) < truce
}

// Rests reports whether the setting is left alone for now, as others have set it.
func (c Contest) Rests(now time.Time) bool { return c.Noticed && now.Sub(c.Written) <= truce }

// Arbiter decides whether to apply a setting again that others have reverted. The first time it is applied again
// silently. After that it is applied once a day and reported as contested. So Sawhorse does not loop against a tool
// that applies its own manifest in a loop, like Argo CD or Flux.
type Arbiter struct {
	// Contests records Contests by the subject of the setting.
	Contests Recorder
	// Now returns the current time.
	Now func() time.Time
	// Once means that a revert counts however long ago the last one was, and that a contested setting is not applied once a day: each
	// time would replace nodes. It is applied when Sawhorse wants another value, or a pass is forced to.
	Once bool
	// Forced is the generation of a pass that is forced to apply contested settings, each once, or 0.
	Forced int64
}

// Ruling is the decision about a setting that is not as wanted.
type Ruling struct {
	// Write reports whether to apply the setting.
	Write bool
	// Times is how often others have reverted it.
	Times int
	// once is the arbiter's.
	once bool
}

// Contested reports whether the operator must be told.
func (r Ruling) Contested() bool { return r.Times > 1 }

// Rule decides about a setting that is not as wanted. A caller that then applies the setting calls Made.
func (a Arbiter) Rule(ctx context.Context, rack, subject, wanted string) (Ruling, error) {
	contest, err := ReadContest(ctx, a.Contests, rack, subject)
	if err != nil {
		return Ruling{}, err
	}
	rested := !a.Once && a.Now().Sub(contest.Written) > truce
	switch {
	case contest.Wanted != wanted || a.Forced != 0 && contest.Forced != a.Forced:
		return Ruling{Write: true}, nil
	case rested && !contest.Noticed:
		return Ruling{Write: true, Times: 1}, nil
	case contest.Noticed:
		return Ruling{Write: rested, Times: contest.Times, once: a.Once}, nil
	}
	contest.Times, contest.Noticed = contest.Times+1, true
	ruling := Ruling{Write: contest.Times == 1, Times: contest.Times, once: a.Once}
	if !ruling.Write {
		err = Record(ctx, a.Contests.Replace, rack, subject, contest)
	}
	return ruling, err
}

// Made records that a setting was applied as decided by Rule.
func (a Arbiter) Made(ctx context.Context, rack, subject, wanted string, ruling Ruling) error {
	contest := Contest{Wanted: wanted, Written: a.Now().UTC(), Times: ruling.Times, Forced: a.Forced}
	return Record(ctx, a.Contests.Replace, rack, subject, contest)
}

// Holds records a setting that is as wanted and not yet recorded: the call that applied it was stopped before Made.
func (a Arbiter) Holds(ctx context.Context, rack, subject, wanted string) error {
	contest, err := ReadContest(ctx, a.Contests, rack, subject)
	if err != nil || contest.Wanted == wanted {
		return err
	}
	return a.Made(ctx, rack, subject, wanted, Ruling{})
}

// Withdraw deletes a contest, because Sawhorse no longer wants a value for the setting.
func (a Arbiter) Withdraw(ctx context.Context, rack, subject string) error {
	return a.Contests.Forget(ctx, rack, subject)
}

// Contest adds a warning under a parameter about a setting that others keep reverting. It leaves the step unfinished,
// so that later passes look at the setting again. what names the setting; by names or describes who reverts it.
func (p *Progress) Contest(parameter string, ruling Ruling, what, by, wanted string) {
	p.Unfinished = true
	again := "tries again a day after it did so last"
	if ruling.once {
		again = "leaves it, because each time could replace nodes"
	}
	p.Warn(parameter, "%s is contested: %s has set it back %d times. Sawhorse wants %s, and %s; "+
		"let the tool that manages it leave it alone (Argo CD: ignoreDifferences, Flux: an SSA ignore annotation or a patch, Terraform: "+
		"ignore_changes), or write into its source what Sawhorse wants",
		what, by, ruling.Times, wanted, again)
	if ruling.once {
		p.Warnings[len(p.Warnings)-1].Message += `; then send Rack Reconcile Requested with "force": ["contested"]`
	}
}
