package nodes

import (
	"maps"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// withStatic compiles a rack whose feature gate StaticCapacity is on.
func withStatic(t *testing.T, values map[string]string) Compiled {
	t.Helper()
	texts := map[string]string{"karpenter_version": "1.15.1",
		"karpenter_controller_config": `{"settings":{"featureGates":{"staticCapacity":true}}}`}
	maps.Copy(texts, values)
	return Compile(configOf(t, texts), plan.Facts{})
}

// A static pool has its number of nodes, and neither limits nor weight nor consolidation. (The CRD requires consolidateAfter.)
func TestStaticPool(t *testing.T) {
	for _, object := range withStatic(t, entries(`{"name":"fixed","nodePool":{"replicas":3}}`)).Objects() {
		spec := inner(object, "spec")
		if name, _ := inner(object, "metadata")["name"].(string); name != "fixed" || object["kind"] != "NodePool" {
			continue
		}
		consolidation := inner(spec, "disruption")
		if !static(object) || spec["weight"] != nil || spec["limits"] != nil || consolidation["consolidateAfter"] != "Never" ||
			consolidation["consolidationPolicy"] != nil {
			t.Errorf("%v", spec)
		}
		return
	}
	t.Error("there is no pool fixed")
}

func entries(list string) map[string]string {
	return map[string]string{params.ParamAdditional: "[" + list + "]"}
}

// A pool does not change between the kinds, and a static one with nodes is taken away by force only.
func TestStaticPoolsInForce(t *testing.T) {
	const three, pods = `{"name":"fixed","nodePool":{"replicas":3}}`, `{"name":"fixed"}`
	running := func(pool string, nodes int) plan.Facts {
		facts := plan.Facts{NodeClaims: []plan.Object{}}
		for range nodes {
			facts.NodeClaims = append(facts.NodeClaims, plan.Object{
				"metadata": map[string]any{"labels": map[string]any{"karpenter.sh/nodepool": pool}},
				"status":   map[string]any{"conditions": []any{map[string]any{"type": "Launched", "status": "True"}}},
			})
		}
		return facts
	}
	build := func(enabled string) map[string]string {
		return map[string]string{"build_node_enabled": enabled, params.ParamBuildConfig: `{"nodePool":{"replicas":2}}`}
	}
	for what, c := range map[string]struct {
		before, after map[string]string
		facts         plan.Facts
		want          string // "parameter path: part of the message", or ""
	}{
		"another number": {entries(three), entries(`{"name":"fixed","nodePool":{"replicas":0}}`), running("fixed", 3), ""},
		"it becomes static": {entries(pods), entries(three), running("fixed", 3),
			params.ParamAdditional + " [0].nodePool.replicas: is not static"},
		"it becomes elastic": {entries(three), entries(pods), running("fixed", 3),
			params.ParamAdditional + " [0].nodePool.replicas: is static"},
		"taken away":           {entries(three), nil, running("fixed", 3), params.ParamAdditional + ` : "force": ["retire:fixed"]`},
		"taken away, unknown":  {entries(three), nil, plan.Facts{}, params.ParamAdditional + " : pool fixed is not there any more"},
		"taken away, empty":    {entries(three), nil, running("fixed", 0), ""},
		"taken away, elastic":  {entries(pods), nil, running("fixed", 3), ""},
		"taken away, by force": {entries(three), nil, plan.Facts{Force: events.Force{"retire:fixed"}}, ""},
		"turned off":           {entries(three), map[string]string{"karpenter_enabled": "false"}, running("fixed", 3), ""},
		"the build pool": {build("true"), build("false"), running("build", 2),
			"build_node_enabled : pool build is not there any more, and it is static"},
		"put back while it is being removed": {nil, entries(three),
			plan.Facts{Pools: map[string]plan.PoolFacts{"fixed": {Nodes: 1}}}, params.ParamAdditional + " [0].nodePool.replicas: is not static"},
		"put back as it was": {nil, entries(pods), plan.Facts{Pools: map[string]plan.PoolFacts{"fixed": {Nodes: 1}}}, ""},
		"a pool of others":   {nil, entries(three), plan.Facts{Pools: map[string]plan.PoolFacts{"fixed": {Others: true}}}, ""},
	} {
		inForce := &plan.Plan{NodePools: plan.NodePools{Objects: withStatic(t, c.before).Objects()}}
		got := withStatic(t, c.after).Static(c.facts, inForce)
		if c.want == "" {
			if len(got) > 0 {
				t.Errorf("%s: %v", what, got)
			}
			continue
		}
		place, part, _ := strings.Cut(c.want, ": ")
		if len(got) != 1 || got[0].Parameter+" "+got[0].Path != place || !strings.Contains(got[0].Message, part) {
			t.Errorf("%s: %+v, want %s", what, got, c.want)
		}
	}
}

// A new pool cannot have the name of a NodePool that others made. One in force stays, whatever becomes of its label.
func TestTakenNames(t *testing.T) {
	facts := plan.Facts{Pools: map[string]plan.PoolFacts{"ci": {Others: true}, "ours": {}}}
	list := entries(`{"name":"ours"},{"name":"ci"}`)
	for what, c := range map[string]struct {
		before, after map[string]string
		problems      int
	}{
		"new":        {nil, list, 1},
		"in force":   {list, list, 0},
		"turned off": {nil, map[string]string{"karpenter_enabled": "false"}, 0},
	} {
		got := withStatic(t, c.after).Taken(facts, &plan.Plan{NodePools: plan.NodePools{Objects: withStatic(t, c.before).Objects()}})
		if len(got) != c.problems || len(got) > 0 && (got[0].Parameter != params.ParamAdditional || !strings.HasPrefix(got[0].Path, "[1]") ||
			!strings.Contains(got[0].Message, "a NodePool ci that rack demo did not make")) {
			t.Errorf("%s: %+v", what, got)
		}
	}
}
