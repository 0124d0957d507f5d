package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/params"
)

func TestArchOfInstanceTypes(t *testing.T) {
	for want, types := range map[string]string{
		"arm64": "a1.medium m6g.large m7gd.large c6gn.xlarge r8g.large t4g.micro im4gn.large is4gen.large i4g.large x2gd.large " +
			"g5g.xlarge hpc7g.4xlarge p6e-gb200.36xlarge m8gb.large",
		"amd64": "m5.large m5zn.large m6i.large m7a.large c7i-flex.large t3a.small g4dn.xlarge g5.xlarge g6e.xlarge gr6.4xlarge " +
			"i4i.large inf2.xlarge trn1.2xlarge u-6tb1.metal u7i-12tb.224xlarge p6-b200.48xlarge vt1.3xlarge",
	} {
		for each := range strings.FieldsSeq(types) {
			if got := Arch(params.Config{NodeTypes: []string{each}}, Facts{}); !slices.Equal(got, []string{want}) {
				t.Errorf("%s: %v, want %s", each, got, want)
			}
		}
	}
}

func TestArchIsDetected(t *testing.T) {
	group := func(ami string, labels map[string]string, types ...string) NodeGroup {
		return NodeGroup{AMIType: ami, Labels: labels, InstanceTypes: types}
	}
	build := map[string]string{"convox-build": "true"}
	for _, c := range []struct {
		what   string
		config params.Config
		groups []NodeGroup
		want   string
	}{
		{"the parameter wins", params.Config{NodeTypes: []string{"m6i.large"}, Workload: params.Pool{Arch: []string{"arm64"}}},
			nil, "arm64"},
		{"node_type before the groups", params.Config{NodeTypes: []string{"m7g.large"}},
			[]NodeGroup{group("AL2023_x86_64_STANDARD", nil, "m6i.large")}, "arm64"},
		{"the first of node_type", params.Config{NodeTypes: []string{"m7g.large", "c6i.large"}}, nil, "arm64"},
		{"the system groups' types", params.Config{}, []NodeGroup{group("", nil, "m7g.large")}, "arm64"},
		{"the system groups' images", params.Config{}, []NodeGroup{group("BOTTLEROCKET_ARM_64", nil)}, "arm64"},
		{"two kinds of system groups", params.Config{},
			[]NodeGroup{group("AL2023_ARM_64_STANDARD", nil), group("AL2_x86_64", nil, "m6i.large", "m6a.large")}, "amd64 arm64"},
		{"build groups do not count", params.Config{}, []NodeGroup{group("AL2_ARM_64", build), group("", nil, "m6i.large")}, "amd64"},
		{"nothing known", params.Config{}, []NodeGroup{group("CUSTOM", nil)}, "amd64"},
	} {
		if got := strings.Join(Arch(c.config, Facts{NodeGroups: c.groups}), " "); got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
}
