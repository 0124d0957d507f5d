package plan

import (
	"slices"
	"strings"
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

// An unlabelled group with a taint that keeps pods away is for special work: it is additional and not a system group.
func TestRoleOfTaintedNodeGroups(t *testing.T) {
	tainted := func(key, effect string) NodeGroup {
		return NodeGroup{Name: "a", Taints: []NodeGroupTaint{{Key: key, Effect: effect}}}
	}
	both := tainted("CriticalAddonsOnly", "NO_SCHEDULE")
	both.Taints = append(both.Taints, NodeGroupTaint{Key: "gpu", Effect: "NO_SCHEDULE"})
	for _, c := range []struct {
		what   string
		system []string
		group  NodeGroup
		want   GroupRole
	}{
		{"NoSchedule", nil, tainted("nvidia.com/gpu", "NO_SCHEDULE"), RoleAdditional},
		{"NoExecute", nil, tainted("team", "NO_EXECUTE"), RoleAdditional},
		{"PreferNoSchedule keeps nobody away", nil, tainted("team", "PREFER_NO_SCHEDULE"), RoleSystem},
		{"EKS's own taint of system groups", nil, tainted("CriticalAddonsOnly", "NO_SCHEDULE"), RoleSystem},
		{"that taint and another one", nil, both, RoleAdditional},
		{"the parameter wins", []string{"a"}, tainted("team", "NO_EXECUTE"), RoleSystem},
	} {
		if got := RoleOf(params.Config{SystemNodeGroups: c.system}, c.group); got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
}

// The parameters that name groups take precedence over labels. A group that is not named is then additional.
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

// The problem of a cluster without a system group names both ways out: to create one, or to name one or stay on
// Fargate.
func TestNoSystemGroup(t *testing.T) {
	config := params.Config{Rack: "demo", ClusterName: "demo", AuthMode: true, Enabled: true}
	special := NodeGroup{
		Name: "gpu", Labels: map[string]string{"convox.io/label": "gpu"}, Taints: []NodeGroupTaint{{Key: "gpu", Effect: "NO_SCHEDULE"}},
	}
	for what, c := range map[string]struct {
		groups []NodeGroup
		want   []string
	}{
		"all of it on Fargate": {
			nil, []string{"create a managed node group", "karpenter_enabled=false, if all of it is to stay on Fargate"},
		},
		"groups for other work": {[]NodeGroup{special}, []string{"create a managed node group", "in system_node_groups (it has gpu)"}},
	} {
		facts := Facts{Cluster: &ClusterFacts{Status: "ACTIVE", Version: "1.35"}, NodeGroups: c.groups, PodIdentity: true}
		var told string
		for _, p := range Build(config, facts, nil).Problems {
			told += p.Message
		}
		for _, part := range c.want {
			if !strings.Contains(told, part) {
				t.Errorf("%s: %q is not in %q", what, part, told)
			}
		}
	}
}

// If a parameter names a group that does not exist, or was refused, the system groups are unknown. The pass reports
// that, and no problem that only follows from the remaining roles. Problems that follow from a group's own labels are
// still reported.
func TestWhatFollowsFromAWrongNameIsLeftOut(t *testing.T) {
	system := NodeGroup{Name: "system", CapacityType: "ON_DEMAND"}
	spot := NodeGroup{Name: "spot", CapacityType: "SPOT"}
	web := NodeGroup{Name: "web", CapacityType: "ON_DEMAND", Labels: map[string]string{"convox.io/label": "web"}}
	for _, c := range []struct {
		what   string
		config params.Config
		groups []NodeGroup
		want   []string // the parameter and a part of the message, in order
	}{
		{"a typo", params.Config{SystemNodeGroups: []string{"sytem"}}, []NodeGroup{system},
			[]string{`system_node_groups: has the node group "sytem"`}},
		{"a typo beside a good name", params.Config{SystemNodeGroups: []string{"system", "sytem2"}}, []NodeGroup{system, {Name: "system2"}},
			[]string{`system_node_groups: "sytem2"`}},
		{"a typo, and a group that says itself that it is no system group", params.Config{SystemNodeGroups: []string{"sytem"}},
			[]NodeGroup{system, web},
			[]string{"system_node_groups: sytem", "karpenter_enabled: not dedicated: web; with"}},
		{"the name of the build group", params.Config{BuildNodeGroups: []string{"bulid"}}, []NodeGroup{system, spot},
			[]string{"build_node_groups: bulid"}},
		{"a value that was refused", params.Config{Refused: []string{"system_node_groups"}}, []NodeGroup{spot}, nil},
		{"no groups at all", params.Config{SystemNodeGroups: []string{"system"}}, nil,
			[]string{"karpenter_enabled: has no system node group"}},
		{"good names", params.Config{SystemNodeGroups: []string{"system"}}, []NodeGroup{system, spot},
			[]string{"karpenter_enabled: not dedicated: spot; with"}},
	} {
		c.config.Rack, c.config.ClusterName, c.config.AuthMode, c.config.Enabled = "demo", "demo", true, true
		facts := Facts{Cluster: &ClusterFacts{Status: "ACTIVE", Version: "1.35"}, NodeGroups: c.groups, PodIdentity: true}
		if len(c.groups) > 0 {
			facts.Subnets = []Tagged{{ID: "subnet-a"}}
		}
		requireProblems(t, c.what, Build(c.config, facts, nil).Problems, c.want)
	}
}

// Subnets and security groups that replace refused ids were not chosen by the user, so they are not checked.
func TestWhatFollowsFromRefusedIDsIsLeftOut(t *testing.T) {
	facts := Facts{
		Cluster: &ClusterFacts{Status: "ACTIVE", Version: "1.35"}, NodeGroups: []NodeGroup{{Name: "system"}}, PodIdentity: true,
		SecurityGroups: []Tagged{{ID: "sg-a", Tags: map[string]string{"karpenter.sh/discovery": "other"}}},
	}
	config := params.Config{Rack: "demo", ClusterName: "demo", AuthMode: true}
	both := []string{"karpenter_auth_mode: security group sg-a carries", "karpenter_auth_mode: no subnets were found"}
	requireProblems(t, "none refused", Build(config, facts, nil).Problems, both)
	config.Refused = []string{"security_group_ids"}
	requireProblems(t, "groups refused", Build(config, facts, nil).Problems, both[1:])
	config.Refused = []string{"subnet_ids"}
	requireProblems(t, "subnets refused", Build(config, facts, nil).Problems, both[:1])
}

// requireProblems requires these problems, in order. Each is given as the parameter and a part of the message.
func requireProblems(t *testing.T, what string, got []params.Problem, want []string) {
	t.Helper()
	if !slices.EqualFunc(got, want, func(p params.Problem, want string) bool {
		parameter, part, _ := strings.Cut(want, ": ")
		return p.Parameter == parameter && strings.Contains(p.Message, part)
	}) {
		t.Errorf("%s: %v, want %q", what, got, want)
	}
}
