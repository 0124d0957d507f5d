package nodes

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// configOf returns the configuration of a rack with Karpenter on, whose parameters have no problem.
func configOf(t *testing.T, written map[string]string) params.Config {
	t.Helper()
	texts := map[string]string{"karpenter_auth_mode": "true", "karpenter_enabled": "true"}
	maps.Copy(texts, written)
	parsed := params.Parse(params.Input{Rack: "demo", Params: texts})
	if len(parsed.Problems) > 0 {
		t.Fatal(parsed.Problems)
	}
	return parsed.Config
}

func compile(t *testing.T, written map[string]string) (class, pool plan.Object) {
	t.Helper()
	objects := read(t, Compile(configOf(t, written), plan.Facts{}).Objects())
	if len(objects) != 2 || objects[0]["kind"] != "EC2NodeClass" || objects[1]["kind"] != "NodePool" {
		t.Fatalf("%d objects; a NodePool refers to its EC2NodeClass, which comes first", len(objects))
	}
	return objects[0], objects[1]
}

// read returns the objects as they are after marshaling into the plan's record and back.
func read(t *testing.T, objects []plan.Object) []plan.Object {
	t.Helper()
	text, err := json.Marshal(objects)
	if err != nil {
		t.Fatal(err)
	}
	var again []plan.Object
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatal(err)
	}
	return again
}

// at returns the value at a path like spec.template.spec.expireAfter. Numbers are list indexes.
func at(t *testing.T, object any, path string) any {
	t.Helper()
	for name := range strings.SplitSeq(path, ".") {
		switch o := object.(type) {
		case map[string]any:
			object = o[name]
		case []any:
			var i int
			if _, err := fmt.Sscan(name, &i); err != nil || i >= len(o) {
				t.Fatalf("%s: the list has %d elements", path, len(o))
			}
			object = o[i]
		default:
			t.Fatalf("%s: %s is in no object", path, name)
		}
	}
	return object
}

// Karpenter's types print "Never" for a duration that is not set, and the usual converter prints base64 for one that
// is.
func TestDurationsArePrintedAsWritten(t *testing.T) {
	for _, expiry := range []string{"1h", "720h", "0100h", "Never"} {
		_, pool := compile(t, map[string]string{"karpenter_node_expiry": expiry})
		if got := at(t, pool, "spec.template.spec.expireAfter"); got != expiry {
			t.Errorf("expireAfter %v, want %s", got, expiry)
		}
	}
	for _, delay := range []string{"0s", "30s", "5m", "2h"} {
		_, pool := compile(t, map[string]string{"karpenter_consolidate_after": delay})
		if got := at(t, pool, "spec.disruption.consolidateAfter"); got != delay {
			t.Errorf("consolidateAfter %v, want %s", got, delay)
		}
	}
	_, pool := compile(t, nil)
	expiry, delay := at(t, pool, "spec.template.spec.expireAfter"), at(t, pool, "spec.disruption.consolidateAfter")
	if expiry != "720h" || delay != "30s" {
		t.Errorf("defaults: expireAfter %v, consolidateAfter %v", expiry, delay)
	}
}

// Server-side apply refuses null lists, and would take ownership of a status and a creation time.
func TestManifestsHoldNothingThatApplyRefuses(t *testing.T) {
	class, pool := compile(t, nil)
	for _, object := range []plan.Object{class, pool} {
		if _, ok := object["status"]; ok {
			t.Errorf("%s has a status", object["kind"])
		}
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		for _, bad := range []string{"null", "creationTimestamp", "IjMwcyI", "IjcyMGgi"} {
			if strings.Contains(string(text), bad) {
				t.Errorf("%s: %s in %s", object["kind"], bad, text)
			}
		}
		if got := at(t, object, "metadata.labels"); !reflect.DeepEqual(got, map[string]any{"sawhorse.dev/rack": "demo"}) {
			t.Errorf("%s: labels %v", object["kind"], got)
		}
	}
}

func TestRequirementsAppearOnlyWhereAParameterGivesThem(t *testing.T) {
	keys := func(written map[string]string) (all []string) {
		_, pool := compile(t, written)
		for _, r := range at(t, pool, "spec.template.spec.requirements").([]any) {
			all = append(all, fmt.Sprint(at(t, r, "key"), at(t, r, "operator"), at(t, r, "values")))
		}
		return all
	}
	always := []string{"karpenter.sh/capacity-typeIn[on-demand]", "kubernetes.io/archIn[amd64]"}
	if got := keys(nil); !slices.Equal(got, always) {
		t.Errorf("%v, want %v", got, always)
	}
	want := append(slices.Clone(always), "karpenter.k8s.aws/instance-familyIn[c6i m6i]", "karpenter.k8s.aws/instance-sizeIn[large]")
	got := keys(map[string]string{"karpenter_instance_families": "m6i,c6i", "karpenter_instance_sizes": "large"})
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestFieldsOfTheManifests(t *testing.T) {
	for _, c := range []struct {
		written map[string]string
		kind    string
		path    string
		want    any
	}{
		{nil, "NodePool", "spec.limits", map[string]any{"cpu": "100", "memory": "400Gi"}},
		{map[string]string{"karpenter_cpu_limit": "2147483647", "karpenter_memory_limit_gb": "2147483647"}, "NodePool", "spec.limits",
			map[string]any{"cpu": "2147483647", "memory": "2147483647Gi"}},
		{map[string]string{"karpenter_memory_limit_gb": "1024"}, "NodePool", "spec.limits.memory", "1024Gi"},
		{nil, "NodePool", "spec.disruption.consolidationPolicy", "WhenEmptyOrUnderutilized"},
		{map[string]string{"karpenter_consolidation_enabled": "false"}, "NodePool", "spec.disruption.consolidationPolicy", "WhenEmpty"},
		{map[string]string{"karpenter_disruption_budget_nodes": "007%"}, "NodePool", "spec.disruption.budgets",
			[]any{map[string]any{"nodes": "7%"}}},
		{nil, "NodePool", "spec.template.metadata.labels", map[string]any{"convox.io/nodepool": "workload"}},
		{nil, "NodePool", "spec.template.spec.nodeClassRef", map[string]any{"group": "karpenter.k8s.aws", "kind": "EC2NodeClass",
			"name": "workload"}},
		{nil, "EC2NodeClass", "spec.blockDeviceMappings.0.ebs", map[string]any{"encrypted": true, "volumeSize": "20Gi", "volumeType": "gp3"}},
		{map[string]string{"node_disk": "50"}, "EC2NodeClass", "spec.blockDeviceMappings.0.ebs.volumeSize", "50Gi"},
		{map[string]string{"node_disk": "50", "karpenter_node_disk": "70"}, "EC2NodeClass", "spec.blockDeviceMappings.0.ebs.volumeSize", "70Gi"},
		{map[string]string{"karpenter_node_disk": "59000"}, "EC2NodeClass", "spec.blockDeviceMappings.0.ebs.volumeSize", "59000Gi"},
		{nil, "EC2NodeClass", "spec.role", "demo-karpenter-nodes"},
		{nil, "EC2NodeClass", "spec.amiSelectorTerms", []any{map[string]any{"alias": "al2023@latest"}}},
		{map[string]string{"cluster_name": "prod"}, "EC2NodeClass", "spec.subnetSelectorTerms",
			[]any{map[string]any{"tags": map[string]any{"karpenter.sh/discovery": "prod"}}}},
		{map[string]string{"cluster_name": "prod"}, "EC2NodeClass", "spec.securityGroupSelectorTerms",
			[]any{map[string]any{"tags": map[string]any{"karpenter.sh/discovery": "prod"}}}},
		{nil, "EC2NodeClass", "spec.metadataOptions", map[string]any{"httpEndpoint": "enabled", "httpTokens": "required",
			"httpPutResponseHopLimit": float64(1)}},
		{nil, "EC2NodeClass", "spec.tags", map[string]any{"Name": "demo/karpenter/workload", "Rack": "demo"}},
	} {
		class, pool := compile(t, c.written)
		object := map[string]plan.Object{"EC2NodeClass": class, "NodePool": pool}[c.kind]
		if got := at(t, object, c.path); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v: %s %s is %v, want %v", c.written, c.kind, c.path, got, c.want)
		}
	}
}

func TestNoneWhereKarpenterIsOff(t *testing.T) {
	if objects := Compile(params.Config{Rack: "demo", AuthMode: true}, plan.Facts{}).Objects(); len(objects) > 0 {
		t.Errorf("%v", objects)
	}
}
