package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sawhorse-io/sawhorse/sandbox/fault"
)

// Options choose how much goes wrong.
type Options struct {
	// Seed chooses the order, the sample and the pairs.
	Seed uint64
	// Sample is how many of the single faults are tried; 0 is all.
	Sample int
	// Together is how many single faults are put into one run of a story; 1 tries each alone.
	Together int
	// Pairs is how many random pairs are tried.
	Pairs int
	// Out gets a line for each trial, and the table.
	Out io.Writer
}

// Sandbox starts a new sandbox, calls play with the environment of its users, and ends it.
type Sandbox func(play func(environment []string) error) error

// run is one run of the chaos.
type run struct {
	Options
	sandbox  Sandbox
	recorded *recording
	calls    int
	todo     map[string][]trial // by story
	results  []Result
	again    map[string]bool // trials that have had their second chance
}

// Run tries what the options choose. Its error tells how many trials did not end well.
func Run(ctx context.Context, sandbox Sandbox, options Options) error {
	r := &run{Options: options, sandbox: sandbox, todo: map[string][]trial{}, again: map[string]bool{}}
	if err := r.on(ctx, func(w *World) error {
		var err error
		r.recorded, err = record(ctx, w)
		return err
	}); err != nil {
		return err
	}
	if err := r.on(ctx, func(w *World) error {
		if err := r.recorded.recordFirst(ctx, w); err != nil {
			return err
		}
		r.choose()
		return r.rounds(ctx, w)
	}); err != nil {
		return err
	}
	for r.left() > 0 {
		if err := r.on(ctx, func(w *World) error { return r.fresh(ctx, w) }); err != nil {
			return err
		}
	}
	return r.table()
}

func (r *run) on(ctx context.Context, do func(*World) error) error {
	return r.sandbox(func(environment []string) error {
		w, err := NewWorld(ctx, environment)
		if err != nil {
			return err
		}
		if err := do(w); err != nil && !errors.Is(err, errSpoiled) {
			return err
		}
		return nil
	})
}

// choose draws the trials.
func (r *run) choose() {
	random := rand.New(rand.NewPCG(r.Seed, 0))
	all := r.recorded.enumerate(random)
	fmt.Fprintf(r.Out, "%d calls of the stories:", len(all))
	n := map[string]int{}
	for _, t := range all {
		n[t.story]++
	}
	for _, name := range []string{first.name, change.name, disable.name, enable.name} {
		fmt.Fprintf(r.Out, " %s %d", name, n[name])
	}
	fmt.Fprintln(r.Out)
	r.calls = len(all)
	single := all
	if r.Sample > 0 && r.Sample < len(all) {
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		single = slices.Clone(all[:r.Sample])
		slices.SortStableFunc(single, func(a, b trial) int { return order(a.story) - order(b.story) })
	}
	for _, t := range append(together(single, max(1, r.Together)), pairs(all, r.Pairs, random)...) {
		r.todo[t.story] = append(r.todo[t.story], t)
	}
}

func order(story string) int {
	return slices.Index([]string{first.name, change.name, disable.name, enable.name}, story)
}

func (r *run) left() (n int) {
	for _, trials := range r.todo {
		n += len(trials)
	}
	return n
}

// errSpoiled says that a sandbox is of no more use: something was lost on it.
var errSpoiled = errors.New("the sandbox is not as it should be")

// fresh uses a new sandbox: for a first enabling, and for what is left of the others.
func (r *run) fresh(ctx context.Context, w *World) error {
	if err := r.next(ctx, w, first); err != nil {
		return err
	}
	return r.rounds(ctx, w)
}

// rounds goes on with a rack that is on: all changes, then off and on in turn.
func (r *run) rounds(ctx context.Context, w *World) error {
	for len(r.todo[change.name]) > 0 {
		for _, s := range []story{change, back} {
			if err := r.next(ctx, w, s); err != nil {
				return err
			}
		}
	}
	for len(r.todo[disable.name])+len(r.todo[enable.name]) > 0 {
		for _, s := range []story{disable, enable} {
			if err := r.next(ctx, w, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// next plays a story with the next trial of it, undisturbed where there is none left.
func (r *run) next(ctx context.Context, w *World, s story) error {
	t := trial{story: s.name}
	if queue := r.todo[s.name]; len(queue) > 0 {
		t, r.todo[s.name] = queue[0], queue[1:]
	}
	result, err := w.try(ctx, s, t.faults, r.recorded.states[s.to])
	if err != nil {
		return err
	}
	if len(t.faults) == 0 {
		if result.How != Itself {
			return fmt.Errorf("chaos: undisturbed: %s", result)
		}
		return nil
	}
	// Polling is not the same each time, and another fault may have taken a call's place: a second chance, each alone.
	if !r.again[fmt.Sprint(t)] {
		for _, f := range result.Unfired {
			alone := trial{s.name, []fault.Fault{f}}
			r.again[fmt.Sprint(alone)] = true
			r.todo[s.name] = append(r.todo[s.name], alone)
		}
		if result.How == Unfired {
			fmt.Fprintln(r.Out, "again:", result)
			return nil
		}
		result.Faults = slices.DeleteFunc(result.Faults, func(f fault.Fault) bool { return slices.Contains(result.Unfired, f) })
	}
	r.results = append(r.results, result)
	fmt.Fprintf(r.Out, "%s %4d left  %s\n", time.Now().Format("15:04:05"), r.left(), result)
	if result.How == Lost {
		return errSpoiled
	}
	return nil
}

// table prints the sums, and makes an error of what must not be.
func (r *run) table() error {
	count, faults := map[string]int{}, 0
	var took []time.Duration
	for _, result := range r.results {
		count[result.How]++
		faults += len(result.Faults)
		if result.How == Itself || result.How == Resync {
			took = append(took, result.Took)
		}
	}
	slices.Sort(took)
	median, worst := time.Duration(0), time.Duration(0)
	if len(took) > 0 {
		median, worst = took[len(took)/2], took[len(took)-1]
	}
	fmt.Fprintf(r.Out, "\nseed %d\n%-28s %6d\n%-28s %6d\n%-28s %6d\n", r.Seed, "calls", r.calls, "faults", faults, "runs of a story", len(r.results))
	for _, how := range []string{Itself, Resync, Unfired, Lost} {
		fmt.Fprintf(r.Out, "%-28s %6d\n", "recovered "+how, count[how])
	}
	fmt.Fprintf(r.Out, "%-28s %6.1f s\n%-28s %6.1f s\n", "median recovery", median.Seconds(), "worst recovery", worst.Seconds())
	if bad := count[Lost] + count[Unfired]; bad > 0 || len(r.results) == 0 {
		return fmt.Errorf("chaos: %d of %d runs were lost or met no fault", bad, len(r.results))
	}
	return nil
}
