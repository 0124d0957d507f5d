package plan

import (
	"reflect"
	"testing"
)

func TestTheBaselineHasWhatTheGroupsRun(t *testing.T) {
	t.Parallel()
	group := func(status, capacity string, desired int, types ...string) NodeGroup {
		return NodeGroup{Status: status, CapacityType: capacity, InstanceTypes: types, Scaling: Scaling{Min: 1, Max: 9, Desired: desired}}
	}
	for _, c := range []struct {
		groups []NodeGroup
		text   string
		nodes  []Bought
	}{
		{nil, "", nil},
		{[]NodeGroup{group("ACTIVE", "ON_DEMAND", 0, "m5.large")}, "", nil},
		{
			[]NodeGroup{
				group("ACTIVE", "ON_DEMAND", 2, "m5.large", "m5a.large"), group("", "ON_DEMAND", 1, "m5.large"),
				group("ACTIVE", "SPOT", 4, "c6i.large"), group("DELETING", "ON_DEMAND", 5, "m5.large"), group("ACTIVE", "ON_DEMAND", 1),
			},
			"=1,c6i.large/spot=4,m5.large=3", []Bought{{"", false, 1}, {"c6i.large", true, 4}, {"m5.large", false, 3}},
		},
	} {
		text := Facts{NodeGroups: c.groups}.BaselineNodes()
		nodes, err := ParseBaseline(text)
		if err != nil || text != c.text || !reflect.DeepEqual(nodes, c.nodes) {
			t.Errorf("%v: %q, %v, %v; want %q", c.groups, text, nodes, err, c.text)
		}
	}
	if nodes, err := ParseBaseline("m5.large=many"); err == nil {
		t.Errorf("read as %v", nodes)
	}
}
