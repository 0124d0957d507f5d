package model

// nothingIsLost checks a release: the ending iteration must have seen everything that was counted until then, unless it
// has failed and said so.
func (t *turn) nothingIsLost(served int8) {
	e := t.e()
	if e.failure {
		return
	}
	for k, event := range t.world.events {
		if event.count == 0 || event.count <= served || event.count > t.world.lease.served {
			continue
		}
		bit := uint8(1) << k
		switch flags := t.kinds[k]; {
		case t.world.wanted&bit != 0 && e.seen&bit == 0:
			t.broken = "a write is lost"
		case flags.full && !e.full:
			t.broken = "the flag full is lost"
		case flags.force && !e.force:
			t.broken = "the flag force is lost"
		}
	}
}

// wrong returns the property that a world violates, independent of how it was reached.
func (s *scene) wrong(w world) string {
	changing := 0
	for _, e := range w.executions {
		if e.phase != called && !s.flags(e.input).dryRun {
			changing++
		}
	}
	switch {
	case changing > 1 && !w.jumped:
		return "two passes change things at once"
	case w.lease.requested > maxRequests:
		return "passes without end"
	case w.lease.served > w.lease.requested:
		return "more is served than was requested"
	}
	return ""
}

// atRest returns the property that a world violates in which nothing but faults can happen.
func (s *scene) atRest(w world) string {
	for k := range s.kinds {
		counted := w.events[k].count > 0 || s.kinds[k].dryRun || s.kinds[k].noRack
		if w.events[k].stage == delivered && !counted && !w.noticeLost {
			return "an event is lost"
		}
	}
	switch {
	case w.lease.owner != none && !w.lease.expired:
		return "a rack stays occupied"
	case w.converged(), s.stepFails, s.dies:
		return ""
	case w.ticked:
		return "the schedule does not repair it"
	}
	return "something is left undone that nobody but the schedule will do"
}
