package model

import (
	"slices"

	"github.com/sawhorse-io/sawhorse/internal/pass/resync"
)

// waits are the states in which no function is called.
var waits = []string{"Debounce", "WaitForParameters", "WaitForStep"}

// dead adds what happens after an execution's end: a call in flight, and resync's handling of the notice.
func (m *moves) dead(i int8) {
	e := m.from.executions[i]
	if e.inFlight {
		m.function(i)
	}
	if e.notice != noNotice {
		m.resync(i)
		m.fault(i, "the notice is lost", func(f *faults) *uint8 { return &f.noticeDrops }, func(t *turn) {
			t.e().notice, t.world.noticeLost, t.world.excused = noNotice, true, true
		})
	}
	if e.notice > noticed {
		m.fault(i, "resync is stopped, and tries again", func(f *faults) *uint8 { return &f.resyncStops },
			func(t *turn) { t.e().notice = noticed })
	}
}

// resync adds its next action for a notice: report, free the lease, or start an execution.
func (m *moves) resync(i int8) {
	t := m.turn(i)
	e, name := t.e(), states[t.e().at]
	switch e.notice {
	case noticed:
		e.notice = told
		if slices.Contains(resync.Uncounted, name) && !m.forgetsUncounted {
			e.notice = following
		} else if m.Call.do(&t.world.lease, caller{me: i}) && t.world.lease.owner == i {
			t.failed()
		}
		t.end("resync looks at an end in " + name + ", and tells")
	case told:
		free := m.Free
		if e.aborted && !slices.Contains(waits, name) {
			free = m.FreeInFlight
		}
		free.do(&t.world.lease, caller{me: i})
		e.notice = noNotice
		if t.world.lease.owner == none && t.world.lease.requested > t.world.lease.served {
			e.notice = following
		}
		t.ending("resync frees the rack")
	case following:
		t.follow(name)
		t.ending("resync starts a pass")
	}
}

// follow starts the next execution, unless that has been done or too many executions have ended early.
func (t *turn) follow(name string) {
	e := t.e()
	e.notice = noNotice
	if e.followed {
		return
	}
	if e.row >= t.followers {
		t.world.excused = true
		return
	}
	e.followed = true
	input := again
	if slices.Contains(resync.Uncounted, name) {
		input = e.input
	}
	t.start(&t.world, input, e.row+1)
}

// ending ends an action after which the notice may be repeated.
func (t *turn) ending(what string) {
	t.end(what)
	if t.e().notice == noNotice {
		after := t.world
		t.fault(t.i, what+", and the notice comes again", func(f *faults) *uint8 { return &f.noticeRepeats }, func(t *turn) {
			left := t.world.left
			t.world = after
			t.world.left, t.world.faulty, t.world.ticked = left, true, false
			t.e().notice = noticed
		})
	}
}
