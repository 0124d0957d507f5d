package model

import "slices"

// place is the index of a state in the slice states.
type place uint8

// states are the states that an execution can stop in. It passes through all other states immediately.
var states = []string{
	"", "Intake", "Request", "Acquire", "Debounce", "Renew", "Validate", "WaitForParameters", "RunStep", "WaitForStep", "Report",
	"ReportFailure", "ReportWait", "Release", "Erase", "Enough", "HandOver", "StartSuccessor", "Ended",
}

var placeOf = func() map[string]place {
	all := map[string]place{}
	for i, name := range states {
		all[name] = place(i)
	}
	return all
}()

// final are the states in which an execution ends without further effects. Failed is not one of them, because it causes
// a notice.
var final = map[string]bool{"Ignored": true, "Coalesced": true, "Done": true, "HandedOver": true, "Lost": true}

// kind is what an event requests.
type kind struct{ full, force, dryRun, noRack bool }

// scene is a bounded model.
type scene struct {
	protocol
	faults faults
	// kinds are the events that occur, in any order and at any time.
	kinds []kind
	// Faults that occur every time: a step that fails, or an execution that dies.
	stepFails, dies bool
	// quick means that no step waits for so long that the status says so: of scenes with very many worlds, which -short leaves out.
	quick bool
	// unknown means that the rack does not exist.
	unknown bool
	// taken are the state transitions that occurred.
	taken map[[2]string]bool
}

// move is a transition from one world to another.
type move struct {
	what string
	// fault means that the move is a fault, of which there is a limited number.
	fault bool
	to    world
	// broken is the property that the move violates.
	broken string
}

// moves collects everything that can happen next.
type moves struct {
	*scene
	from world
	all  []move
}

func (m *moves) add(what string, to world) *move {
	m.all = append(m.all, move{what: what, to: to})
	return &m.all[len(m.all)-1]
}

// fault adds a fault of an execution, or of none, if the limit allows another one.
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

// next returns the moves from a world.
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

// event adds the moves of an event: it happens, and is delivered once, never or twice, in any order with other events.
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
		m.fault(none, "event is delivered and will be again", func(f *faults) *uint8 { return &f.repeats },
			func(t *turn) { t.start(&t.world, k, 0) })
		m.fault(none, "event is dropped", func(f *faults) *uint8 { return &f.drops }, func(t *turn) {
			t.world.events[k].stage, t.world.excused = dropped, true
		})
	}
}

// expiry adds the end of a lease. A dead owner's lease expires in time, which is after any call in flight has ended. If
// a clock jumps, a lease may expire earlier, or while its owner is alive.
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

// tick adds a tick of the schedule, if everything is at rest and something is left to do.
func (m *moves) tick() {
	for _, move := range m.all {
		if !move.fault {
			return
		}
	}
	w := m.from
	if w.converged() || w.ticked || m.stepFails || m.dies || !w.excused {
		return // atRest checks these worlds
	}
	w.ticked, w.excused = true, false
	m.start(&w, schedule, 0)
	m.add("the schedule ticks", w)
}

// flags returns what an execution's input requests.
func (s *scene) flags(input uint8) kind {
	switch input {
	case again:
		return kind{}
	case schedule:
		return kind{full: true}
	}
	return s.kinds[input]
}
