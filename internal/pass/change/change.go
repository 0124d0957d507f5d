// Package change writes accepted changes of several parameters to Parameter Store, at its pace, and puts back what it has
// written of a change that cannot be written as a whole. No other function of Sawhorse writes below params/.
package change

import (
	"context"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

// SSM lists the Parameter Store calls of the step.
type SSM interface {
	store.ChangeReader
	PutParameter(context.Context, *ssm.PutParameterInput, ...func(*ssm.Options)) (*ssm.PutParameterOutput, error)
}

// Step writes accepted changes.
type Step struct {
	SSM   SSM
	Store *store.Store
	Paths ownership.Paths
	Now   func() time.Time
}

// Parameter Store accepts three writes per second from an account. A call makes that many writes, and the next call
// follows after pause.
const (
	atOnce = 3
	pause  = time.Second
)

// A change that cannot be written is given up after this many attempts, or this long after it was accepted.
const (
	mostAttempts = 10
	longest      = 15 * time.Minute
)

// Run writes what is left of the rack's accepted changes, one change after the other, and puts back what is left of those that
// were given up. Of the plan it needs only the rack's name.
func (s *Step) Run(ctx context.Context, p *plan.Plan, _ string) (progress outcome.Progress, err error) {
	changes, err := s.Store.Changes(ctx, p.Rack)
	if err != nil || !changes.Writing() {
		return progress, err
	}
	w := writer{Step: s, Changes: &changes, rack: p.Rack, folder: s.Paths.Params(p.Rack), remaining: atOnce, progress: &progress}
	if w.live, err = store.ReadTree(ctx, s.SSM, w.folder); err != nil {
		return progress, err
	}
	w.Recognize(w.live)
	err = w.all(ctx)
	return progress.Until(err)
}

// writer is one call of the step.
type writer struct {
	*Step
	*store.Changes
	rack, folder string
	live         store.Tree
	// remaining is the number of writes that the call may still make.
	remaining int
	progress  *outcome.Progress
}

// all goes through the changes in their order. What comes after a change that is not judged yet is for a later pass.
func (w *writer) all(ctx context.Context) error {
	for i := range w.List {
		c := &w.List[i]
		if len(c.Ends) > 0 { // an earlier call gave it up, and was stopped before it could say so
			return &outcome.Rejected{Change: c.Version, Problems: c.Ends}
		}
		if wait := c.Next.Sub(w.Now()); wait > 0 {
			return outcome.Wait(wait, "change %d is tried again: %s", c.Version, c.Failing)
		}
		var again bool
		var err error
		switch c.State {
		case store.ChangeRequested:
			return nil
		case store.ChangeAccepted:
			again, err = w.write(ctx, i)
		case store.ChangeGivenUp:
			again, err = w.putBack(ctx, i)
		}
		if err != nil || again {
			return err
		}
	}
	return nil
}

// write writes what is left of one change, as far as the call may. later means that it goes on in another iteration.
func (w *writer) write(ctx context.Context, i int) (later bool, err error) {
	c := &w.List[i]
	if edited := c.Edited(w.live); len(edited) > 0 {
		return false, w.giveUp(ctx, i, strings.Join(edited, ", "), "somebody else has written it while the change was being written")
	}
	for j := range c.Writes {
		one := &c.Writes[j]
		if !one.Done {
			at := w.Now()
			version, err := w.put(ctx, one.Name, one.Value)
			if err != nil {
				return w.failed(ctx, i, one.Name, err)
			}
			one.Made(one.Base, version, at)
			c.Succeeded()
			if err := w.save(ctx); err != nil {
				return false, err
			}
		}
		edited, err := w.between(ctx, one)
		if err != nil {
			return w.failed(ctx, i, one.Name, err)
		}
		if edited {
			return false, w.giveUp(ctx, i, one.Name, "somebody else has written it at the same time")
		}
	}
	w.End(i, w.Now())
	return false, w.save(ctx)
}

// between reports whether somebody has written a parameter, or deleted it, between a version and the one that a write of ours has
// made, and takes over their value, which is to be put back. The write is on record, so that a call that is stopped, or that waits for the
// history, leaves the question to the next one.
func (w *writer) between(ctx context.Context, one *store.Write) (edited bool, err error) {
	if one.Since == nil {
		return false, nil
	}
	history, err := store.ReadHistory(ctx, w.SSM, w.folder+"/"+one.Name)
	if err != nil {
		return false, err
	}
	theirs, edited, lacks := one.Between(history, w.Now())
	if lacks {
		return false, outcome.Wait(pause, "Parameter Store's history of %s does not have all before version %d yet", one.Name, one.Version)
	}
	if one.Since = nil; edited {
		one.Before, one.Theirs = theirs.Text, theirs.Modified.UTC()
	}
	return edited, nil
}

// putBack writes again what was there before a change that was given up, unless somebody has written since. One that fails keeps the
// others from nothing. Where it fails for good, the change ends, and what is left of it is named.
func (w *writer) putBack(ctx context.Context, i int) (later bool, err error) {
	c := &w.List[i]
	name, failure := "", error(nil)
	for j := range c.Writes {
		one := &c.Writes[j]
		switch err := w.restore(ctx, c, one); {
		case err == nil || failure != nil && outcome.Code(err) != "":
		case outcome.Code(err) == "": // a wait, or no answer
			return false, err
		default:
			name, failure = one.Name, err
		}
	}
	if failure != nil {
		return w.failed(ctx, i, name, failure)
	}
	w.End(i, w.Now(), w.left(c, "")...)
	return false, w.save(ctx)
}

// restore writes again what was there before one write.
func (w *writer) restore(ctx context.Context, c *store.Change, one *store.Write) error {
	for one.Done && one.Version > 0 {
		edited, err := w.between(ctx, one)
		if err != nil {
			return err
		}
		if edited {
			one.PutBack = false // the read was older than their write
		}
		if one.PutBack || w.live.Versions[one.Name] > one.Version {
			break
		}
		at := w.Now()
		version, err := w.put(ctx, one.Name, one.Before)
		if err != nil {
			return err
		}
		one.Made(one.Version, version, at)
		one.PutBack = true
		c.Succeeded()
		if err := w.save(ctx); err != nil {
			return err
		}
	}
	return nil
}

// standardTier is the maximum length of a value in SSM's standard tier, in bytes.
const standardTier = 4096

// put writes one parameter and returns the version that it made. An existing parameter keeps its type, which cannot be changed,
// and its pattern.
func (w *writer) put(ctx context.Context, name, value string) (int64, error) {
	if w.remaining == 0 {
		return 0, outcome.Wait(pause, "Parameter Store takes %d writes a second", atOnce)
	}
	in := &ssm.PutParameterInput{Name: new(w.folder + "/" + name), Value: &value, Overwrite: new(true)}
	if _, exists := w.live.Values[name]; !exists {
		in.Type = types.ParameterTypeString
	}
	if len(value) > standardTier {
		in.Tier = types.ParameterTierIntelligentTiering
	}
	out, err := w.SSM.PutParameter(ctx, in)
	if err != nil {
		return 0, err
	}
	w.remaining--
	action := "written"
	if value == params.Unset {
		action = "unset"
	}
	w.progress.Changed(action, "parameter %s", name)
	w.live.Values[name], w.live.Versions[name] = value, out.Version
	return out.Version, nil
}

// refusals are SSM's codes for a value that it will never take.
var refusals = map[string]bool{"ParameterPatternMismatchException": true, "ValidationException": true}

// failed decides what follows from a write that failed. The change is tried again, in the next iteration and after its other steps, so
// that the status is reported meanwhile; or it is given up. The reason is the code and not the message, which may contain the value.
func (w *writer) failed(ctx context.Context, i int, name string, err error) (later bool, _ error) {
	c, code := &w.List[i], outcome.Code(err)
	if code == "" { // a wait, or no answer
		return false, err
	}
	c.Failing = name + ": " + code
	if _, throttled := retry.DefaultThrottleErrorCodes[code]; !throttled {
		c.Attempts++
	}
	over := refusals[code] || c.Attempts >= mostAttempts || w.Now().Sub(c.Since) > longest
	if over && c.State == store.ChangeAccepted {
		return false, w.giveUp(ctx, i, name, "Parameter Store does not take its value ("+code+")")
	}
	if over {
		return false, w.abandon(ctx, i, code)
	}
	c.Next = w.Now().Add(delay(c.Attempts)).UTC()
	if err := w.save(ctx); err != nil {
		return false, err
	}
	return true, w.Store.Request(ctx, w.rack)
}

// delay returns how long after so many failed attempts the next one follows. Ten attempts take two minutes.
func delay(attempts int) time.Duration { return min(time.Second<<attempts, 20*time.Second) }

// giveUp ends a change that cannot be written, and this iteration with it, because its plan was made for the change. It requests
// another iteration, which makes a plan without the change and puts back what was written.
func (w *writer) giveUp(ctx context.Context, i int, name, why string) error {
	version := w.List[i].Version
	problem := params.NewProblem(name, "", "the change %d is given up: %s; what it had written is put back, and nothing of it is in "+
		"force; write a change that obeys the parameter's AllowedPattern and the rights of the function change, and write it again", version, why)
	if err := w.Store.Request(ctx, w.rack); err != nil {
		return err
	}
	w.GiveUp(i, w.Now(), problem)
	w.List[i].Ends = []params.Problem{problem}
	if err := w.save(ctx); err != nil {
		return err
	}
	return &outcome.Rejected{Change: version, Problems: w.List[i].Ends}
}

// abandon ends a change that was given up and could not be put back. It requests another iteration, whose plan is made for what is left.
func (w *writer) abandon(ctx context.Context, i int, code string) error {
	if err := w.Store.Request(ctx, w.rack); err != nil {
		return err
	}
	w.End(i, w.Now(), w.left(&w.List[i], code)...)
	return w.save(ctx)
}

// left names what a change that was given up has written and that is not put back: what somebody else has written since, and what
// Parameter Store did not take for the reason of the code.
func (w *writer) left(c *store.Change, code string) (problems []params.Problem) {
	for _, one := range c.Writes {
		if !one.Done || one.PutBack || one.Version == 0 {
			continue
		}
		if w.live.Versions[one.Name] > one.Version {
			problems = append(problems, params.NewProblem(one.Name, "", "it keeps the value that somebody else has written since the "+
				"change %d, which was given up; write it again if it is to have another one", c.Version))
			continue
		}
		problems = append(problems, params.NewProblem(one.Name, "", "it may still have the value of the change %d, which was given up: "+
			"Parameter Store did not take the value from before (%s); write the value that it is to have", c.Version, code))
	}
	return problems
}

func (w *writer) save(ctx context.Context) error {
	return w.Store.SaveChanges(ctx, w.rack, w.Changes, w.Now())
}
