package chaos

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sawhorse-io/sawhorse/sandbox/chaos/fault"
)

// Ways in which a trial can end.
const (
	Itself  = "by itself"    // the retries, the next iteration or the notice of an execution's end were enough
	Resync  = "by resync"    // a full pass, as the schedule starts it, repaired it
	Lost    = "LOST"         // two full passes did not repair it
	Unfired = "did not fire" // no fault was tried
)

// Result is the result of a trial.
type Result struct {
	Story  string
	Faults []fault.Fault
	How    string
	// Took is the time from the first fault until the state was the wanted one.
	Took time.Duration
	// Odd lists the differences from the wanted state: after the first pass if a resync was needed, at the end if the
	// trial was lost.
	Odd []string
	// Unfired lists the faults that did not happen.
	Unfired []fault.Fault
	// Broken lists the ordering promises that were broken on the way.
	Broken []string
}

func (r Result) String() string {
	var faults []string
	for _, f := range r.Faults {
		text := f.String()
		if slices.Contains(r.Unfired, f) {
			text += " (which did not happen)"
		}
		faults = append(faults, text)
	}
	text := fmt.Sprintf("%-8s %-12s %5.1f s  %s", r.Story, r.How, r.Took.Seconds(), strings.Join(faults, " + "))
	for _, line := range r.Odd {
		text += "\n      " + line
	}
	for _, line := range r.Broken {
		text += "\n      broken promise: " + line
	}
	return text
}

// play arms the faults, makes the story's write, and waits until no pass runs. It returns the number of executions
// before the write.
func (w *World) play(ctx context.Context, s story, faults []fault.Fault) (before int, began time.Time, err error) {
	w.playing(fmt.Sprintf("story %s is played, faults: %v", s.name, faults))
	if s.before != nil {
		if err := s.before(w, ctx); err != nil {
			return 0, began, err
		}
	}
	if _, before, err = w.executions(ctx); err != nil {
		return 0, began, err
	}
	if err := w.arm(ctx, faults); err != nil {
		return 0, began, err
	}
	began = time.Now()
	if err := w.write(ctx, s.write...); err != nil {
		return 0, began, err
	}
	return before, began, w.quiet(ctx, before)
}

// settled returns the state once it is stable: two reads agree and no pass has begun in between.
func (w *World) settled(ctx context.Context, before int) (State, error) {
	last, err := w.state(ctx)
	for deadline := time.Now().Add(passLimit); err == nil && time.Now().Before(deadline); {
		time.Sleep(time.Second)
		if err := w.quiet(ctx, before); err != nil {
			return nil, err
		}
		var is State
		if is, err = w.state(ctx); err == nil && len(is.difference(last)) == 0 {
			return is, nil
		}
		last = is
	}
	return last, err
}

// undisturbed plays a story without faults, and returns the resulting state.
func (w *World) undisturbed(ctx context.Context, s story) (State, error) {
	before, began, err := w.play(ctx, s, nil)
	if err != nil {
		return nil, err
	}
	is, err := w.settled(ctx, before)
	if err != nil {
		return nil, err
	}
	broken, err := w.observer.broken(ctx, w, began)
	if err == nil && len(broken) > 0 {
		err = fmt.Errorf("chaos: story %s, undisturbed, has broken promises: %q", s.name, broken)
	}
	return is, err
}

// The time within which the state must become the wanted one after the last pass. Controllers act with a delay, and so does
// the notice that an execution was stopped before it held the lease. If the lease is held, an execution was stopped, and the
// notice of its end starts another one.
const (
	patience       = 20 * time.Second
	patienceIfHeld = time.Minute
)

// becomes waits until the state is the wanted one. It returns the remaining differences.
func (w *World) becomes(ctx context.Context, wanted State, before int) ([]string, error) {
	for rest := time.Now(); ; {
		is, err := w.state(ctx)
		odd := is.difference(wanted)
		if err != nil {
			odd = []string{err.Error()} // an object was deleted between the list and the read
		}
		late := time.Since(rest)
		if len(odd) == 0 || late > patienceIfHeld || late > patience && !is.held() {
			return odd, ctx.Err()
		}
		time.Sleep(poll)
		running, _, err := w.executions(ctx)
		if err != nil {
			return nil, err
		}
		if running > 0 {
			if err := w.quiet(ctx, before); err != nil {
				return nil, err
			}
			rest = time.Now()
		}
	}
}

// try plays a story with faults and lets the system recover.
func (w *World) try(ctx context.Context, s story, faults []fault.Fault, wanted State) (Result, error) {
	result := Result{Story: s.name, Faults: faults, How: Itself}
	before, began, err := w.play(ctx, s, faults)
	if err != nil {
		return result, err
	}
	odd, err := w.becomes(ctx, wanted, before)
	if err != nil {
		return result, err
	}
	report, err := w.report(ctx)
	if err != nil {
		return result, err
	}
	for n := 0; len(odd) > 0; n++ {
		if n == 2 {
			result.How, result.Odd = Lost, odd
			break
		}
		result.How = Resync
		if result.Odd == nil {
			result.Odd = odd
		}
		if odd, err = w.resync(ctx, wanted); err != nil {
			return result, err
		}
	}
	result.Took = time.Since(began)
	if len(report.Fired) > 0 {
		result.Took = time.Since(report.Fired[0].At)
	}
	result.Unfired = unfired(faults, report.Fired)
	if result.Broken, err = w.observer.broken(ctx, w, began); err != nil {
		return result, err
	}
	if len(result.Unfired) > 0 && len(result.Unfired) == len(faults) && result.How != Lost {
		result.How = Unfired
	}
	return result, nil
}

// resync starts a full pass without faults and waits for the wanted state.
func (w *World) resync(ctx context.Context, wanted State) ([]string, error) {
	if err := w.arm(ctx, nil); err != nil {
		return nil, err
	}
	_, before, err := w.executions(ctx)
	if err != nil {
		return nil, err
	}
	if err := w.fullPass(ctx); err != nil {
		return nil, err
	}
	if err := w.quiet(ctx, before); err != nil {
		return nil, err
	}
	return w.becomes(ctx, wanted, before)
}

// unfired returns the faults that have not happened.
func unfired(faults []fault.Fault, fired []fault.Fired) []fault.Fault {
	return slices.DeleteFunc(slices.Clone(faults), func(f fault.Fault) bool {
		return slices.ContainsFunc(fired, func(happened fault.Fired) bool { return happened.Fault == f })
	})
}
