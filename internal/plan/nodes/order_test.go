package nodes

import (
	"encoding/json"
	"slices"
	"testing"

	karpenter "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/utils/nodepool"

	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// The order in which pools are tried is Karpenter's own.
func TestPoolsAreTriedInKarpentersOrder(t *testing.T) {
	parsed := params.Parse(params.Input{Rack: "demo", Params: map[string]string{
		"karpenter_auth_mode": "true", "karpenter_enabled": "true", "build_node_enabled": "true", "karpenter_config": `{"nodePool":{"weight":7}}`,
		"additional_karpenter_nodepools_config": `[{"name":"a"},{"name":"z"},{"name":"b","weight":7},{"name":"x","weight":7},{"name":"c","weight":100},{"name":"z-1"},{"name":"z1"}]`,
	}})
	if len(parsed.Problems) > 0 {
		t.Fatal(parsed.Problems)
	}
	compiled := Compile(parsed.Config, plan.Facts{})
	var got, want []string
	for _, c := range candidates(compiled.drafts) {
		got = append(got, c.pool.name)
	}
	var pools []*karpenter.NodePool
	for _, object := range compiled.Objects() {
		text, err := json.Marshal(object)
		var pool karpenter.NodePool
		if err != nil || json.Unmarshal(text, &pool) != nil {
			t.Fatal(err, object)
		}
		if pool.Kind == "NodePool" {
			pools = append(pools, &pool)
		}
	}
	nodepool.OrderByWeight(pools)
	for _, pool := range pools {
		want = append(want, pool.Name)
	}
	if !slices.Equal(got, want) {
		t.Errorf("tried %v; Karpenter has %v", got, want)
	}
}
