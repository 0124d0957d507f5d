package model

import "testing"

// mutations are mistakes in the protocol. Each must violate a property, which shows that the explorer can find them.
var mutations = []struct {
	what, scene string
	mutate      func(*protocol)
	broken      string
}{
	{"an event is not counted where another pass has the lease", "three events", func(p *protocol) {
		count := p.Request.do
		p.Request.do = func(l *lease, c caller) bool { return l.owner != none || count(l, c) }
	}, "an event is lost"},
	{"the flag full is not left with the count", "three events", func(p *protocol) {
		count := p.Request.do
		p.Request.do = func(l *lease, c caller) bool { c.full = false; return count(l, c) }
	}, "the flag full is lost"},
	{"a later event takes the flag force back", "three events", func(p *protocol) {
		count := p.Request.do
		p.Request.do = func(l *lease, c caller) bool {
			if !c.force {
				l.forceAt = 0
			}
			return count(l, c)
		}
	}, "the flag force is lost"},
	{"Acquire without a condition", "three events", func(p *protocol) {
		p.Acquire.do = func(l *lease, c caller) bool { l.owner, l.expired = c.me, false; return true }
	}, "two passes change things at once"},
	{"Acquire for what has been served", "three events", func(p *protocol) {
		p.Acquire.do = func(l *lease, c caller) bool {
			if l.owner != none && l.owner != c.me && !l.expired {
				return false
			}
			l.owner, l.expired = c.me, false
			return true
		}
	}, "an iteration that no event requested"},
	{"Acquire of a lease that has been erased", "no such rack", func(p *protocol) {
		acquire := p.Acquire.do
		p.Acquire.do = func(l *lease, c caller) bool {
			if l.requested > 0 {
				return acquire(l, c)
			}
			l.owner, l.expired = c.me, false
			return true
		}
	}, "an iteration that no event requested"},
	{"Erase whatever has been requested since", "no such rack", func(p *protocol) {
		p.Erase.do = func(l *lease, c caller) bool {
			if !held(l, c) {
				return false
			}
			*l = lease{owner: none}
			return true
		}
	}, "a request is erased that no iteration has seen"},
	{"Acquire of a free lease only, which one tries again that has it", "answers are lost", func(p *protocol) {
		acquire := p.Acquire.do
		p.Acquire.do = func(l *lease, c caller) bool { return l.owner != c.me && acquire(l, c) }
	}, "something is left undone that nobody but the schedule will do"},
	{"a lease never expires", "stopped in silence", func(p *protocol) {
		acquire := p.Acquire.do
		p.Acquire.do = func(l *lease, c caller) bool { return (l.owner == none || l.owner == c.me) && acquire(l, c) }
	}, "the schedule does not repair it"},
	{"no fence", "a clock jumps", func(p *protocol) {
		p.Call.do = func(*lease, caller) bool { return true }
	}, "a call that began without the lease changes something"},
	{"no fence between the iterations", "a clock jumps", func(p *protocol) {
		p.Renew.do = func(l *lease, c caller) bool { l.owner = c.me; return true }
	}, "iterations without end"},
	{"Release whatever has been requested since", "three events", func(p *protocol) {
		p.Release.do = func(l *lease, c caller) bool {
			if !held(l, c) {
				return false
			}
			l.served = c.generation
			return release(l, c)
		}
	}, "something is left undone that nobody but the schedule will do"},
	{"served is what has been requested by the end", "three events", func(p *protocol) {
		p.Release.do = func(l *lease, c caller) bool {
			if !held(l, c) {
				return false
			}
			l.served = l.requested
			return release(l, c)
		}
	}, "the flag full is lost"},
	{"served is noted where the iteration begins", "stopped", func(p *protocol) {
		p.Call.do = func(l *lease, c caller) bool {
			if !held(l, c) {
				return false
			}
			l.served = l.requested
			return true
		}
	}, "something is left undone that nobody but the schedule will do"},
	{"Validate reads before it notes", "three events", func(p *protocol) { p.readsFirst, p.trustsReads = true, true },
		"a write is lost"},
	{"Validate goes on with what a replica that lags has said", "a replica lags", func(p *protocol) { p.trustsReads = true },
		"a write is lost"},
	{"a step that waits does not look for requests", "three events", func(p *protocol) { p.ignoresRequests = true },
		"a write during a wait is not taken up at the next poll"},
	{"the report of a pass leaves in the status that it waits", "three events", func(p *protocol) { p.keepsRunning = true },
		"something is left undone that nobody but the schedule will do"},
	{"a refused hand-over ends", "answers are lost", func(p *protocol) { p.endsRefusedHandOver = true },
		"something is left undone that nobody but the schedule will do"},
	{"Free of another pass's lease", "stopped", func(p *protocol) {
		p.FreeInFlight.do = func(l *lease, _ caller) bool { l.owner, l.expired, l.quiet = none, false, true; return true }
	}, "something is left undone that nobody but the schedule will do"},
	{"nobody waits for a call in flight", "stopped", func(p *protocol) { p.ignoresQuiet = true }, "two passes change things at once"},
	{"a second stop forgets the call in flight", "stopped twice", func(p *protocol) {
		p.Free.do = func(l *lease, c caller) bool {
			if !held(l, c) {
				return false
			}
			l.quiet = false
			return release(l, c)
		}
	}, "two passes change things at once"},
	{"an event that was not counted goes with its execution", "stopped", func(p *protocol) { p.forgetsUncounted = true }, "an event is lost"},
	{"nobody follows an execution that was stopped", "stopped", func(p *protocol) { p.followers = 0 }, "an event is lost"},
	{"executions that die are followed without end", "every pass dies", func(p *protocol) { p.followers = 255 }, "passes without end"},
}

func TestMutationsAreCaught(t *testing.T) {
	for _, c := range mutations {
		t.Run(c.what, func(t *testing.T) {
			s, known := scenes[c.scene]
			if !known {
				t.Fatalf("no scene %q", c.scene)
			}
			s.protocol = asBuilt()
			c.mutate(&s.protocol)
			result := s.explore()
			t.Logf("%d worlds", result.worlds)
			if result.broken != c.broken {
				t.Errorf("found %q, want %q%s", result.broken, c.broken, "\n"+result.String())
			}
		})
	}
}
