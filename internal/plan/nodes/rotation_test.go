package nodes

import (
	"maps"
	"strings"
	"testing"
	"time"

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

// The nodes that an age makes Karpenter replace are those that are older, unless they are being replaced by their age already. Nothing
// is said of them where no node's turn comes by the plan.
func TestWhatAnAgeReplaces(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	rotating := func(age string, frozen bool) plan.Plan {
		_, compiled := judgedOverlays(nil)
		release := plan.Release{Version: builtin().Version}
		return plan.Plan{NodePools: plan.NodePools{Objects: compiled.Objects(), RotateAfter: age, Frozen: frozen},
			Controller: plan.Controller{Release: release, CRDs: plan.CRDs{Version: builtin().Version}}}
	}
	hash := nodePool(t, rotating("", false).NodePools.Objects[1]).Hash()
	claim := func(hours int, labels object) plan.Object {
		maps.Copy(labels, object{"karpenter.sh/nodepool": "workload", "kubernetes.io/arch": "amd64", "karpenter.sh/capacity-type": "on-demand"})
		return plan.Object{
			"metadata": object{"labels": labels, "creationTimestamp": now.Add(time.Duration(-hours) * time.Hour).Format(time.RFC3339),
				"annotations": object{ownership.NodePoolHash: hash, ownership.NodePoolHashVersion: karpenter.NodePoolHashVersion}},
			"status": object{"conditions": []any{object{"type": "Launched", "status": "True"}}},
		}
	}
	const two = "pool workload is changed: Karpenter replaces 2 of its 4 nodes (Rotated), as its disruption budget allows"
	claims := []plan.Object{claim(10, object{}), claim(24, object{}), claim(30, object{}), claim(50, object{ownership.Rotating: "true"})}
	for _, c := range []struct {
		was     string
		frozen  bool // before
		is      string
		freezes bool
		claims  []plan.Object
		want    string
	}{
		{is: "24h", claims: claims, want: two},
		{was: "48h", is: "24h", claims: claims, want: two},
		{was: "24h", frozen: true, is: "24h", claims: claims, want: two},
		{is: "24h", want: "pool workload is changed: Karpenter may replace some or all of its nodes (Rotated), as its disruption budget allows"},
		{is: "31h", claims: claims},
		{was: "24h", is: "24h", claims: claims},
		{was: "24h", is: "48h", claims: claims},
		{was: "24h", claims: claims},
		{is: "24h", freezes: true, claims: claims, want: "pool workload is changed: its 4 nodes stay"}, // by its budget
	} {
		var said []string
		for _, e := range Effects(rotating(c.was, c.frozen), rotating(c.is, c.freezes), plan.Facts{NodeClaims: c.claims, Now: now}) {
			said = append(said, e.String())
		}
		if got := strings.Join(said, "; "); got != c.want {
			t.Errorf("%s (frozen %v) to %s (frozen %v): %q, want %q", c.was, c.frozen, c.is, c.freezes, got, c.want)
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
