package nodes

import (
	"strconv"
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
		{map[string]string{"karpenter_node_disk": "70", "karpenter_node_volume_iops": "4000"}, "EC2NodeClass/workload",
			"spec.blockDeviceMappings[0].ebs.iops", "karpenter_node_volume_iops"},
		{map[string]string{"karpenter_node_disk": "70", "karpenter_node_volume_iops": "4000"}, "EC2NodeClass/workload",
			"spec.blockDeviceMappings[0].ebs.volumeSize", "karpenter_node_disk"},
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

// written are the parameters that set a setting's layers. Those of an entry are its members.
func written(l params.Layered, sets [3]bool) map[string]string {
	texts := map[string]string{"karpenter_auth_mode": "true", "karpenter_enabled": "true", "build_node_enabled": "true"}
	entry := `"name":"a"`
	for i, layer := range l.Layers {
		switch {
		case !sets[i]:
		case layer.Parameter == params.ParamAdditional:
			entry += "," + layer.Text
		default:
			texts[layer.Parameter] = layer.Text
		}
	}
	texts[params.ParamAdditional] = "[{" + entry + "}]"
	return texts
}

// What docs/parameters.md says of each combination of the layers is what the plan has, and Explain names the layer.
func TestPrecedence(t *testing.T) {
	combinations := 0
	for _, l := range params.Precedence {
		for _, c := range params.Combinations {
			combinations++
			parsed := params.Parse(params.Input{Rack: "demo", Params: written(l, c.Sets)})
			compiled := Compile(parsed.Config, plan.Facts{})
			if problems := append(parsed.Problems, compiled.Check()...); len(problems) > 0 {
				t.Fatalf("%s, %v: %v", l.Setting, c.Sets, problems)
			}
			value, from := l.BuiltIn, BuiltIn
			if c.InForce >= 0 {
				value, from = l.Layers[c.InForce].Value, l.Layers[c.InForce].Parameter
			}
			if got, layer := inPlan(compiled, l.Object, l.Path); got != value || got != "" && !strings.HasPrefix(layer, from) {
				t.Errorf("%s, %v: %q from %s, want %q from %s", l.Setting, c.Sets, got, layer, value, from)
			}
		}
	}
	if combinations != 40 {
		t.Errorf("%d combinations", combinations)
	}
}

// inPlan returns a field of a manifest, and where it comes from; "" if it is not there.
func inPlan(c Compiled, object string, path []string) (value, from string) {
	for _, d := range c.drafts {
		if d.kind+"/"+d.name != object {
			continue
		}
		var at any = d.spec()
		for _, part := range path {
			switch inside := at.(type) {
			case map[string]any:
				at = inside[part]
			case []any:
				i, _ := strconv.Atoi(part)
				at = inside[i]
			}
		}
		value, _ = at.(string)
		return value, d.blame(path...).layer(true)
	}
	return "", ""
}
