package model

import "slices"

// place is a state of the state machine, by its place in states.
type place uint8

// states are those that an execution can be found in; through the others it passes at once.
var states = []string{
	"", "Intake", "RecordChange", "Request", "Acquire", "Settle", "Renew", "Validate", "WaitForParameters", "RunStep", "WaitForStep", "Report",
	"ReportFailure", "Release", "Erase", "Enough", "HandOver", "StartSuccessor", "Ended",
}

var placeOf = func() map[string]place {
	all := map[string]place{}
	for i, name := range states {
		all[name] = place(i)
	}
	return all
}()

// final are the states in which an execution ends and is forgotten. (After Failed, there is a notice.)
var final = map[string]bool{"Ignored": true, "Coalesced": true, "Done": true, "HandedOver": true, "Lost": true}

// kind is what an event asks for.
type kind struct{ full, force, change, dryRun, noRack bool }

// scene is a model within bounds.
type scene struct {
	protocol
	faults faults
	// kinds are the events that come, in any order and at any time.
	kinds []kind
	// What goes wrong every time: a step that fails, or something that ends the execution.
	stepFails, dies bool
	// unknown tells that there is no rack of that name.
	unknown bool
	// taken are the transitions between states that have been seen.
	taken map[[2]string]bool
}

// move is one step of a world into another.
type move struct {
	what string
	// fault marks what goes wrong, and happens so often only.
	fault bool
	to    world
	// broken says which property does not hold on the way.
	broken string
}

// moves are all that can happen next.
type moves struct {
	*scene
	from world
	all  []move
}

func (m *moves) add(what string, to world) *move {
	m.all = append(m.all, move{what: what, to: to})
	return &m.all[len(m.all)-1]
}

// fault adds what goes wrong with an execution, or with none, if it may once more.
func (m *moves) fault(i int8, what string, left func(*faults) *uint8, change func(*turn)) {
	t := m.turn(i)
	n := left(&t.world.left)
	if *n == 0 {
		return
	}
	*n--
	t.world.faulty, t.world.ticked = true, false
	change(t)
	move := m.add(what, t.world)
	move.fault, move.broken = true, t.broken
}

// next are the moves from a world.
func (s *scene) next(w world) []move {
	m := &moves{scene: s, from: w}
	for k := range s.kinds {
		m.event(uint8(k))
	}
	for i := range w.executions {
		if e := w.executions[i]; e.at != 0 && !e.dead {
			m.execution(int8(i))
		} else if e.at != 0 {
			m.dead(int8(i))
		}
	}
	m.expiry()
	m.tick()
	return m.all
}

// event happens, and is delivered: once, not at all, or twice; in any order with others.
func (m *moves) event(k uint8) {
	switch w := m.from; w.events[k].stage {
	case toCome:
		w.events[k].stage = onTheBus
		if m.kinds[k] == (kind{}) { // a write
			w.wanted |= 1 << k
		}
		m.add("event happens", w)
	case onTheBus:
		w.events[k].stage = delivered
		m.start(&w, k, 0)
		m.add("event is delivered", w)
		m.fault(none, "event is delivered and will be again", func(f *faults) *uint8 { return &f.repeats }, func(t *turn) { t.start(&t.world, k, 0) })
		m.fault(none, "event is dropped", func(f *faults) *uint8 { return &f.drops }, func(t *turn) {
			t.world.events[k].stage, t.world.excused = dropped, true
		})
	}
}

// expiry is the end of a lease: of a dead owner, in time, which is longer than a call can be in flight; of a living one, or
// before that, where a clock jumps.
func (m *moves) expiry() {
	owner := m.from.lease.owner
	if owner == none || m.from.lease.expired {
		return
	}
	expire := func(w *world) { w.lease.expired = true }
	inFlight := slices.ContainsFunc(m.from.executions[:], func(e execution) bool { return e.inFlight })
	if owner == gone || m.from.executions[owner].dead && !inFlight {
		w := m.from
		expire(&w)
		m.add("the lease expires", w)
		return
	}
	m.fault(owner, "the lease expires early", func(f *faults) *uint8 { return &f.jumps }, func(t *turn) {
		t.world.jumped = true
		expire(&t.world)
	})
}

// tick is the schedule's, when everything has come to rest and something is left to do.
func (m *moves) tick() {
	for _, move := range m.all {
		if !move.fault {
			return
		}
	}
	w := m.from
	if w.converged() || w.ticked || m.stepFails || m.dies || !w.excused {
		return // atRest says what to think of it
	}
	w.ticked, w.excused = true, false
	m.start(&w, schedule, 0)
	m.add("the schedule ticks", w)
}

// flags are what an execution's input asks for.
func (s *scene) flags(input uint8) kind {
	switch input {
	case again:
		return kind{}
	case schedule:
		return kind{full: true}
	}
	return s.kinds[input]
}
