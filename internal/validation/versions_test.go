package validation

import (
	"maps"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// runs returns the facts of a rack that runs a version of Karpenter.
func runs(version string, claims ...plan.Object) plan.Facts {
	return plan.Facts{Offline: true, NodeClaims: claims, Records: plan.Records{
		WasOn: true, Goal: plan.GoalKarpenter, Karpenter: plan.KarpenterRecord{Version: version, Planned: version, CRDs: version},
	}}
}

// What Karpenter does to nodes because of another version, or because of a field that only another version has.
func TestWhatAVersionReplaces(t *testing.T) {
	near, far := classOf(`"placementGroupSelector":{"name":"near"}`), classOf(`"placementGroupSelector":{"name":"far"}`)
	primary := `{"networkCardIndex":0,"deviceIndex":0,"interfaceType":"interface"}`
	maxPods, pids := classOf(`"kubelet":{"maxPods":50}`), classOf(`"kubelet":{"maxPods":50,"podPidsLimit":100}`)
	node := claim(map[string]string{"kubernetes.io/arch": "amd64", "karpenter.sh/capacity-type": "on-demand"}, nil)
	for _, c := range []struct {
		what, from, to string
		was, is        map[string]string
		claims         []plan.Object
		want           string
	}{
		{what: "no change", from: "1.12.1", to: "1.12.1"},
		{what: "another hash of EC2NodeClasses", from: "1.10.0", to: "1.12.1", claims: []plan.Object{node, node, node}},
		{what: "the same hashes", from: "1.12.1", to: "1.14.3"},
		{what: "down", from: "1.15.1", to: "1.10.0", claims: []plan.Object{node}},
		{what: "a label beside it, and as many nodes as there are", from: "1.10.0", to: "1.12.1", claims: []plan.Object{node, node, node},
			is:   map[string]string{"karpenter_node_labels": "a=b"},
			want: "pool workload is changed: Karpenter replaces its 3 nodes (NodePoolDrifted), as its disruption budget allows"},
		{what: "a label beside it", from: "1.10.0", to: "1.12.1", is: map[string]string{"karpenter_node_labels": "a=b"},
			want: allOf("its nodes", "NodePoolDrifted")},
		{what: "a limit beside it", from: "1.12.1", to: "1.14.3", is: map[string]string{"karpenter_cpu_limit": "7"}, want: unchanged},

		{what: "a field of the version comes", from: "1.12.1", to: "1.12.1", is: near, want: allOf("its nodes", "NodeClassDrift")},
		{what: "a field of the version changes", from: "1.12.1", to: "1.12.1", was: near, is: far, want: allOf("its nodes", "NodeClassDrift")},
		{what: "a field of the version goes with it", from: "1.12.1", to: "1.10.0", was: near, want: allOf("its nodes", "NodeClassDrift")},
		{what: "a field in a list", from: "1.12.1", to: "1.12.1", is: classOf(`"networkInterfaces":[` + primary + `]`),
			want: allOf("its nodes", "NodeClassDrift")},
		{what: "a field of the kubelet", from: "1.15.1", to: "1.15.1", was: maxPods, is: pids, want: allOf("its nodes", "NodeClassDrift")},
		{what: "a kubelet that stays", from: "1.15.1", to: "1.15.1", was: pids, is: with(pids, "karpenter_cpu_limit", "7"), want: unchanged},
	} {
		validate := func(version string, more map[string]string, facts plan.Facts, last *plan.Plan) Result {
			texts := map[string]string{"karpenter_auth_mode": "true", "karpenter_enabled": "true", "karpenter_version": version}
			maps.Copy(texts, more)
			v := Validate(Input{
				Parsed: params.Parse(params.Input{Rack: "demo", Params: texts}), Facts: facts, Compare: true, InForce: last,
			})
			if len(v.Problems) > 0 {
				t.Fatalf("%s: %v", c.what, v.Problems)
			}
			return v
		}
		facts := runs(c.from, c.claims...)
		facts.NodeClaims = c.claims
		was := validate(c.from, c.was, runs(c.from), nil)
		facts.Records.Applied = map[string]string{}
		for _, s := range was.Plan.Steps {
			facts.Records.Applied[s.Name] = s.Fingerprint
		}
		var got []string
		for _, e := range validate(c.to, c.is, facts, &was.Plan).Plan.Effects {
			got = append(got, e.String())
		}
		if strings.Join(got, "; ") != c.want {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}

func with(texts map[string]string, name, value string) map[string]string {
	more := maps.Clone(texts)
	more[name] = value
	return more
}

// The same manifests are checked again for another version of Karpenter.
func TestAnotherVersionIsCheckedAgain(t *testing.T) {
	texts := map[string]string{"karpenter_auth_mode": "true", "karpenter_enabled": "true", "karpenter_version": "1.12.1",
		"karpenter_config": `{"ec2NodeClass":{"placementGroupSelector":{"name":"near"}}}`}
	newer := Validate(Input{Parsed: params.Parse(params.Input{Rack: "demo", Params: texts}), Facts: offline, Compare: true})
	delete(texts, "karpenter_version")
	checked := offline
	checked.Records.Checked = newer.Objects
	v := Validate(Input{Parsed: params.Parse(params.Input{Rack: "demo", Params: texts}), Facts: checked, Compare: true})
	if len(newer.Problems) > 0 || len(v.Problems) != 1 || newer.Objects == v.Objects {
		t.Errorf("%v, %v", newer.Problems, v.Problems)
	}
}
