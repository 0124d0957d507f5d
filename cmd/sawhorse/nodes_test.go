package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

// rolls gives the status of a stage a rollout and a pool with outdated nodes.
func (s *stage) rolls(outdated int, ended string) {
	s.status.Rollout = &store.Progress{Generation: 7, Started: "2026-11-21T08:00:00Z", Ended: ended}
	pool := store.Pool{Pool: "workload", Nodes: 4, Ready: true, Outdated: outdated}
	if outdated > 0 {
		pool.Since = "2026-11-21T08:05:00Z"
	}
	s.status.Pools = store.Pools{pool, {Pool: "build", Ready: true}}
}

func TestWatchFollowsTheNodes(t *testing.T) {
	t.Parallel()
	s := settled(t, outcome.StateReconciled)
	s.rolls(0, "")
	s.status.Pools = nil // nobody has looked yet
	s.acts = []func(){
		nil, func() { s.rolls(3, "") }, nil, func() { s.rolls(1, "") }, func() { s.rolls(0, "") },
		func() { s.rolls(1, "2026-11-21T09:00:00Z") },                                  // and others have drifted since
		func() { s.rolls(0, "2026-11-21T09:00:00Z"); s.status.Pools[0].Ready = false }, // and a pool has stopped being Ready
		func() { s.rolls(0, "2026-11-21T09:00:00Z") },
	}
	var out bytes.Buffer
	w := s.watcher()
	began := s.now
	if err := w.follow(t.Context(), &out, changes(&out, w.now)); err != nil {
		t.Fatal(err)
	}
	want := `09:50:20  workload             4 nodes, 3 outdated since 2026-11-21T08:05:00Z
09:50:20  build                0 nodes
09:50:40  workload             4 nodes, 1 outdated since 2026-11-21T08:05:00Z
09:50:50  workload             4 nodes
09:51:00  workload             4 nodes, 1 outdated since 2026-11-21T08:05:00Z
09:51:10  workload             4 nodes, not Ready
09:51:20  workload             4 nodes
the nodes follow generation 7 since 2026-11-21T09:00:00Z, 1h0m0s after its pass began
`
	if out.String() != want || s.now.Sub(began) != 8*nodesPoll {
		t.Errorf("after %s\n%s", s.now.Sub(began), out.String())
	}
}

func TestWatchOfNodesWithoutKarpenter(t *testing.T) {
	t.Parallel()
	s := settled(t, outcome.StateReconciled)
	var out bytes.Buffer
	if err := s.watcher().follow(t.Context(), &out, nil); err != nil || !strings.HasPrefix(out.String(), "Karpenter is off in rack prod") {
		t.Errorf("%v, %s", err, &out)
	}
}

// On a terminal, the bars are drawn over the earlier ones.
func TestBars(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	draw := bars(&out)
	draw(store.Status{})
	draw(store.Status{Pools: store.Pools{
		{Pool: "gpu", Reason: "r", Since: "s"}, {Pool: "workload", Nodes: 4, Outdated: 1, Ready: true, Since: "s"}}})
	draw(store.Status{Pools: store.Pools{{Pool: "workload", Nodes: 1, Ready: true}}})
	want := "\x1b[?7lthe nodes have not been looked at yet\n\x1b[?7h" +
		"\x1b[1A\x1b[J\x1b[?7l" +
		"gpu       ████████████████████  0 nodes, not Ready since s: r\n" +
		"workload  ███████████████░░░░░  4 nodes, 1 outdated since s\n\x1b[?7h" +
		"\x1b[2A\x1b[J\x1b[?7l" +
		"workload  ████████████████████  1 node\n\x1b[?7h"
	if out.String() != want {
		t.Errorf("%q\nwant\n%q", out.String(), want)
	}
}

// The result of a pass is not that of the pools: watch and apply succeed, and status tells.
func TestADegradedRackIsNoFailedPass(t *testing.T) {
	t.Parallel()
	s := settled(t, outcome.StateDegraded)
	_, _, end := s.watched()
	concludes(t, end, "")
	concludes(t, s.watcher().status(t.Context()), "rack prod is Degraded")
}
