package validation

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// observed returns facts of a cluster as a pass has them.
func observed() plan.Facts {
	return plan.Facts{
		Cluster: &plan.ClusterFacts{Cluster: plan.Cluster{Name: "demo", ARN: "arn:aws:eks:eu-central-1:123456789012:cluster/demo",
			Partition: "aws"}, Status: "ACTIVE", Version: "1.35"},
		NodeGroups: []plan.NodeGroup{
			{Name: "a", Taints: []plan.NodeGroupTaint{{Key: "CriticalAddonsOnly", Effect: "NO_SCHEDULE"}}}, {Name: "b"}},
		PodIdentity: true,
		Subnets:     []plan.Tagged{{ID: "subnet-0123456789abcdef0"}}, SecurityGroups: []plan.Tagged{{ID: "sg-0123456789abcdef0"}},
	}
}

// A parameter that nothing reads would be accepted and have no effect.
func TestEveryParameterIsUsed(t *testing.T) {
	base := map[string]string{"karpenter_auth_mode": "true", "karpenter_enabled": "true", "build_node_enabled": "true",
		params.ParamBlockSchedule: "@daily", params.ParamBlockDuration: "1h"}
	// Where the example equals the value in the base, another valid value.
	values := map[string]string{
		"karpenter_auth_mode": "false", "karpenter_enabled": "false", "build_node_enabled": "false",
		"high_availability": "false", "karpenter_consolidation_enabled": "false", "node_type": "m7g.large",
		"build_node_type": "m7g.large", "karpenter_node_expiry": "1h", "karpenter_disruption_budget_nodes": "3",
		"karpenter_node_volume_type": "gp2", "system_node_groups": "b", "build_node_groups": "b",
		"migrate_node_groups": "b",
	}
	facts := observed()
	for _, p := range params.Table {
		seen := func(texts map[string]string) string {
			parsed := params.Parse(params.Input{Rack: "demo", Params: texts})
			observed := facts
			// What a pass observes for the two parameters that name resources to tag.
			observed.Subnets = named(parsed.Config.SubnetIDs, "subnet-00000000")
			observed.SecurityGroups = named(parsed.Config.SecurityGroupIDs, "sg-00000000")
			v := Validate(Input{Parsed: parsed, Facts: observed})
			if p.Name != "karpenter_auth_mode" && len(v.Problems) > 0 {
				t.Fatalf("%s: %v", p.Name, v.Problems)
			}
			text, err := json.Marshal([]any{v.Plan, v.Config.Paused, v.Problems})
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
		changed := maps.Clone(base)
		if changed[p.Name] = p.Example; values[p.Name] != "" {
			changed[p.Name] = values[p.Name]
		}
		if p.Name == params.ParamWindow { // not beside the two others
			delete(changed, params.ParamBlockSchedule)
			delete(changed, params.ParamBlockDuration)
		}
		if seen(base) == seen(changed) {
			t.Errorf("%s=%s changes nothing", p.Name, changed[p.Name])
		}
	}
}

func named(ids []string, otherwise string) []plan.Tagged {
	if len(ids) == 0 {
		ids = []string{otherwise}
	}
	var all []plan.Tagged
	for _, id := range ids {
		all = append(all, plan.Tagged{ID: id})
	}
	return all
}

// All mistakes are reported at once, each under its own parameter.
func TestAllMistakesAreTold(t *testing.T) {
	v := result(t, map[string]string{
		"karpenter_cpu_limit": "0", "node_disk": "1.5", "karpenter_node_expiry": "30d", "karpenter_node_labels": "karpenter.sh/x=y",
		"tags": "Name=x", "karpenter_instance_families": "c7i-flex",
		"nodetype": "m6i.large", "karpenter_node_taints": "a:NoExec",
		"karpenter_config":                      `{"nodePool":{"weight":300},"ec2NodeClass":{"role":"x"}}`,
		"additional_karpenter_nodepools_config": `[{"name":"build"}]`,
	})
	same(t, "problems", v.Problems, []string{
		"additional_karpenter_nodepools_config [0].name: reserved", "karpenter_config ec2NodeClass.role: protected",
		"karpenter_config nodePool.weight: less than or equal to 100", "karpenter_cpu_limit: allowed is",
		"karpenter_instance_families: names with a dash", "karpenter_node_expiry: write 720h", "karpenter_node_labels: restricted",
		"karpenter_node_taints: the effect", "node_disk: allowed is", "nodetype: did you mean node_type?", "tags: reserved",
	})
}
