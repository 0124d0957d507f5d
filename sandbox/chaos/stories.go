package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/sawhorse-io/sawhorse/sandbox/chaos/fault"
)

// story is a write by an operator, and the name of the state that it leads to.
type story struct {
	name   string
	before func(*World, context.Context) error // brings about the precondition, if there is one
	write  [][2]string
	to     string
}

// The stories. The first enabling of a cluster does work that later ones find done, so it is a story of its own and
// needs a new sandbox. change sets two parameters as one. disable starts with a Karpenter node, because otherwise no node
// could be left behind.
var (
	first = story{
		name: "first", to: "on",
		write: [][2]string{
			{"params/build_node_enabled", "true"}, {"params/karpenter_auth_mode", "true"}, {"params/karpenter_enabled", "true"},
		},
	}
	change = story{name: "change", to: "changed",
		write: [][2]string{{"change", `{"set": {"karpenter_cpu_limit": "200", "karpenter_memory_limit_gb": "800"}}`}}}
	back = story{name: "change", to: "on",
		write: [][2]string{{"change", `{"unset": ["karpenter_cpu_limit", "karpenter_memory_limit_gb"]}`}}}
	disable = story{name: "disable", before: (*World).node, write: [][2]string{{"params/karpenter_enabled", "false"}}, to: "off"}
	enable  = story{name: "enable", write: [][2]string{{"params/karpenter_enabled", "true"}}, to: "on"}
)

// recording has the results of undisturbed runs: the calls of each story, and the resulting states.
type recording struct {
	calls  map[string][]fault.Counted
	states map[string]State
	// ordinary is the number of calls of each kind that every enabling makes. The calls of the first enabling are
	// counted from there.
	ordinary map[fault.Call]int
}

// plays is the number of times that turning off and on is recorded. The number of polling calls varies, so only the
// calls that all recordings have in common are counted.
const plays = 5

// record plays every story undisturbed on a new sandbox.
func record(ctx context.Context, w *World) (*recording, error) {
	r := &recording{calls: map[string][]fault.Counted{}, states: map[string]State{}, ordinary: map[fault.Call]int{}}
	stories := append([]story{first, change, back}, slices.Repeat([]story{disable, enable}, plays)...)
	for _, s := range stories {
		is, err := w.undisturbed(ctx, s)
		if err != nil {
			return nil, err
		}
		if err := r.add(ctx, w, s, is); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// recordFirst plays the first enabling once more on a new sandbox, and keeps only the calls that later
// enablings do not make.
func (r *recording) recordFirst(ctx context.Context, w *World) error {
	is, err := w.undisturbed(ctx, first)
	if err != nil {
		return err
	}
	if err := r.add(ctx, w, first, is); err != nil {
		return err
	}
	for _, c := range r.calls[enable.name] {
		r.ordinary[c.Call] = c.Count
	}
	return nil
}

func (r *recording) add(ctx context.Context, w *World, s story, is State) error {
	report, err := w.report(ctx)
	if err != nil {
		return err
	}
	if wanted, again := r.states[s.to]; !again {
		r.states[s.to] = is
	} else if odd := is.difference(wanted); len(odd) > 0 {
		return fmt.Errorf("chaos: story %s, undisturbed, did not lead to state %q again: %q", s.name, s.to, odd)
	}
	if calls, again := r.calls[s.name]; again {
		r.calls[s.name] = fewer(calls, report.Calls)
	} else {
		r.calls[s.name] = report.Calls
	}
	return nil
}

// fewer returns the calls that a and b have in common.
func fewer(a, b []fault.Counted) []fault.Counted {
	count := map[fault.Call]int{}
	for _, c := range b {
		count[c.Call] = c.Count
	}
	var both []fault.Counted
	for _, c := range a {
		if n := min(c.Count, count[c.Call]); n > 0 {
			both = append(both, fault.Counted{Call: c.Call, Count: n})
		}
	}
	return both
}

// mix lists the faults to inject, in turn. Faults that leave something half done are the most frequent. A fault that
// lasts four calls outlasts the retries of one call.
var mix = []fault.Fault{
	{Kind: fault.Lost}, {Kind: fault.Kill}, {Kind: fault.Error, Times: 4}, {Kind: fault.Lost}, {Kind: Stop},
	{Kind: fault.Kill}, {Kind: fault.Reset}, {Kind: fault.Lost}, {Kind: fault.Throttle, Times: 4}, {Kind: fault.Kill},
	{Kind: fault.Slow}, {Kind: fault.Lost}, {Kind: fault.Kill}, {Kind: Stop}, {Kind: fault.Timeout},
}

// suits reports whether a fault can happen to a call. The state machine has no process to kill, and it sees a broken
// connection as one more error.
func suits(f fault.Fault, call fault.Call) bool {
	return call.Function != fault.StateMachine || f.Kind != fault.Kill && f.Kind != fault.Reset
}

// Stop is a kind that the sandbox implements: it stops the execution, and the call continues.
const Stop fault.Kind = "stop"

// trial is a story with the faults to inject into it.
type trial struct {
	story  string
	faults []fault.Fault
}

// enumerate returns one fault for each call of each story. The kinds are used in turn, and the
// seed determines the order.
func (r *recording) enumerate(random *rand.Rand) []trial {
	var all []trial
	turn := random.IntN(len(mix))
	for _, name := range []string{first.name, change.name, disable.name, enable.name} {
		var points []trial
		for _, c := range r.calls[name] {
			for n := r.from(name, c.Call); n < c.Count; n++ {
				for !suits(mix[turn%len(mix)], c.Call) {
					turn++
				}
				f := mix[turn%len(mix)]
				f.Call, f.Nth = c.Call, n+1
				points = append(points, trial{name, []fault.Fault{f}})
				turn++
			}
		}
		random.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
		all = append(all, points...)
	}
	return all
}

// from returns how many calls of a kind to skip in a story. Calls that every enabling makes are tried
// with the later enablings.
func (r *recording) from(story string, call fault.Call) int {
	if story == first.name {
		return r.ordinary[call]
	}
	return 0
}

const (
	// deaths is how often the state machine repeats a call whose process died, the least of its limits.
	deaths = 2
	// failures is less than how often it repeats one that ended for another reason.
	failures = 5
	// stops is less than how many executions follow each other that ended early.
	stops = 2
)

// together joins up to n faults of one story into one trial, with at most as many at each function, and as many stops, as a pass
// outlasts. Otherwise it could fail because of the number of faults, which says nothing about a single one.
func together(all []trial, n int) []trial {
	var joined []trial
	for _, t := range all {
		i := slices.IndexFunc(joined, func(j trial) bool {
			return j.story == t.story && len(j.faults) < n && j.takes(t.faults[0])
		})
		if i < 0 {
			joined = append(joined, trial{t.story, slices.Clone(t.faults)})
			continue
		}
		joined[i].faults = append(joined[i].faults, t.faults...)
	}
	return joined
}

// takes reports whether a trial can have another fault.
func (t trial) takes(another fault.Fault) bool {
	died, failed, stopped := 0, 0, 0
	for _, f := range append(t.faults[:len(t.faults):len(t.faults)], another) {
		switch {
		case f.Kind == Stop:
			stopped++
		case f.Function != another.Function:
		case ends[f.Kind]:
			died++
		default:
			failed++
		}
	}
	return died <= deaths && failed <= failures && stopped <= stops
}

// ends are the kinds of fault that may end a function's call whatever the SDK tries: its process dies or runs out of time, or the fault
// outlasts the SDK's tries.
var ends = map[fault.Kind]bool{fault.Kill: true, fault.Error: true, fault.Timeout: true}

// pairs returns n random pairs of faults, each pair of one story.
func pairs(all []trial, n int, random *rand.Rand) []trial {
	by := map[string][]trial{}
	for _, t := range all {
		by[t.story] = append(by[t.story], t)
	}
	var drawn []trial
	names := []string{change.name, disable.name, enable.name}
	for i := range n {
		points := by[names[i%len(names)]]
		a := random.IntN(len(points))
		b := (a + 1 + random.IntN(len(points)-1)) % len(points) // another one
		drawn = append(drawn, trial{points[a].story, slices.Concat(points[a].faults, points[b].faults)})
	}
	return drawn
}
