package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sawhorse-io/sawhorse/sandbox/fault"
	"github.com/sawhorse-io/sawhorse/sandbox/heartbeat"
	"github.com/sawhorse-io/sawhorse/sandbox/user"
)

// Options choose how much goes wrong.
type Options struct {
	// Seed chooses the order, the sample and the pairs.
	Seed uint64
	// Function leaves the single faults to the calls of one function; empty is all.
	Function string
	// Sample is how many of the single faults are tried; 0 is all.
	Sample int
	// Together is how many single faults are put into one run of a story; 1 tries each alone.
	Together int
	// Pairs is how many random pairs are tried.
	Pairs int
	// Sandboxes is how many sandboxes are used at a time.
	Sandboxes int
	// Out gets a line for each trial, and the table; in between it tells which one is being played.
	Out *heartbeat.Writer
}

// Sandbox starts a new sandbox in the place n, calls play with the environment of its users, and ends it. Those in different
// places run side by side.
type Sandbox func(ctx context.Context, n int, play func(ctx context.Context, environment user.Environment) error) error

// run is one run of the chaos.
type run struct {
	Options
	sandbox  Sandbox
	recorded *recording
	calls    int

	mu      sync.Mutex         // of what follows: the sandboxes share it
	todo    map[string][]trial // by story
	results []Result
	again   map[string]bool // trials that have had their second chance
}

// Run tries what the options choose. Its error tells how many trials did not end well.
func Run(ctx context.Context, sandbox Sandbox, options Options) error {
	r := &run{Options: options, sandbox: sandbox, todo: map[string][]trial{}, again: map[string]bool{}}
	if err := r.on(ctx, 0, func(ctx context.Context, w *World) error {
		var err error
		r.recorded, err = record(ctx, w)
		return err
	}); err != nil {
		return err
	}
	if err := r.on(ctx, 0, func(ctx context.Context, w *World) error { return r.recorded.recordFirst(ctx, w) }); err != nil {
		return err
	}
	r.choose()
	places, placesCtx := errgroup.WithContext(ctx)
	for n := range max(1, r.Sandboxes) {
		places.Go(func() error {
			for r.left() > 0 {
				if err := r.on(placesCtx, n, r.fresh); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := places.Wait(); err != nil {
		return err
	}
	return r.table()
}

func (r *run) on(ctx context.Context, n int, do func(context.Context, *World) error) error {
	r.Out.At("a sandbox starts")
	return r.sandbox(ctx, n, func(ctx context.Context, environment user.Environment) error {
		defer r.Out.At("a sandbox ends")
		ctx, end := context.WithCancel(ctx)
		defer end()
		w, err := NewWorld(ctx, environment)
		if err != nil {
			return err
		}
		w.playing = r.Out.At
		if err := do(ctx, w); err != nil && !errors.Is(err, errSpoiled) {
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
	single := slices.DeleteFunc(slices.Clone(all), func(t trial) bool { return r.Function != "" && t.faults[0].Function != r.Function })
	if r.Sample > 0 && r.Sample < len(single) {
		random.Shuffle(len(single), func(i, j int) { single[i], single[j] = single[j], single[i] })
		single = single[:r.Sample]
		slices.SortStableFunc(single, func(a, b trial) int { return order(a.story) - order(b.story) })
	}
	for _, t := range append(together(single, max(1, r.Together)), pairs(all, r.Pairs, random)...) {
		r.todo[t.story] = append(r.todo[t.story], t)
	}
}

func order(story string) int {
	return slices.Index([]string{first.name, change.name, disable.name, enable.name}, story)
}

// left is how many trials of these stories have not been begun, or of all.
func (r *run) left(stories ...story) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.leftOf(stories)
}

func (r *run) leftOf(stories []story) (n int) {
	for name, trials := range r.todo {
		if len(stories) == 0 || slices.ContainsFunc(stories, func(s story) bool { return s.name == name }) {
			n += len(trials)
		}
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
	for r.left(change) > 0 {
		for _, s := range []story{change, back} {
			if err := r.next(ctx, w, s); err != nil {
				return err
			}
		}
	}
	for r.left(disable, enable) > 0 {
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
	t := r.take(s)
	result, err := w.try(ctx, s, t.faults, r.recorded.states[s.to])
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		result.How, result.Odd = Lost, []string{err.Error()}
	}
	if len(t.faults) == 0 && (result.How == Resync || len(result.Broken) > 0) {
		return fmt.Errorf("chaos: undisturbed: %s", result)
	}
	if len(t.faults) == 0 && result.How == Itself {
		return nil
	}
	return r.note(t, result)
}

// take takes the next trial of a story from what is to be done; none is left if it has no faults.
func (r *run) take(s story) trial {
	r.mu.Lock()
	defer r.mu.Unlock()
	queue := r.todo[s.name]
	if len(queue) == 0 {
		return trial{story: s.name}
	}
	r.todo[s.name] = queue[1:]
	return queue[0]
}

// note keeps a result, or has the faults that did not happen tried again.
func (r *run) note(t trial, result Result) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	// Polling is not the same each time, and another fault may have taken a call's place: a second chance, each alone.
	if !r.again[fmt.Sprint(t)] {
		for _, f := range result.Unfired {
			alone := trial{t.story, []fault.Fault{f}}
			r.again[fmt.Sprint(alone)] = true
			r.todo[t.story] = append(r.todo[t.story], alone)
		}
		if result.How == Unfired {
			fmt.Fprintln(r.Out, "again:", result)
			return nil
		}
		result.Faults = slices.DeleteFunc(result.Faults, func(f fault.Fault) bool { return slices.Contains(result.Unfired, f) })
	}
	r.results = append(r.results, result)
	fmt.Fprintf(r.Out, "%s %4d left  %s\n", time.Now().Format("15:04:05"), r.leftOf(nil), result)
	if result.How == Lost {
		return errSpoiled
	}
	return nil
}

// table prints the sums, and makes an error of what must not be.
func (r *run) table() error {
	count, faults, broken := map[string]int{}, 0, 0
	var took []time.Duration
	for _, result := range r.results {
		count[result.How]++
		faults += len(result.Faults)
		broken += len(result.Broken)
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
	fmt.Fprintf(r.Out, "%-28s %6d\n", "broken promises", broken)
	fmt.Fprintf(r.Out, "%-28s %6.1f s\n%-28s %6.1f s\n", "median recovery", median.Seconds(), "worst recovery", worst.Seconds())
	if bad := count[Lost] + count[Unfired]; bad > 0 || broken > 0 || len(r.results) == 0 {
		return fmt.Errorf("chaos: %d of %d runs were lost or met no fault, %d promises were broken", bad, len(r.results), broken)
	}
	return nil
}
