package model

import "slices"

// turn is one move of one execution while it is being built.
type turn struct {
	*moves
	i      int8
	world  world
	broken string
}

// turn starts a move.
func (m *moves) turn(i int8) *turn { return &turn{moves: m, i: i, world: m.from} }

func (t *turn) e() *execution { return &t.world.executions[t.i] }

func (t *turn) caller() caller {
	e := t.e()
	flags := t.flags(e.input)
	return caller{me: t.i, generation: e.generation, full: flags.full, force: flags.force}
}

// to moves the execution along a path of states, and records the transitions.
func (t *turn) to(path ...string) *turn {
	e := t.e()
	from := states[e.at]
	for _, next := range path {
		t.taken[[2]string{from, next}] = true
		if next == "Failed" { // the execution's end notice names the state before Failed
			e.at, e.dead, e.notice = placeOf[from], true, noticed
			return t
		}
		from = next
	}
	if final[from] {
		*e = execution{}
		if t.world.lease.owner == t.i {
			t.world.lease.owner = gone
		}
		return t
	}
	e.at, e.phase = placeOf[from], called
	return t
}

func (t *turn) end(what string) {
	t.add(what, t.world).broken = t.broken
}

// functions are the states that call a function. A function may make changes as long as it runs.
var functions = []string{"Report", "ReportFailure", "ReportWait", "RunStep", "Validate"}

// execution adds the next moves of an execution, and its possible faults.
func (m *moves) execution(i int8) {
	e := m.from.executions[i]
	name := states[e.at]
	m.fault(i, "the execution is stopped in "+name, func(f *faults) *uint8 { return &f.aborts }, func(t *turn) {
		e := t.e()
		e.dead, e.aborted, e.notice = true, true, noticed
		e.inFlight = slices.Contains(functions, name)
	})
	if slices.Contains(functions, name) {
		m.function(i)
		return
	}
	switch name {
	case "Debounce":
		m.debounce(i)
	case "WaitForParameters":
		m.turn(i).to("Validate").end("WaitForParameters ends")
	case "WaitForStep":
		m.turn(i).to("RunStep").end("WaitForStep ends")
	case "Enough":
		m.turn(i).to("Debounce").end("Enough: another iteration")
		if t := m.turn(i).to("HandOver"); t.world.left.handOvers > 0 {
			t.world.left.handOvers--
			t.end("Enough: hand over")
		}
	default:
		m.task(i, name)
	}
}

// start adds an execution to the world and moves it to the first state with an effect.
func (m *moves) start(w *world, input, row uint8) {
	i := slices.Index(w.executions[:], execution{})
	w.executions[i] = execution{at: placeOf["Intake"], input: input, row: row}
	t := &turn{moves: m, i: int8(i), world: *w}
	switch flags := m.flags(input); {
	case flags.noRack:
		t.to("Known", "Ignored")
	case flags.dryRun:
		t.to("Known", "Validate")
	default:
		t.to("Known", "Request")
	}
	*w = t.world
}

// debounce continues when no call that the last Free knew of can still be in flight.
func (m *moves) debounce(i int8) {
	if e := m.from.executions[i]; e.quiet && !m.ignoresQuiet {
		for _, other := range m.from.executions {
			if other.inFlight && other.phase != called {
				return
			}
		}
	}
	t := m.turn(i).to("Renew")
	t.e().quiet = false
	t.end("Debounce ends")
}

// task is a state that calls DynamoDB or Step Functions. The call takes effect once, or twice if an answer is lost, or
// fails.
func (m *moves) task(i int8, name string) {
	done := m.turn(i)
	done.effect(name)
	done.end(name)
	m.fault(i, name+": the answer is lost", func(f *faults) *uint8 { return &f.lostAnswers }, func(t *turn) {
		was := *t.e()
		t.effect(name)
		*t.e() = was // it is retried
	})
	m.fault(i, name+" fails", func(f *faults) *uint8 { return &f.errors }, func(t *turn) {
		t.e().failure = true
		t.to("Failed")
	})
}

func (t *turn) effect(name string) {
	l, e := &t.world.lease, t.e()
	switch name {
	case "Request":
		before := l.requested
		if t.Request.do(l, t.caller()); e.input < maxEvents && l.requested > before {
			t.world.events[e.input].count = l.requested
		}
		t.to("Acquire")
	case "Acquire":
		if !t.Acquire.do(l, t.caller()) {
			t.to("Coalesced")
			return
		}
		e.quiet = l.quiet
		t.to("Debounce")
	case "Renew":
		if !t.Renew.do(l, t.caller()) {
			t.to("Lost")
			return
		}
		e.generation = l.requested
		t.to("Validate")
	case "Release":
		t.release()
	case "Erase":
		t.erase()
	case "HandOver":
		if t.HandOver.do(l, t.caller()) || !t.endsRefusedHandOver {
			t.to("StartSuccessor")
		} else {
			t.to("Lost")
		}
	case "StartSuccessor":
		t.start(&t.world, again, 0)
		t.to("HandedOver")
	}
}

func (t *turn) release() {
	l := &t.world.lease
	served := l.served
	if !t.Release.do(l, t.caller()) {
		t.again()
		return
	}
	t.nothingIsLost(served)
	t.letGo()
}

// erase deletes the lease, and with it the count of the last iteration.
func (t *turn) erase() {
	requested := t.world.lease.requested
	if !t.Erase.do(&t.world.lease, t.caller()) {
		t.again()
		return
	}
	if requested > t.e().generation {
		t.broken = "a request is erased that no iteration has seen"
	}
	t.world.iteration = 0
	t.letGo()
}

// letGo ends an execution that has freed its rack.
func (t *turn) letGo() {
	if t.e().failure {
		t.world.excused = true // left to the next event or the schedule
		t.to("Ended", "Failed")
	} else {
		t.to("Ended", "Done")
	}
}

// again starts another iteration.
func (t *turn) again(path ...string) {
	e := t.e()
	e.failure, e.seen, e.full, e.force, e.news, e.waited, e.second = false, 0, false, false, false, false, false
	if path = append(path, "Again", "Enough"); t.world.left.handOvers == 0 {
		path = append(path, "Debounce")
	}
	t.over(path...)
}
