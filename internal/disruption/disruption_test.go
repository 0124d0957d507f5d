package disruption

import (
	"slices"
	"testing"
	"time"
)

// The nodes are counted as Karpenter counts them for its budgets: one that has not come, or whose instance ends, is none of them.
func TestCount(t *testing.T) {
	t.Parallel()
	pool := Pool{Budgets: []Budget{{Nodes: "34%"}}}
	for _, one := range []struct {
		ending, going, stays bool
		conditions           []string
	}{
		{false, false, true, []string{"Initialized"}},
		{false, false, true, []string{"Initialized"}},
		{true, true, false, []string{"Initialized"}},
		{false, true, false, []string{"Initialized", "DisruptionReason"}},
		{true, true, false, []string{"Initialized", "InstanceTerminating"}},
		{false, false, false, []string{"Registered"}},
	} {
		going, stays := pool.Count(one.ending, func(c string) bool { return slices.Contains(one.conditions, c) })
		if going != one.going || stays != one.stays {
			t.Errorf("%+v: going %v, stays %v", one, going, stays)
		}
	}
	want := []string{"budget nodes: 34% is used up: of 4 nodes 2 are going already"}
	if got := pool.Keeps("Drifted", time.Now()); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// A node that is not Ready takes part of a budget, as one that goes does.
func TestNotReady(t *testing.T) {
	t.Parallel()
	initialized := func(c string) bool { return c == "Initialized" }
	pool := Pool{Budgets: []Budget{{Nodes: "2"}}}
	for range 4 {
		pool.Count(false, initialized)
	}
	pool.Count(true, initialized)
	if got := pool.Keeps("Drifted", time.Now()); got != nil {
		t.Errorf("while all are Ready: %q", got)
	}
	pool.NotReady()
	want := []string{"budget nodes: 2 is used up: of 5 nodes 1 are going already and 1 are not Ready"}
	if got := pool.Keeps("Drifted", time.Now()); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// A pool without nodes has no budget that is used up, and a percentage of none is not 0.
func TestKeepsOfAPoolWithoutNodes(t *testing.T) {
	t.Parallel()
	if got := (&Pool{Budgets: []Budget{{Nodes: "10%"}}}).Keeps("Drifted", time.Now()); got != nil {
		t.Errorf("%q", got)
	}
}

// An empty list of reasons is none, and a list that is left out is all.
func TestReasons(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		reasons []string
		keeps   bool
		text    string
	}{
		"all":     {nil, true, "nodes: 0"},
		"another": {[]string{"Empty"}, false, "nodes: 0, for Empty"},
		"this":    {[]string{"Empty", "Drifted"}, true, "nodes: 0, for Empty and Drifted"},
		"none":    {[]string{}, false, "nodes: 0, for no reason"},
	} {
		budget := Budget{Nodes: "0", Reasons: c.reasons}
		pool := Pool{Budgets: []Budget{budget}}
		if keeps := pool.Keeps("Drifted", time.Now()) != nil; keeps != c.keeps || budget.String() != c.text {
			t.Errorf("%s: keeps %v, %q", what, keeps, budget.String())
		}
	}
}

func TestFrozen(t *testing.T) {
	t.Parallel()
	own, freeze := Budget{Nodes: "10%"}, Budget{Nodes: "0"}
	for what, c := range map[string]struct {
		pools [][]Budget
		want  bool
	}{
		"both":                   {[][]Budget{{own, freeze}, {own, own, freeze}}, true},
		"one of two":             {[][]Budget{{own, freeze}, {own}}, false},
		"own budgets of 0":       {[][]Budget{{freeze}, {freeze}}, false},
		"one own budget of 0":    {[][]Budget{{own, freeze}, {freeze}}, false},
		"a window":               {[][]Budget{{own, {Nodes: "0", Schedule: "0 8 * * *", Duration: "8h"}}}, false},
		"for some reasons":       {[][]Budget{{own, {Nodes: "0", Reasons: []string{"Empty"}}}}, false},
		"without budgets":        {[][]Budget{{own, freeze}, nil}, false},
		"there is no pool":       {nil, false},
		"over a budget of its 0": {[][]Budget{{freeze, freeze}}, true},
	} {
		if got := Frozen(c.pools...); got != c.want {
			t.Errorf("%s: %v", what, got)
		}
	}
}
