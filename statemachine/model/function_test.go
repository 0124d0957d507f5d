package model

// function is one call of a Lambda function, by a living execution or still in flight after the execution's end. It
// renews the lease, does its work, and answers.
func (m *moves) function(i int8) {
	t := m.turn(i)
	e := t.e()
	if m.flags(e.input).dryRun {
		m.dry(i)
		return
	}
	if e.phase == called {
		m.begin(i)
		return
	}
	if states[e.at] == "Validate" && e.phase == holding {
		t.read()
		e.phase = read
		t.end("Validate reads")
		m.staleReads(i)
		return
	}
	t.answer()
	if e := m.from.executions[i]; !e.dead {
		m.functionFaults(i, states[e.at])
	}
}

func (m *moves) functionFaults(i int8, name string) {
	m.fault(i, name+": the function's answer is lost", func(f *faults) *uint8 { return &f.lostAnswers }, func(t *turn) {
		t.change()
		t.e().phase = called
		if name == "ReportWait" { // it is tried once
			t.over("WaitForStep")
		}
	})
	failures := func(f *faults) *uint8 { return &f.stepFailures }
	m.fault(i, name+": the function fails", failures, func(t *turn) { t.fail() })
	if name != "RunStep" {
		return
	}
	m.fault(i, "RunStep: the step is late", failures, func(t *turn) {
		t.e().failure = true
		t.over("StepAnswer", "StepLate", "ReportFailure")
	})
	m.fault(i, "RunStep: the step rejects", failures, func(t *turn) {
		t.world.excused = true
		t.over("Report")
	})
}

// begin adds the start of a call: the function renews the lease, or finds that it has lost the lease.
func (m *moves) begin(i int8) {
	t := m.turn(i)
	e := t.e()
	if !m.Call.do(&t.world.lease, t.caller()) {
		if states[e.at] == "ReportWait" { // the next call of the step finds out
			t.over("WaitForStep")
		} else {
			t.over("Lost")
		}
		t.end("the function finds the lease lost")
		return
	}
	if t.world.lease.owner != i {
		t.broken = "a call that began without the lease changes something"
	}
	if states[e.at] == "Validate" {
		t.note()
	}
	e.phase, e.news = holding, t.world.lease.requested > e.generation
	t.end(states[e.at] + ": the function renews the lease")
}

// note is the part of Validate that reads the lease, and read is the part that reads the parameters after that. With
// readsFirst, the order is reversed.
func (t *turn) note() {
	if t.readsFirst != (t.e().phase == called) {
		l, e := t.world.lease, t.e()
		e.generation, e.full, e.force = l.requested, l.fullAt > l.served, l.forceAt > l.served
		if !t.world.faulty && e.generation <= t.world.iteration {
			t.broken = "an iteration that no event requested"
		}
		t.world.iteration = e.generation
		return
	}
	t.e().seen = t.world.wanted
}

func (t *turn) read() { t.note() }

// staleReads adds reads from replicas that lack one of the writes.
func (m *moves) staleReads(i int8) {
	for k := range m.kinds {
		bit := uint8(1) << k
		if m.readsFirst || m.from.wanted&bit == 0 {
			continue
		}
		m.fault(i, "Validate reads a tree from before a write", func(f *faults) *uint8 { return &f.staleReads }, func(t *turn) {
			t.read()
			t.e().seen &^= bit
			t.e().phase = read
		})
	}
}

// outdated reports whether the tree that was read lacks a write that the iteration knows of.
func (t *turn) outdated() bool {
	e := t.e()
	for k, event := range t.world.events {
		bit := uint8(1) << k
		if event.count > 0 && event.count <= e.generation && t.world.wanted&bit != 0 && e.seen&bit == 0 {
			return true
		}
	}
	return false
}

// over ends a call. If the execution is alive, it continues along a path of states.
func (t *turn) over(path ...string) {
	if e := t.e(); e.dead {
		e.inFlight, e.phase = false, called
		return
	}
	t.to(path...)
}

// change applies the effects of a call to the world.
func (t *turn) change() {
	e := t.e()
	if t.world.lease.owner != t.i {
		// A jump of the clock may cost the lease of one call in flight. The next call must find the lease lost.
		t.world.excused = true
		if e.stray++; e.stray > 1 {
			t.broken = "a pass goes on changing things after another has taken over"
		}
	}
	switch states[e.at] {
	case "RunStep":
		if !t.stepFails {
			t.world.applied = e.seen
		}
	case "Report":
		t.world.failed, t.world.running = e.failure, t.world.running && t.keepsRunning
	case "ReportFailure":
		t.failed()
	case "ReportWait":
		t.world.running = true
	}
}

// failed is a report of a failure. That of a rack which does not exist writes no status.
func (t *turn) failed() {
	t.world.failed = !t.unknown
	t.world.running = t.world.running && t.unknown
}

// fail ends a call with an error of the function. If ReportFailure itself fails, that is not reported, and the pass does not
// need ReportWait.
func (t *turn) fail() {
	if states[t.e().at] == "ReportWait" {
		t.over("WaitForStep")
		return
	}
	t.e().failure = true
	if states[t.e().at] == "ReportFailure" {
		t.over("Reported", "Release")
		return
	}
	t.over("ReportFailure")
}

// answer adds the successful results of a call.
func (t *turn) answer() {
	e := t.e()
	switch states[e.at] {
	case "Validate":
		t.validated()
	case "RunStep":
		t.stepped()
	case "Report", "ReportFailure":
		t.change()
		name, last := states[e.at], "Release"
		if t.unknown && t.world.lease.served == 0 {
			last = "Erase"
		}
		t.over("Reported", last)
		t.end(name)
	case "ReportWait":
		t.change()
		t.over("WaitForStep")
		t.end("ReportWait")
	}
}

func (t *turn) validated() {
	e := t.e()
	switch {
	case t.dies:
		e.dead, e.notice, e.phase, t.world.faulty = true, noticed, called, true
	case t.outdated() && !t.trustsReads:
		t.over("Todo", "WaitForParameters")
	case t.unknown && t.world.lease.served == 0:
		t.over("Todo", "Erase")
	case t.world.applied != e.seen || e.full:
		t.over("Todo", "RunStep")
	case t.world.failed, t.world.running: // nothing to do, but the status is still Failed, or of a pass that waits
		t.over("Todo", "Report")
	default:
		t.over("Todo", "Release")
	}
	t.end("Validate answers")
}

// stepped adds the results of a step. A plan has one or two steps. Only the last one has applied everything, and a step
// that waits has not.
func (t *turn) stepped() {
	before := *t
	if before.e().news { // a request may be that of a hold, which ends each step before it does anything
		held := before
		held.again("StepAnswer")
		held.end("RunStep: superseded by a hold")
	}
	if t.stepFails {
		t.fail()
		t.end("RunStep fails, as always")
		return
	}
	t.change()
	t.over("StepAnswer", "Report")
	t.end("RunStep: done")
	if !before.e().second {
		next := before
		next.e().second = true
		next.over("StepAnswer", "RunStep")
		next.end("RunStep: done, and another step follows")
	}
	if before.e().waited {
		return
	}
	waits := before
	if waits.e().news && !t.ignoresRequests {
		waits.again("StepAnswer")
		waits.end("RunStep: superseded")
		return
	}
	if waits.e().news && !waits.e().dead {
		waits.broken = "a write during a wait is not taken up at the next poll"
	}
	waits.e().waited = true
	long := waits
	waits.over("StepAnswer", "WaitForStep")
	waits.end("RunStep: wait")
	if t.quick { // a scene with very many worlds
		return
	}
	long.over("StepAnswer", "ReportWait")
	long.end("RunStep: wait for long")
}

// dry is Validate in a dry run, which has no lease, and the report of its failure.
func (m *moves) dry(i int8) {
	t := m.turn(i)
	if states[t.e().at] == "Validate" {
		t.over("Todo", "Done")
		t.end("a dry run is answered")
		m.fault(i, "a dry run fails", func(f *faults) *uint8 { return &f.stepFailures }, func(t *turn) { t.over("ReportFailure") })
		return
	}
	t.over("Reported", "Ended", "Failed")
	t.end("the failure of a dry run is answered")
}
