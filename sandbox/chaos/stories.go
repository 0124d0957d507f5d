package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/sawhorse-io/sawhorse/sandbox/fault"
)

// story is a write that an operator makes, and the name of the state that it leads to.
type story struct {
	name   string
	before func(*World, context.Context) error // what there is to be, if anything
	write  [][2]string
	to     string
}

// The stories. A cluster's first enabling does what later ones find done, so it is one of its own and wants a new sandbox. Turning
// off finds a node of Karpenter's: where there is none, none can be left behind.
var (
	first   = story{name: "first", write: [][2]string{{"build_node_enabled", "true"}, {"karpenter_auth_mode", "true"}, {"karpenter_enabled", "true"}}, to: "on"}
	change  = story{name: "change", write: [][2]string{{"karpenter_cpu_limit", "200"}}, to: "changed"}
	back    = story{name: "change", write: [][2]string{{"karpenter_cpu_limit", "unset"}}, to: "on"}
	disable = story{name: "disable", before: (*World).node, write: [][2]string{{"karpenter_enabled", "false"}}, to: "off"}
	enable  = story{name: "enable", write: [][2]string{{"karpenter_enabled", "true"}}, to: "on"}
)

// recording is what undisturbed runs made: the calls of each story, and the states that they led to.
type recording struct {
	calls  map[string][]fault.Counted
	states map[string]State
	// ordinary is how many calls of a kind each enabling makes: those of the first one are counted from there.
	ordinary map[fault.Call]int
}

// plays is how often turning off and on is recorded: what polls is not called equally often each time, so only the calls that all
// of them made are counted.
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

// recordFirst plays the first enabling once more, on a new sandbox, and leaves of its calls those that later ones do not make.
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

// fewer keeps the calls that both have.
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

// mix is what goes wrong, in turn; most often what leaves something half done. What lasts four calls is what the tries of one
// call do not overcome.
var mix = []fault.Fault{
	{Kind: fault.Lost}, {Kind: fault.Kill}, {Kind: fault.Error, Times: 4}, {Kind: fault.Lost}, {Kind: Stop},
	{Kind: fault.Kill}, {Kind: fault.Reset}, {Kind: fault.Lost}, {Kind: fault.Throttle, Times: 4}, {Kind: fault.Kill},
	{Kind: fault.Slow}, {Kind: fault.Lost}, {Kind: fault.Kill}, {Kind: Stop}, {Kind: fault.Timeout},
}

// suits tells whether a fault can happen to a call. The state machine has no process that could be killed, and to it a connection
// that breaks is one more error.
func suits(f fault.Fault, call fault.Call) bool {
	return call.Function != fault.StateMachine || f.Kind != fault.Kill && f.Kind != fault.Reset
}

// Stop is the sandbox's own kind: the execution is stopped, and the call goes on.
const Stop fault.Kind = "stop"

// trial is a story with what goes wrong in it.
type trial struct {
	story  string
	faults []fault.Fault
}

// enumerate makes one fault of each call of each story, of the kinds in turn, in an order that the seed chooses.
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

// from is how many calls of a kind are left out of a story: what every enabling does is tried with the later ones.
func (r *recording) from(story string, call fault.Call) int {
	if story == first.name {
		return r.ordinary[call]
	}
	return 0
}

// together joins faults of one story, at most so many. No function gets two of them, and no run is stopped twice: what is
// tried again a few times would give up for their number, which says nothing about the single fault.
func together(all []trial, n int) []trial {
	var joined []trial
	for _, t := range all {
		i := slices.IndexFunc(joined, func(j trial) bool {
			return j.story == t.story && len(j.faults) < n && !slices.ContainsFunc(j.faults, func(f fault.Fault) bool {
				return f.Function == t.faults[0].Function || f.Kind == Stop && t.faults[0].Kind == Stop
			})
		})
		if i < 0 {
			joined = append(joined, trial{t.story, slices.Clone(t.faults)})
			continue
		}
		joined[i].faults = append(joined[i].faults, t.faults...)
	}
	return joined
}

// pairs draws pairs of faults, each of one story.
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
