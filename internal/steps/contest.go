package steps

import (
	"context"
	"time"
)

// Contest is what is known of one setting that Sawhorse made on something of somebody else's, like the replicas of a Deployment.
type Contest struct {
	// Wanted is what was set, as a text that tells values apart.
	Wanted string `json:"wanted"`
	// Written is when it was set last.
	Written time.Time `json:"written"`
	// Times counts how often others have set it back. Noticed tells that they have done so since Written.
	Times   int  `json:"times"`
	Noticed bool `json:"noticed,omitempty"`
}

// Contests keeps a rack's contests, by what each is about.
type Contests interface {
	// Contest is the zero Contest where nothing is known.
	Contest(ctx context.Context, rack, subject string) (Contest, error)
	SaveContest(ctx context.Context, rack, subject string, contest Contest) error
	ForgetContest(ctx context.Context, rack, subject string) error
}

// truce is how long a contested setting is left alone until it is tried again, and how long one must have stayed for the next time
// that it is set back to count as the first.
const truce = 24 * time.Hour

// Arbiter decides whether a setting that others have set back is made again: once without a word, then once a day and told as contested.
// A tool that applies its own manifest in a loop, like Argo CD or Flux, is not fought in one.
type Arbiter struct {
	Contests Contests
	// Now is the clock.
	Now func() time.Time
}

// Ruling is what is to be done about a setting that is not as wanted.
type Ruling struct {
	// Write tells to make the setting.
	Write bool
	// Times is how often others have set it back.
	Times int
}

// Contested tells that the operator is to know.
func (r Ruling) Contested() bool { return r.Times > 1 }

// Rule judges a setting that is not as wanted. Whoever then makes the setting calls Made.
func (a Arbiter) Rule(ctx context.Context, rack, subject, wanted string) (Ruling, error) {
	contest, err := a.Contests.Contest(ctx, rack, subject)
	if err != nil {
		return Ruling{}, err
	}
	rested := a.Now().Sub(contest.Written) > truce
	switch {
	case contest.Wanted != wanted:
		return Ruling{Write: true}, nil
	case rested && !contest.Noticed:
		return Ruling{Write: true, Times: 1}, nil
	case contest.Noticed:
		return Ruling{Write: rested, Times: contest.Times}, nil
	}
	contest.Times, contest.Noticed = contest.Times+1, true
	ruling := Ruling{Write: contest.Times == 1, Times: contest.Times}
	if !ruling.Write {
		err = a.Contests.SaveContest(ctx, rack, subject, contest)
	}
	return ruling, err
}

// Made notes that a setting was made, as ruled.
func (a Arbiter) Made(ctx context.Context, rack, subject, wanted string, ruling Ruling) error {
	return a.Contests.SaveContest(ctx, rack, subject, Contest{Wanted: wanted, Written: a.Now().UTC(), Times: ruling.Times})
}

// Holds notes a setting of ours that is as wanted, where nothing is noted of it: whoever made it was stopped before Made.
func (a Arbiter) Holds(ctx context.Context, rack, subject, wanted string) error {
	contest, err := a.Contests.Contest(ctx, rack, subject)
	if err != nil || contest.Wanted == wanted {
		return err
	}
	return a.Made(ctx, rack, subject, wanted, Ruling{})
}

// Withdraw ends a contest: Sawhorse wants nothing of the setting any more.
func (a Arbiter) Withdraw(ctx context.Context, rack, subject string) error {
	return a.Contests.ForgetContest(ctx, rack, subject)
}

// Contest warns, under a parameter, of a setting that others keep setting back, and leaves the step unfinished, so that later passes
// look at it again. what is the setting, by is who sets it back, or a description of that.
func (p *Progress) Contest(parameter string, ruling Ruling, what, by, wanted string) {
	p.Unfinished = true
	p.Warn(parameter, "%s is contested: %s has set it back %d times. Sawhorse wants %s, and tries again a day after it did so last; "+
		"let the tool that manages it leave it alone (Argo CD: ignoreDifferences, Flux: an SSA ignore annotation or a patch, Terraform: ignore_changes), or write into its source what Sawhorse wants",
		what, by, ruling.Times, wanted)
}
