package plan

import "testing"

func TestRoleOfNodeGroups(t *testing.T) {
	for _, c := range []struct {
		labels map[string]string
		want   GroupRole
	}{
		{nil, RoleSystem},
		{map[string]string{"team": "a"}, RoleSystem},
		{map[string]string{"convox-build": "true"}, RoleBuild},
		{map[string]string{"convox-build": "false"}, RoleSystem},
		{map[string]string{"convox.io/label": "gpu"}, RoleAdditional},
		{map[string]string{"convox.io/label": ""}, RoleAdditional},
		{map[string]string{"convox-build": "true", "convox.io/label": "gpu"}, RoleBuild},
	} {
		if got := (NodeGroup{Labels: c.labels}).Role(); got != c.want {
			t.Errorf("%v: %s, want %s", c.labels, got, c.want)
		}
	}
}

func TestDedicated(t *testing.T) {
	for effect, want := range map[string]bool{"NO_SCHEDULE": true, "NO_EXECUTE": true, "PREFER_NO_SCHEDULE": false} {
		if got := (NodeGroup{Taints: []NodeGroupTaint{{Key: "a", Effect: effect}}}).Dedicated(); got != want {
			t.Errorf("%s: %v", effect, got)
		}
	}
	if (NodeGroup{}).Dedicated() {
		t.Error("a group without taints counts as dedicated")
	}
}
