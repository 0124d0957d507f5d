package plan

import (
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/params"
)

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
		if got := RoleOf(params.Config{}, NodeGroup{Labels: c.labels}); got != c.want {
			t.Errorf("%v: %s, want %s", c.labels, got, c.want)
		}
	}
}

// The parameters that name groups win over their labels; a group that nobody names is then an additional one.
func TestRoleOfNamedNodeGroups(t *testing.T) {
	build := map[string]string{"convox-build": "true"}
	for _, c := range []struct {
		what          string
		system, build []string
		group         NodeGroup
		want          GroupRole
	}{
		{"named as system", []string{"a"}, nil, NodeGroup{Name: "a", Labels: build}, RoleSystem},
		{"not named as system", []string{"a"}, nil, NodeGroup{Name: "b"}, RoleAdditional},
		{"a build group by its label", []string{"a"}, nil, NodeGroup{Name: "b", Labels: build}, RoleBuild},
		{"named as build", nil, []string{"b"}, NodeGroup{Name: "b"}, RoleBuild},
		{"the label counts no more", nil, []string{"b"}, NodeGroup{Name: "c", Labels: build}, RoleSystem},
	} {
		if got := RoleOf(params.Config{SystemNodeGroups: c.system, BuildNodeGroups: c.build}, c.group); got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
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
