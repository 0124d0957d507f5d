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
		ending, going bool
		conditions    []string
	}{
		{false, false, []string{"Initialized"}},
		{false, false, []string{"Initialized"}},
		{true, true, []string{"Initialized"}},
		{false, true, []string{"Initialized", "DisruptionReason"}},
		{true, true, []string{"Initialized", "InstanceTerminating"}},
		{false, false, []string{"Registered"}},
	} {
		if going := pool.Count(one.ending, func(c string) bool { return slices.Contains(one.conditions, c) }); going != one.going {
			t.Errorf("%+v: going %v", one, going)
		}
	}
	want := []string{"budget nodes: 34% is used up: of 4 nodes 2 are going already"}
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

func TestFrozen(t *testing.T) {
	t.Parallel()
	own, freeze := Budget{Nodes: "10%"}, Budget{Nodes: "0"}
	for what, c := range map[string]struct {
		pools [][]Budget
		want  bool
	}{
		"both":                   {[][]Budget{{own, freeze}, {freeze}}, true},
		"one of two":             {[][]Budget{{own, freeze}, {own}}, false},
		"own budgets of 0":       {[][]Budget{{freeze}, {freeze}}, false},
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
