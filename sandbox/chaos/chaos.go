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

	"github.com/sawhorse-io/sawhorse/sandbox/chaos/fault"
	"github.com/sawhorse-io/sawhorse/sandbox/heartbeat"
	"github.com/sawhorse-io/sawhorse/sandbox/user"
)

// Options choose which faults are injected, and how many.
type Options struct {
	// Seed determines the order, the sample and the pairs.
	Seed uint64
	// Function limits the single faults to the calls of one function; empty means all.
	Function string
	// Sample is the number of single faults to try; 0 means all.
	Sample int
	// Together is the number of single faults in one run of a story; 1 tries each alone.
	Together int
	// Pairs is the number of random pairs to try.
	Pairs int
	// Sandboxes is the number of sandboxes to use concurrently.
	Sandboxes int
	// Out gets a line for each trial and the final table. In between it shows the trial that is running.
	Out *heartbeat.Writer
}

// Sandbox starts a new sandbox in slot n, calls play with the environment of its users, and ends the sandbox. Sandboxes
// in different slots run concurrently.
type Sandbox func(ctx context.Context, n int, play func(ctx context.Context, environment user.Environment) error) error

// run is the state of one chaos run.
type run struct {
	Options
	sandbox  Sandbox
	recorded *recording
	calls    int

	mu      sync.Mutex         // guards the fields below, which the sandboxes share
	todo    map[string][]trial // by story
	results []Result
	chances map[string]int           // how often a fault of a story did not fire
	unfired map[string][]fault.Fault // what is to have another chance together, by story
}

// Run tries the faults that the options choose. Its error gives the number of trials that failed.
func Run(ctx context.Context, sandbox Sandbox, options Options) error {
	r := &run{Options: options, sandbox: sandbox, todo: map[string][]trial{}, chances: map[string]int{}, unfired: map[string][]fault.Fault{}}
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

// choose selects the trials.
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
	for _, t := range append(together(single, r.together()), pairs(all, r.Pairs, random)...) {
		r.todo[t.story] = append(r.todo[t.story], t)
	}
}

func order(story string) int {
	return slices.Index([]string{first.name, change.name, disable.name, enable.name}, story)
}

// left returns how many trials of the given stories, or of all stories, have not started.
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
	for name, faults := range r.unfired {
		if len(stories) == 0 || slices.ContainsFunc(stories, func(s story) bool { return s.name == name }) {
			n += (len(faults) + r.together() - 1) / r.together()
		}
	}
	return n
}

// together is how many single faults are in one run of a story.
func (r *run) together() int { return max(1, r.Together) }

// errSpoiled reports that a sandbox cannot be used any more, because a trial on it did not recover.
var errSpoiled = errors.New("the sandbox is not as it should be")

// fresh uses a new sandbox: first for a first enabling, then for the remaining trials of the other stories.
func (r *run) fresh(ctx context.Context, w *World) error {
	if err := r.next(ctx, w, first); err != nil {
		return err
	}
	return r.rounds(ctx, w)
}

// rounds continues with a rack that is on: all changes first, then off and on in turn.
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

// next runs the next trial of a story. If none is left, it plays the story without faults.
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

// take removes the next trial of a story from the queue, and then what did not fire in those. If none is left, it returns a trial
// without faults.
func (r *run) take(s story) trial {
	r.mu.Lock()
	defer r.mu.Unlock()
	if queue := r.todo[s.name]; len(queue) > 0 {
		r.todo[s.name] = queue[1:]
		return queue[0]
	}
	unfired := r.unfired[s.name]
	some := min(len(unfired), r.together())
	r.unfired[s.name] = unfired[some:]
	return trial{s.name, unfired[:some]}
}

// note records a result, or queues the faults that did not fire for another try.
func (r *run) note(t trial, result Result) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	// The number of polling calls varies, and another fault may have changed the sequence of calls. Each such fault gets a second
	// chance together with others, and a third one alone.
	var again []fault.Fault
	for _, f := range result.Unfired {
		key := fmt.Sprint(t.story, f)
		switch r.chances[key]++; r.chances[key] {
		case 1:
			r.unfired[t.story] = append(r.unfired[t.story], f)
		case 2:
			r.todo[t.story] = append(r.todo[t.story], trial{t.story, []fault.Fault{f}})
		default:
			continue // it counts
		}
		again = append(again, f)
	}
	if len(again) > 0 && result.How == Unfired {
		fmt.Fprintln(r.Out, "again:", result)
		return nil
	}
	result.Faults = slices.DeleteFunc(result.Faults, func(f fault.Fault) bool { return slices.Contains(again, f) })
	r.results = append(r.results, result)
	fmt.Fprintf(r.Out, "%s %4d left  %s\n", time.Now().Format("15:04:05"), r.leftOf(nil), result)
	if result.How == Lost {
		return errSpoiled
	}
	return nil
}

// table prints the totals, and returns an error if any trial failed.
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
	fmt.Fprintf(r.Out, "\nseed %d\n%-28s %6d\n%-28s %6d\n%-28s %6d\n", r.Seed, "calls", r.calls, "faults", faults, "runs of a story",
		len(r.results))
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
