package nodes

import (
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// Each layer comes before those that are farther away from the pool, and a written default is written.
func TestLayers(t *testing.T) {
	const expiry = `{"nodePool":{"template":{"spec":{"expireAfter":"100h"}}}}`
	const spot = `{"nodePool":{"template":{"spec":{"requirements":[{"key":"karpenter.sh/capacity-type","operator":"In","values":["spot"]}]}}}}`
	const bottlerocket = `{"ec2NodeClass":{"amiSelectorTerms":[{"alias":"bottlerocket@latest"}]}}`
	const capacity = "spec.template.spec.requirements[0].values[0]"
	for _, c := range []struct {
		written            map[string]string
		object, path, want string
	}{
		{nil, "NodePool/workload", "spec.template.spec.expireAfter", BuiltIn},
		{map[string]string{"karpenter_defaults_config": expiry}, "NodePool/build", "spec.template.spec.expireAfter",
			"karpenter_defaults_config nodePool.template.spec.expireAfter"},
		{map[string]string{"karpenter_defaults_config": expiry, "karpenter_node_expiry": "720h"}, "NodePool/build",
			"spec.template.spec.expireAfter", "karpenter_node_expiry"},
		{map[string]string{"karpenter_defaults_config": expiry, "karpenter_node_expiry": "720h", "karpenter_build_config": expiry},
			"NodePool/build", "spec.template.spec.expireAfter", "karpenter_build_config nodePool.template.spec.expireAfter"},
		{map[string]string{"karpenter_defaults_config": spot}, "NodePool/workload", capacity,
			"karpenter_defaults_config nodePool.template.spec.requirements[0].values[0]"},
		{map[string]string{"karpenter_defaults_config": spot, "karpenter_capacity_types": "on-demand"}, "NodePool/workload", capacity,
			"karpenter_capacity_types"},
		{map[string]string{"karpenter_defaults_config": bottlerocket, "karpenter_ami_alias": "bottlerocket@v1.44.0"}, "EC2NodeClass/build",
			"spec.amiSelectorTerms[0].alias", "karpenter_ami_alias"},
		{map[string]string{"karpenter_ami_alias": "bottlerocket@v1.44.0"}, "EC2NodeClass/build", "spec.amiSelectorTerms[0].alias", BuiltIn},
		{map[string]string{"karpenter_ami_alias": "al2023@v20260828", "additional_karpenter_nodepools_config": `[{"name":"a","nodePool":` +
			`{"weight":3}}]`}, "NodePool/a", "spec.weight", "additional_karpenter_nodepools_config [0].nodePool.weight"},
		{map[string]string{"additional_karpenter_nodepools_config": `[{"name":"a","ami_id":"ami-0123456789abcdef0"}]`}, "EC2NodeClass/a",
			"spec.amiSelectorTerms[0].id", "additional_karpenter_nodepools_config [0].ami_id"},
	} {
		texts := map[string]string{"karpenter_auth_mode": "true", "karpenter_enabled": "true", "build_node_enabled": "true"}
		for name, value := range c.written {
			texts[name] = value
		}
		parsed := params.Parse(params.Input{Rack: "demo", Params: texts})
		compiled := Compile(parsed.Config, plan.Facts{})
		if problems := append(parsed.Problems, compiled.Check()...); len(problems) > 0 {
			t.Errorf("%v: %v", c.written, problems)
		}
		var lines string
		for _, e := range compiled.Explain() {
			lines += e.String()
		}
		if want := c.object + " " + c.path + ": " + c.want + "\n"; !strings.Contains(lines, want) {
			t.Errorf("%v: no %sin\n%s", c.written, want, lines)
		}
	}
}

// A wrong value is reported where it stands, in each of the new places.
func TestWrongValuesInConfigs(t *testing.T) {
	for _, c := range []struct{ parameter, value, path, words string }{
		{"karpenter_defaults_config", `{"nodePool":{"weight":3}}`, "nodePool.weight", "protected"},
		{"karpenter_defaults_config", `{"nodePool":{"limits":{"cpu":"3"}}}`, "nodePool.limits", "protected"},
		{"karpenter_defaults_config", `{"nodePool":{"replicas":3}}`, "nodePool.replicas", "protected"},
		{"karpenter_defaults_config", `{"nodePool":{"template":{"spec":{"expireAfter":"0h"}}}}`, "nodePool.template.spec.expireAfter",
			"delete every"},
		{"karpenter_build_config", `{"nodePool":{"template":{"metadata":{"labels":{"convox-build":"x"}}}}}`,
			"nodePool.template.metadata.labels.convox-build", "protected"},
		{"karpenter_build_config", `{"nodePool":{"template":{"spec":{"taints":[{"key":"dedicated","effect":"NoSchedule"}]}}}}`,
			"nodePool.template.spec.taints[0].key", "reserved"},
		{"karpenter_build_config", `{"ec2NodeClass":{"role":"x"}}`, "ec2NodeClass.role", "protected"},
		{params.ParamAdditional, `[{"name":"a","nodePool":{"weight":101}}]`, "[0].nodePool.weight", "100"},
		{params.ParamAdditional, `[{"name":"a","nodePool":{"replicas":2}}]`, "[0].nodePool.replicas", "StaticCapacity is off"},
		{params.ParamAdditional, `[{"name":"a","ec2NodeClass":null}]`, "[0].ec2NodeClass", "null"},
		{params.ParamAdditional, `[{"name":"a","ec2NodeClass":{"userDate":"x"}}]`, "[0].ec2NodeClass.userDate", "did you mean userData?"},
		{params.ParamAdditional, `[{"name":"a","ec2NodeClass":{"tags":{"name":"x"}}}]`, "[0].ec2NodeClass.tags.name", "protected"},
		{params.ParamAdditional, `[{"name":"a","volume_iops":10001}]`, "[0].volume_iops", "allowed are 10000"},
		{params.ParamAdditional, `[{"name":"a","volume_throughput":751}]`, "[0].volume_throughput", "allowed are 750"},
		{params.ParamAdditional, `[{"name":"a","volume_type":"io1","volume_iops":3000}]`, "[0].volume_iops", "gp3 only"},
		{params.ParamAdditional, `[{"name":"a","ami_id":"ami-1"}]`, "[0].ami_id", "allowed is the ID"},
		{params.ParamAdditional, `[{"name":"a","os":"windows"}]`, "[0].os", "allowed is al2023"},
	} {
		parsed := params.Parse(params.Input{Rack: "demo", Params: map[string]string{
			"karpenter_auth_mode": "true", "karpenter_enabled": "true", "build_node_enabled": "true", c.parameter: c.value}})
		problems := append(parsed.Problems, Compile(parsed.Config, plan.Facts{}).Check()...)
		if len(problems) == 0 || problems[0].Parameter != c.parameter || problems[0].Path != c.path ||
			!strings.Contains(problems[0].Message, c.words) {
			t.Errorf("%s=%s: %v, want %s: %s", c.parameter, c.value, problems, c.path, c.words)
		}
	}
}
