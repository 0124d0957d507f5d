package validation

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// earlier returns the plan that a release with another default has made: what both of the pools have, as text, instead of what.
func earlier(t *testing.T, p plan.Plan, what, instead string) *plan.Plan {
	t.Helper()
	text := textOf(t, p)
	if strings.Count(text, what) < 2 {
		t.Fatalf("not in both pools: %s", what)
	}
	var made plan.Plan
	if err := json.Unmarshal([]byte(strings.ReplaceAll(text, what, instead)), &made); err != nil {
		t.Fatal(err)
	}
	made.SetFingerprints()
	return &made
}

// A release with another default replaces no node: the pools keep what was applied, pool by pool, until their own parameters
// change.
func TestAnUpgradeOfSawhorseKeepsThePools(t *testing.T) {
	const hop, hops, expiry = `"httpPutResponseHopLimit":1`, `"httpPutResponseHopLimit":2`, `"expireAfter":"720h"`
	was := texts{"build_node_enabled": "true", "karpenter_auth_mode": "true", "karpenter_enabled": "true"}
	for what, c := range map[string]struct {
		texts         texts
		old, instead  string
		facts         func(*plan.Facts)
		inForce       func(*plan.Plan)
		kept, changed string
	}{
		"another default":                 {old: hop, instead: hops, kept: "build workload"},
		"another default of the NodePool": {old: expiry, instead: `"expireAfter":"700h"`, kept: "build workload"},
		"a default that replaces no node": {old: `"consolidateAfter":"`, instead: `"consolidateAfter":"1`, changed: "build workload"},
		"a parameter of one pool": {
			texts: texts{"karpenter_build_cpu_limit": "33"}, old: hop, instead: hops, kept: "workload", changed: "build"},
		"a parameter of the controller": {
			texts: texts{"karpenter_controller_config": `{"logLevel":"debug"}`}, old: hop, instead: hops, kept: "build workload"},
		"a default, and pools without nodes": {old: hop, instead: hops, changed: "build workload",
			facts: func(f *plan.Facts) {
				f.NodeClaims, f.Pools = []plan.Object{}, map[string]plan.PoolFacts{"build": {}, "workload": {}}
			}},
		"force": {old: hop, instead: hops, changed: "build workload",
			facts: func(f *plan.Facts) { f.Force = events.Force{events.ForceNewDefaults} }},
		"another version of Karpenter": {old: hop, instead: hops, changed: "build workload",
			inForce: func(p *plan.Plan) { p.Controller.Release.Version = "1.8.6" }},
		"another architecture of the groups": {old: `"kubernetes.io/arch","operator":"In","values":["amd64"]`,
			instead: `"kubernetes.io/arch","operator":"In","values":["arm64"]`, changed: "build workload"},
	} {
		facts := offline
		first := compared(t, was, facts, nil)
		inForce := earlier(t, first.Plan, c.old, c.instead)
		if c.inForce != nil {
			c.inForce(inForce)
		}
		if c.facts != nil {
			c.facts(&facts)
		}
		now := maps.Clone(was)
		maps.Copy(now, c.texts)
		before := params.Parse(params.Input{Rack: "demo", Params: was}).Config
		facts.Offline = true
		got := Validate(Input{
			Parsed: params.Parse(params.Input{Rack: "demo", Params: now}), Facts: facts, Compare: true, InForce: inForce,
			Earlier: []Earlier{{Plan: *inForce, Config: before}},
		})
		if len(got.Problems) > 0 {
			t.Errorf("%s: %v", what, got.Problems)
		}
		var kept, changed []string
		for _, pool := range got.Plan.NodePools.Names() {
			old, is := textOf(t, objectsOf(*inForce, pool)), textOf(t, objectsOf(got.Plan, pool))
			if old == is {
				kept = append(kept, pool)
			} else {
				changed = append(changed, pool)
			}
			warned := slices.ContainsFunc(got.Warnings, func(w params.Problem) bool {
				return strings.HasPrefix(w.Message, "pool "+pool+" stays as it was applied")
			})
			if warned != (old == is) {
				t.Errorf("%s: pool %s: warned %t: %v", what, pool, warned, got.Warnings)
			}
		}
		if is := strings.Join(kept, " "); is != c.kept {
			t.Errorf("%s: kept %q, want %q", what, is, c.kept)
		}
		if is := strings.Join(changed, " "); is != c.changed {
			t.Errorf("%s: changed %q, want %q", what, is, c.changed)
		}
		due := slices.ContainsFunc(got.Plan.Due(applied(inForce)), func(s plan.Step) bool { return s.Name == "nodepools" })
		if due != (c.changed != "") {
			t.Errorf("%s: nodepools due: %t", what, due)
		}
	}
}

// The release behind an alias by age moves with time, and pools follow it, or the alias that is written in its place. With the same
// release, another default of Sawhorse replaces no node.
func TestPoolsFollowAnAliasByAge(t *testing.T) {
	const hop, hops, aged = `"httpPutResponseHopLimit":1`, `"httpPutResponseHopLimit":2`, "al2023@latest-7d"
	const pin = `{"ec2NodeClass":{"amiSelectorTerms":[{"alias":"al2023@v20260801"}]}}`
	for what, c := range map[string]struct{ written, release, instead, alias, kept, build string }{
		"a newer release":                          {aged, "al2023@v20260828", hop, "al2023@v20260828", "", ""},
		"a newer release and another default":      {aged, "al2023@v20260828", hops, "al2023@v20260828", "", ""},
		"the newest by its name":                   {"al2023@latest", "", hop, "al2023@latest", "", ""},
		"another default":                          {aged, "al2023@v20260801", hops, "al2023@v20260801", "build workload", ""},
		"another default, and one pool selects it": {aged, "al2023@v20260801", hops, "al2023@v20260801", "build workload", pin},
	} {
		was := texts{"build_node_enabled": "true", "karpenter_auth_mode": "true", "karpenter_enabled": "true", "karpenter_ami_alias": aged,
			params.ParamBuildConfig: c.build}
		facts := offline
		facts.Aged = map[string]string{aged: "al2023@v20260801"}
		inForce := earlier(t, compared(t, was, facts, nil).Plan, hop, c.instead)
		now, before := maps.Clone(was), params.Parse(params.Input{Rack: "demo", Params: was}).Config
		now["karpenter_ami_alias"], facts.Aged = c.written, map[string]string{c.written: c.release}
		got := Validate(Input{
			Parsed: params.Parse(params.Input{Rack: "demo", Params: now}), Facts: facts, Compare: true, InForce: inForce,
			Earlier: []Earlier{{Plan: *inForce, Config: before}},
		})
		var kept []string
		for _, pool := range got.Plan.NodePools.Names() {
			if is := textOf(t, objectsOf(got.Plan, pool)); !strings.Contains(is, `"alias":"`+c.alias+`"`) {
				t.Errorf("%s: pool %s: no %s in %s", what, pool, c.alias, is)
			} else if is == textOf(t, objectsOf(*inForce, pool)) {
				kept = append(kept, pool)
			}
		}
		if is := strings.Join(kept, " "); is != c.kept || len(got.Problems) > 0 {
			t.Errorf("%s: kept %q, want %q; %v", what, is, c.kept, got.Problems)
		}
	}
}

func textOf(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// objectsOf returns the manifests of a pool.
func objectsOf(p plan.Plan, pool string) (all []plan.Object) {
	for _, object := range p.NodePools.Objects {
		if object["metadata"].(map[string]any)["name"] == pool {
			all = append(all, object)
		}
	}
	return all
}

// applied returns the fingerprints of a plan whose steps have all been applied.
func applied(p *plan.Plan) map[string]string {
	all := map[string]string{}
	for _, step := range p.Steps {
		all[step.Name] = step.Fingerprint
	}
	return all
}
