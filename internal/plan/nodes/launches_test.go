package nodes

import (
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

func TestPoolsThatCouldLaunchNothing(t *testing.T) {
	on := plan.Facts{Records: plan.Records{WasOn: true}}
	noRole := plan.Facts{NoSpotRole: true}
	for _, c := range []struct {
		what   string
		params map[string]string
		facts  plan.Facts
		want   []string // "parameter: part of the message", one for each problem
	}{
		{"the defaults", nil, plan.Facts{}, nil},
		{"one vCPU, where instances with one are allowed", map[string]string{"karpenter_cpu_limit": "1"}, plan.Facts{}, nil},
		{"fewer vCPUs than the smallest",
			map[string]string{"karpenter_cpu_limit": "3", "karpenter_instance_sizes": "xlarge", "karpenter_instance_families": "c7i"}, plan.Facts{},
			[]string{"karpenter_cpu_limit: may have 3 of cpu, and the smallest instance that it may launch has at least 4"}},
		{"fewer vCPUs than the smallest, as a number", map[string]string{
			"karpenter_instance_sizes": "xlarge", "karpenter_instance_families": "c7i",
			params.ParamOverride: `{"nodePool":{"limits":{"cpu":3}}}`}, plan.Facts{},
			[]string{"karpenter_config: may have 3 of cpu, and the smallest instance that it may launch has at least 4"}},
		{"less memory than the smallest", map[string]string{"karpenter_memory_limit_gb": "2", "karpenter_instance_sizes": "large"}, plan.Facts{},
			[]string{"karpenter_memory_limit_gb: may have 2Gi of memory, and the smallest instance that it may launch has at least 3Gi"}},
		{"as many as the smallest", map[string]string{"karpenter_cpu_limit": "4", "karpenter_instance_sizes": "xlarge"}, plan.Facts{}, nil},
		{"a size that nobody knows", map[string]string{"karpenter_cpu_limit": "1", "karpenter_instance_sizes": "xlarge,xhuge"},
			plan.Facts{}, nil},
		{"a limit as a brake, once it is on", map[string]string{"karpenter_cpu_limit": "1", "karpenter_instance_sizes": "xlarge"}, on, nil},
		{"a build pool", map[string]string{"karpenter_build_cpu_limit": "1", "karpenter_instance_sizes": "xlarge", "build_node_enabled": "true"},
			plan.Facts{}, []string{"karpenter_build_cpu_limit: NodePool build"}},
		{"an additional pool, which takes nothing over", map[string]string{
			"additional_karpenter_nodepools_config": `[{"name": "a", "cpu_limit": 1, "instance_sizes": "xlarge"}]`}, plan.Facts{}, nil},
		{"a static pool of none", map[string]string{params.ParamOverride: `{"nodePool":{"replicas":0}}`,
			params.ParamController: `{"settings":{"featureGates":{"staticCapacity":true}}}`}, plan.Facts{},
			[]string{"karpenter_config: nodePool.replicas is 0, and pool workload shows a node before anything is handed over"}},
		{"no service-linked role, and no spot", nil, noRole, nil},
		{"spot without its role", map[string]string{"karpenter_capacity_types": "spot,on-demand"}, noRole,
			[]string{"karpenter_capacity_types: aws iam create-service-linked-role --aws-service-name spot.amazonaws.com"}},
		{"without a capacity type, and without its role", map[string]string{
			params.ParamOverride: `{"nodePool":{"template":{"spec":{"requirements":[
			{"key":"karpenter.k8s.aws/instance-category","operator":"In","values":["c","m"]}]}}}}`}, noRole,
			[]string{"karpenter_config: NodePool workload may launch spot"}},
		{"on-demand by a label", map[string]string{params.ParamOverride: `{"nodePool":{"template":{"metadata":{"labels":{
			"karpenter.sh/capacity-type":"on-demand"}},"spec":{"requirements":[
			{"key":"karpenter.k8s.aws/instance-category","operator":"In","values":["c","m"]}]}}}}`}, noRole, nil},
		{"spot with its role", map[string]string{"karpenter_capacity_types": "spot,on-demand"}, plan.Facts{}, nil},
		{"spot of an additional pool", map[string]string{"additional_karpenter_nodepools_config": `[{"name": "a", "capacity_types": "spot"}]`},
			plan.Facts{NoSpotRole: true, Records: on.Records}, []string{"additional_karpenter_nodepools_config: NodePool a may launch spot"}},
		{"spot while it is off", map[string]string{"karpenter_capacity_types": "spot", "karpenter_enabled": "false"}, noRole, nil},
	} {
		got := Compile(configOf(t, c.params), c.facts).Launches(c.facts, nil)
		if len(got) != len(c.want) {
			t.Errorf("%s: %v", c.what, got)
			continue
		}
		for i, want := range c.want {
			parameter, part, _ := strings.Cut(want, ": ")
			if got[i].Parameter != parameter || !strings.Contains(got[i].Message, part) {
				t.Errorf("%s: %+v, want %s", c.what, got[i], want)
			}
		}
	}
}

// The least that a known type has is no more than what it has.
func TestTheLeastOfAnInstance(t *testing.T) {
	for _, c := range []struct {
		family, size string
		cpu, gib     float64
	}{
		{"t2", "nano", 1, 0.5}, {"m6g", "medium", 1, 4}, {"c3", "large", 2, 3.75}, {"m2", "xlarge", 2, 17.1}, {"c1", "xlarge", 8, 7},
		{"c7i", "24xlarge", 96, 192}, {"hpc7a", "12xlarge", 24, 768}, {"hpc6a", "48xlarge", 96, 384}, {"z1d", "3xlarge", 12, 96},
		{"m7i", "metal-24xl", 96, 384}, {"g6f", "large", 2, 8}, {"u-6tb1", "56xlarge", 224, 6144}, {"p5", "4xlarge", 16, 256},
	} {
		if cpu, memory := leastOf(c.family, c.size); float64(cpu) > c.cpu || float64(memory) > c.gib*(1<<30)*0.92 {
			t.Errorf("%s.%s: %d vCPUs, %d bytes", c.family, c.size, cpu, memory)
		}
	}
}

// A build pool that comes later takes over too. Once it has, a limit may be a brake.
func TestABuildPoolThatComesLater(t *testing.T) {
	parsed := params.Parse(params.Input{Rack: "demo", Params: map[string]string{"karpenter_auth_mode": "true", "karpenter_enabled": "true",
		"build_node_enabled": "true", "karpenter_build_cpu_limit": "1", "karpenter_instance_sizes": "xlarge"}})
	facts := plan.Facts{Records: plan.Records{WasOn: true}}
	compiled := Compile(parsed.Config, facts)
	if got := compiled.Launches(facts, &plan.Plan{}); len(got) != 1 || got[0].Parameter != "karpenter_build_cpu_limit" {
		t.Error(got)
	}
	if got := compiled.Launches(facts, &plan.Plan{NodePools: plan.NodePools{Objects: compiled.Objects()}}); len(got) > 0 {
		t.Error(got)
	}
}
