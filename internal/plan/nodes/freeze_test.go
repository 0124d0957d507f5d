package nodes

import (
	"reflect"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// The freeze is one more budget of every pool, after the pool's own, and it is gone without a trace.
func TestFreeze(t *testing.T) {
	none := map[string]any{"nodes": "0"}
	ten, drifted := map[string]any{"nodes": "10%"}, map[string]any{"nodes": "5", "reasons": []any{"Drifted"}}
	texts := map[string]string{
		"karpenter_auth_mode": "true", "karpenter_enabled": "true", "build_node_enabled": "true",
		"additional_karpenter_nodepools_config": `[{"name":"gpu","instance_families":"g5"}]`,
		"karpenter_config":                      `{"nodePool":{"disruption":{"budgets":[{"nodes":"5","reasons":["Drifted"]}]}}}`,
	}
	frozen := map[string][]any{"workload": {drifted, none}, "build": {none}, "gpu": {ten, none}}
	free := map[string][]any{"workload": {drifted}, "build": nil, "gpu": {ten}}
	for value, want := range map[string]map[string][]any{"true": frozen, "false": free} {
		texts["karpenter_freeze"] = value
		parsed := params.Parse(params.Input{Rack: "demo", Params: texts})
		for range 2 { // the parameters stay as they are
			compiled := Compile(parsed.Config, plan.Facts{Offline: true})
			if problems := append(parsed.Problems, compiled.Check()...); len(problems) > 0 {
				t.Fatal(problems)
			}
			for _, object := range compiled.Objects() {
				name := object["metadata"].(map[string]any)["name"].(string)
				budgets, _ := inner(inner(object, "spec"), "disruption")["budgets"].([]any)
				if object["kind"] == "NodePool" && !reflect.DeepEqual(budgets, want[name]) {
					t.Errorf("karpenter_freeze=%s: NodePool %s has the budgets %v, want %v", value, name, budgets, want[name])
				}
			}
			told := 0
			for _, w := range compiled.Advice() {
				if w.Parameter == "karpenter_freeze" {
					told++
				}
			}
			if told != map[string]int{"true": 1}[value] {
				t.Errorf("karpenter_freeze=%s: %d warnings about it", value, told)
			}
		}
	}
}
