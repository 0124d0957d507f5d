package nodes

import (
	"strings"
	"testing"

	karpenter "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// A node that rotates is not said to be replaced because of a change that leaves its pool's hash as it is, and is by one that does not.
func TestAChangeAndRotation(t *testing.T) {
	pool := func(texts map[string]string) plan.Plan {
		_, compiled := judgedOverlays(texts)
		release := plan.Release{Version: builtin().Version}
		return plan.Plan{NodePools: plan.NodePools{Objects: compiled.Objects()},
			Controller: plan.Controller{Release: release, CRDs: plan.CRDs{Version: builtin().Version}}}
	}
	before := pool(nil)
	hash := nodePool(t, before.NodePools.Objects[1])
	facts := plan.Facts{NodeClaims: []plan.Object{{
		"metadata": object{"labels": object{"karpenter.sh/nodepool": "workload", ownership.Rotating: "true", "kubernetes.io/arch": "amd64",
			"karpenter.sh/capacity-type": "on-demand"},
			"annotations": object{ownership.NodePoolHash: ownership.Rotated, ownership.NodePoolHashVersion: karpenter.NodePoolHashVersion,
				ownership.AnnotationHash: karpenter.NodePoolHashVersion + "/" + hash.Hash()}},
		"status": object{"conditions": []any{object{"type": "Launched", "status": "True"},
			object{"type": "Drifted", "status": "True", "reason": nodePoolDrifted}}},
	}}}
	for parameter, replaces := range map[string]bool{"karpenter_cpu_limit": false, "karpenter_node_expiry": true} {
		value := map[string]string{"karpenter_cpu_limit": "7", "karpenter_node_expiry": "7h"}[parameter]
		effects := Effects(before, pool(map[string]string{parameter: value}), facts)
		if len(effects) != 1 || effects[0].Replaces != replaces {
			t.Errorf("%s: %+v", parameter, effects)
		}
	}
}

// Expiry that comes before rotation has done its work is told, with what budgets and windows need.
func TestExpiryBeforeRotation(t *testing.T) {
	const message = "nodes of workload expire after 720h, which is not longer than the 718h of karpenter_rotate_after and the 3h that " +
		"budgets and windows may need; expiry replaces nodes without either; write an expiry of more than 721h, or Never"
	for _, c := range []struct {
		texts map[string]string
		nodes int
		want  string
	}{
		{map[string]string{}, 0, ""},
		{map[string]string{params.ParamRotateAfter: "717h"}, 0, ""},
		{map[string]string{params.ParamRotateAfter: "718h"}, 0, message},
		{map[string]string{params.ParamRotateAfter: "718h", "karpenter_node_expiry": "Never"}, 0, ""},
		{map[string]string{params.ParamRotateAfter: "718h", "karpenter_disruption_budget_nodes": "50%"}, 0, ""},
		{map[string]string{params.ParamRotateAfter: "718h", "karpenter_disruption_budget_nodes": "2"}, 14, ""},
		{map[string]string{params.ParamRotateAfter: "718h", "karpenter_disruption_budget_nodes": "2"}, 16, "and the 2h that"},
		{map[string]string{params.ParamRotateAfter: "600h", params.ParamWindow: "SAT 09:00-13:00"}, 0, "and the 167h that"},
		{map[string]string{params.ParamRotateAfter: "500h", params.ParamWindow: "SAT 09:00-13:00"}, 0, ""},
		{map[string]string{params.ParamRotateAfter: "718h", "karpenter_disruption_budget_nodes": "0"}, 16, ""},
		{map[string]string{params.ParamRotateAfter: "720h", "karpenter_disruption_budget_nodes": "0"}, 16, "and the 0h that"},
	} {
		_, compiled := judgedOverlays(c.texts)
		got := ""
		for _, p := range compiled.Rotation(map[string]plan.PoolFacts{"workload": {Nodes: c.nodes}}) {
			got += p.Parameter + ": " + p.Message
		}
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%v: %q, want %q", c.texts, got, c.want)
		}
	}
}
