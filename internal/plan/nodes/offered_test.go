package nodes

import (
	"maps"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

func TestOffered(t *testing.T) {
	offered := map[string][]string{"c6i": {"us-east-1a", "us-east-1b"}, "p5": {"us-east-1f"}, "g5": {"us-east-1b"}, "zz9": {}}
	const inA = `{"nodePool":{"template":{"spec":{"requirements":[` +
		`{"key":"topology.kubernetes.io/zone","operator":"In","values":["us-east-1a"]},` +
		`{"key":"karpenter.k8s.aws/instance-family","operator":"In","values":["g5"]}]}}}}`
	for _, c := range []struct {
		families, config string
		offered          map[string][]string
		problem, warning string
	}{
		{"c6i", "", offered, "", ""},
		{"", "", offered, "", ""},
		{"p5", "", nil, "", ""}, // not looked up
		{"c7i", "", offered, "", ""},
		{"p5", "", offered, "karpenter_instance_families: is p5, which EC2 does not offer in us-east-1a, us-east-1b, so NodePool workload", ""},
		{"p5,zz9", "", offered, "karpenter_instance_families: is p5 or zz9, which EC2 does not offer in us-east-1a", ""},
		{"p5,c6i", "", offered, "", ""},
		{"c6i,zz9", "", offered, "", "karpenter_instance_families: has zz9, which EC2 does not offer in the region"},
		{"", inA, offered, "karpenter_config: is g5, which EC2 does not offer in us-east-1a, so", ""},
	} {
		texts := map[string]string{"karpenter_auth_mode": "true", "karpenter_enabled": "true"}
		if c.families != "" {
			texts["karpenter_instance_families"] = c.families
		}
		if c.config != "" {
			texts[params.ParamOverride] = c.config
		}
		facts := plan.Facts{Cluster: &plan.ClusterFacts{Version: "1.35"}, Offered: c.offered,
			Subnets: []plan.Tagged{{ID: "subnet-1", Zone: "us-east-1a"}, {ID: "subnet-2", Zone: "us-east-1b"}}}
		compiled := Compile(params.Parse(params.Input{Rack: "demo", Params: texts}).Config, facts)
		says := func(what string, got []params.Problem, want string) {
			t.Helper()
			parameter, part, _ := strings.Cut(want, ": ")
			if (want == "") != (len(got) == 0) || want != "" &&
				(len(got) > 1 || got[0].Parameter != parameter || !strings.Contains(got[0].Message, part)) {
				t.Errorf("%s %s: %s %v, want %q", c.families, c.config, what, got, want)
			}
		}
		problems, warnings := compiled.Offered(facts, nil)
		says("problems", problems, c.problem)
		says("warnings", warnings, c.warning)
		if off, _ := compiledOff(texts, facts).Offered(facts, nil); len(off) > 0 {
			t.Errorf("%s %s: while Karpenter is off: %v", c.families, c.config, off)
		}
		if c.problem != "" { // a rack that has it already goes on
			problems, warnings := compiled.Offered(facts, &plan.Plan{NodePools: plan.NodePools{Objects: compiled.Objects()}})
			says("problems in force", problems, "")
			says("warnings in force", warnings, strings.Split(c.problem, ", so")[0])
		}
	}
}

// compiledOff compiles the objects of a rack whose Karpenter is off.
func compiledOff(texts map[string]string, facts plan.Facts) Compiled {
	off := maps.Clone(texts)
	off["karpenter_enabled"] = "false"
	return Compile(params.Parse(params.Input{Rack: "demo", Params: off}).Config, facts)
}
