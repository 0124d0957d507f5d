package nodes

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

const c7g = `[{"key":"karpenter.k8s.aws/instance-family","operator":"In","values":["c7g"]}]`

func judgedOverlays(texts map[string]string) (params.Result, Compiled) {
	all := map[string]string{"karpenter_auth_mode": "true", "karpenter_enabled": "true"}
	for name, value := range texts {
		all[name] = value
	}
	parsed := params.Parse(params.Input{Rack: "demo", Params: all})
	return parsed, Compile(parsed.Config, plan.Facts{})
}

// The objects are what the parameter says, between the EC2NodeClasses and the NodePools, and switch on the feature gate.
func TestOverlaysAreObjects(t *testing.T) {
	texts := map[string]string{params.ParamOverlays: `[{"name":"b","requirements":` + c7g + `,"weight":5,"priceAdjustment":"-10%"},
		{"name":"a.example","requirements":[],"capacity":{"example.com/fuse":"4","hugepages-2Mi":"100Mi"},"price":null}]`}
	objects := rendered(t, plan.Facts{}, texts)
	places(t, objects, map[string]any{
		"NodeOverlay/b apiVersion": "karpenter.sh/v1alpha1", "NodeOverlay/b metadata.labels": object{"sawhorse.dev/rack": "demo"},
		"NodeOverlay/b spec": object{
			"requirements": []any{in("karpenter.k8s.aws/instance-family", "c7g")}, "weight": float64(5), "priceAdjustment": "-10%",
		},
		"NodeOverlay/a.example spec": object{
			"requirements": []any{}, "capacity": object{"example.com/fuse": "4", "hugepages-2Mi": "100Mi"},
		},
	})
	for _, gates := range []string{"", `{"settings":{"featureGates":{"nodeOverlay":true,"nodeRepair":true}}}`} {
		texts[params.ParamController] = gates
		parsed, compiled := judgedOverlays(texts)
		facts := plan.Facts{Cluster: &plan.ClusterFacts{Cluster: plan.Cluster{Name: "demo"}, Status: "ACTIVE", Version: "1.33"},
			PodIdentity: true,
			Subnets:     []plan.Tagged{{ID: "subnet-0123456789abcdef0"}}, SecurityGroups: []plan.Tagged{{ID: "sg-0123456789abcdef0"}},
			NodeGroups: []plan.NodeGroup{{Name: "a"}}}
		built := plan.Build(parsed.Config, facts, compiled.Objects())
		if len(parsed.Problems)+len(built.Problems) > 0 {
			t.Fatal(parsed.Problems, built.Problems)
		}
		if on := inner(built.Plan.Controller.Release.Values, "settings", "featureGates")["nodeOverlay"]; on != true {
			t.Errorf("%s: the feature gate is %v", gates, on)
		}
		var order []string
		for _, object := range built.Plan.NodePools.Manifests() {
			order = append(order, fmt.Sprint(object["kind"], "/", inner(object, "metadata")["name"]))
		}
		if want := []string{"EC2NodeClass/workload", "NodeOverlay/a.example", "NodeOverlay/b", "NodePool/workload"}; !slices.Equal(order, want) {
			t.Errorf("order %v", order)
		}
		if names := built.Plan.NodePools.Names(); !slices.Equal(names, []string{"workload"}) {
			t.Errorf("the pools are %v", names)
		}
		built.Plan.NodePools.Frozen = true
		if frozen := built.Plan.NodePools.Manifests(); len(frozen) != len(order) || frozen[1]["kind"] != kindOverlay {
			t.Errorf("frozen %v", frozen)
		}
	}
}

// No node is replaced for an overlay, also one that has the name of a pool.
func TestOverlaysReplaceNoNode(t *testing.T) {
	_, without := judgedOverlays(nil)
	_, with := judgedOverlays(map[string]string{params.ParamOverlays: `[{"name":"workload","requirements":` + c7g + `,"price":"0.1"}]`})
	before := plan.Plan{NodePools: plan.NodePools{Objects: without.Objects()}}
	after := plan.Plan{NodePools: plan.NodePools{Objects: without.Objects(), Overlays: with.Objects()[1:2]}}
	if effects := Effects(before, after, plan.Facts{}); len(effects) > 0 {
		t.Errorf("%+v", effects)
	}
	if without.Fingerprint() == with.Fingerprint() {
		t.Error("the overlays would not be checked")
	}
}

func TestWrongOverlays(t *testing.T) {
	entry := func(fields string) string { return `[{"name":"a","requirements":` + c7g + `,` + fields + `}]` }
	requirement := func(fields string) string { return `[{"name":"a","price":"1","requirements":[{` + fields + `}]}]` }
	for _, c := range []struct{ value, version, want string }{
		{`{}`, "", ": karpenter_node_overlays_config is an object; allowed is a JSON array of NodeOverlays, each with name,"},
		{`["a"]`, "", `[0]: overlay [0] is text; allowed is an object; write, for example, {"name":"prefer-c7g"`},
		{`[{"requirements":[],"price":"1"}]`, "", `[0].name: overlay [0] has no name; write, for example, "name":"prefer-c7g"`},
		{`[{"name":"","requirements":[],"price":"1"}]`, "", `[0].name: overlay [0] has no name`},
		{`[{"name":"A_b","requirements":[],"price":"1"}]`, "",
			`[0].name: [0].name is "A_b"; allowed are a-z, 0-9, dashes and dots, at most 253 ` +
				`characters, and a letter or digit at both ends; write, for example, "prefer-c7g"`},
		{`[{"name":7,"requirements":[],"price":"1"}]`, "", `[0].name: [0].name is 7; allowed are`},
		{`[{"name":"a","requirements":[],"price":"1"},{"name":"a","requirements":[],"price":"2"}]`, "",
			`[1].name: overlays [0] and [1] have the same name a; names are unique; rename one of them`},
		{`[{"kind":"NodeOverlay","metadata":{"name":"a"},"spec":{"requirements":[],"price":"1"}}]`, "", `[0]: overlay [0] is a whole manifest; ` +
			`allowed are a name and the fields of a NodeOverlay's spec; write {"name": …, "requirements": …, …}`},
		{`[{"name":"a","requirements":[]}]`, "",
			`[0]: overlay [0] changes nothing; it needs at least one of capacity, price or priceAdjustment; ` +
				`write, for example, "priceAdjustment":"-10%"`},
		{`[{"name":"a","requirements":[],"capacity":{},"price":""}]`, "", `[0]: overlay [0] changes nothing`},
		{`[{"name":"a","price":"1"}]`, "",
			`[0].requirements: [0].requirements is refused by Kubernetes for Karpenter's NodeOverlay: is required`},
		{`[{"name":"a","price":"1","requirements":{}}]`, "", `[0].requirements: [0].requirements is refused by Kubernetes for Karpenter's ` +
			`NodeOverlay: must be of type array`},
		{entry(`"price":"1","priceAdjustment":"+1%"`), "", `[0]: [0] is refused by Kubernetes for Karpenter's NodeOverlay: cannot set both ` +
			`'price' and 'priceAdjustment'; keep one of them`},
		{entry(`"price":1`), "",
			`[0].price: [0].price is refused by Kubernetes for Karpenter's NodeOverlay: must be of type string: "integer"; ` +
				`write, for example, "0.25"`},
		{entry(`"price":"-1"`), "", `[0].price: [0].price is "-1", which is refused by Kubernetes for Karpenter's NodeOverlay: its form is not ` +
			`that of such a value; write, for example, "0.25"`},
		{entry(`"priceAdjustment":"10%"`), "", `[0].priceAdjustment: [0].priceAdjustment is "10%", which is refused by Kubernetes for ` +
			`Karpenter's NodeOverlay: its form is not that of such a value; write, for example, "-10%" or "+0.02"`},
		{entry(`"priceAdjustment":"-101%"`), "", `[0].priceAdjustment: [0].priceAdjustment is "-101%"`},
		{entry(`"price":"1","weight":0`), "", `[0].weight: [0].weight is 0, which is refused`},
		{entry(`"price":"1","weight":10001`), "",
			`[0].weight: [0].weight is 10001, which is refused by Kubernetes for Karpenter's NodeOverlay: ` +
				`should be less than or equal to 10000; write, for example, an integer from 1 to 10000`},
		{entry(`"price":"1","weight":"5"`), "", `[0].weight: [0].weight is refused`},
		{entry(`"prize":"1"`), "",
			`[0].prize: [0].prize is no field of Karpenter's NodeOverlay; did you mean price?|[0]: overlay [0] changes nothing`},
		{entry(`"price":"1","budget":"x"`), "", `[0].budget: [0].budget is no field of Karpenter's NodeOverlay; allowed are capacity, price, ` +
			`priceAdjustment, requirements, weight`},
		{entry(`"capacity":{"cpu":"4"}`), "", `[0].capacity.cpu: [0].capacity.cpu is no extended resource; allowed are names with a domain ` +
			`other than kubernetes.io; write, for example, "example.com/fuse":"1"`},
		{entry(`"capacity":{"gpu":"4"}`), "", `[0].capacity.gpu: [0].capacity.gpu is no extended resource`},
		{entry(`"capacity":{"x.kubernetes.io/a":"4"}`), "",
			`[0].capacity["x.kubernetes.io/a"]: [0].capacity["x.kubernetes.io/a"] is no extended`},
		{entry(`"capacity":{"vpc.amazonaws.com/efa":"4"}`), "",
			`[0].capacity["vpc.amazonaws.com/efa"]: [0].capacity["vpc.amazonaws.com/efa"] is ` +
				`refused by Karpenter: invalid capacity: vpc.amazonaws.com/efa in resource, restricted; change it or leave it out`},
		{entry(`"capacity":{"example.com/a":"many"}`), "",
			`[0].capacity["example.com/a"]: [0].capacity["example.com/a"] is "many", which is refused`},
		{entry(`"capacity":{"example.com/a":"0.5"}`), "",
			`[0].capacity["example.com/a"]: [0].capacity["example.com/a"] is "0.5", but Kubernetes ` +
				`counts extended resources in whole numbers; write, for example, "1"`},
		{entry(`"capacity":{"example.com/a":-1}`), "",
			`[0].capacity["example.com/a"]: [0].capacity["example.com/a"] is -1, but Kubernetes counts`},
		{entry(`"capacity":{"example.com/a":"1e99999"}`), "",
			`[0].capacity["example.com/a"]: [0].capacity["example.com/a"] is "1e99999", which is no ` +
				`quantity that Karpenter can read`},
		{entry(`"capacity":["example.com/a"]`), "", `[0].capacity: [0].capacity is refused`},
		{requirement(`"key":"karpenter.k8s.aws/instance-family","operator":"in","values":["c7g"]`), "",
			`[0].requirements[0].operator: [0].requirements[0].operator is "in", which is refused`},
		{requirement(`"key":"karpenter.k8s.aws/instance-family","operator":"In","values":[]`), "", `[0].requirements: [0].requirements is ` +
			`refused by Kubernetes for Karpenter's NodeOverlay: requirements with operator 'In' must have a value defined`},
		{requirement(`"key":"karpenter.k8s.aws/instance-cpu","operator":"Gt","values":["x"]`), "", `[0].requirements`},
		{requirement(`"key":"karpenter.k8s.aws/instance-famly","operator":"In","values":["c7g"]`), "", `[0].requirements[0].key: ` +
			`[0].requirements[0].key is "karpenter.k8s.aws/instance-famly", which is refused by Kubernetes for Karpenter's NodeOverlay: label ` +
			`domain "karpenter.k8s.aws" is restricted; did you mean karpenter.k8s.aws/instance-family?`},
		{requirement(`"key":"kubernetes.io/hostname","operator":"In","values":["a"]`), "", `[0].requirements[0].key: ` +
			`[0].requirements[0].key is "kubernetes.io/hostname", which is refused by Kubernetes for Karpenter's NodeOverlay: label ` +
			`"kubernetes.io/hostname" is restricted`},
		{requirement(`"key":"kubernetes.io/x","operator":"In","values":["a"],"minValues":1`), "", `[0].requirements[0].minValues: `},
		{requirement(`"key":"karpenter.sh/capacity-type","operator":"In","values":["spott"]`), "", `[0].requirements[0]: [0].requirements[0] ` +
			`is refused by Karpenter: `},
		{requirement(`"key":"team","operator":"In","values":["a b"]`), "1.15.1",
			`[0].requirements[0]: [0].requirements[0] is refused by Karpenter: `},
	} {
		parsed, compiled := judgedOverlays(map[string]string{params.ParamOverlays: c.value, "karpenter_version": c.version})
		var got []string
		for _, p := range slices.Concat(parsed.Problems, compiled.Check()) {
			got = append(got, p.Path+": "+p.Message)
			if p.Parameter != params.ParamOverlays {
				t.Errorf("%s: a problem of %s", c.value, p.Parameter)
			}
		}
		slices.Sort(got)
		want := strings.Split(c.want, "|")
		if same := slices.EqualFunc(got, want, strings.HasPrefix); !same {
			t.Errorf("%s:\n got %s\nwant %s", c.value, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
		}
	}
}

// What another version's API has that the built-in checks do not know is left to its CRD.
func TestOverlaysInEveryVersion(t *testing.T) {
	for _, a := range apis() {
		parsed, compiled := judgedOverlays(map[string]string{params.ParamOverlays: `[{"name":"a","requirements":` + c7g + `,"price":"1"}]`,
			"karpenter_version": a.Version})
		if problems := slices.Concat(parsed.Problems, compiled.Check()); len(problems) > 0 {
			t.Errorf("%s: %v", a.Version, problems)
		}
	}
}

func TestOverlaysThatConflict(t *testing.T) {
	overlays := func(a, b string) string { return `[{"name":"a",` + a + `},{"name":"b",` + b + `}]` }
	const all, c, m = `"requirements":[]`, `"requirements":` + c7g,
		`"requirements":[{"key":"karpenter.k8s.aws/instance-family","operator":"NotIn","values":["c7g"]}]`
	for value, want := range map[string]bool{
		overlays(all+`,"price":"1"`, c+`,"priceAdjustment":"+1%"`):                                           true,
		overlays(all+`,"price":"1","weight":2`, c+`,"price":"1","weight":2`):                                 true,
		overlays(all+`,"price":"1"`, c+`,"price":"1","weight":2`):                                            false,
		overlays(m+`,"price":"1"`, c+`,"price":"1"`):                                                         false,
		overlays(all+`,"price":"1"`, all+`,"capacity":{"example.com/a":"1"}`):                                false,
		overlays(all+`,"capacity":{"example.com/b":"1"}`, all+`,"capacity":{"example.com/a":"1"}`):           false,
		overlays(all+`,"capacity":{"example.com/a":"2"}`, all+`,"price":"1","capacity":{"example.com/a":1}`): true,
	} {
		parsed, compiled := judgedOverlays(map[string]string{params.ParamOverlays: value})
		if problems := slices.Concat(parsed.Problems, compiled.Check()); len(problems) > 0 {
			t.Fatal(value, problems)
		}
		var wanted findings
		if want {
			wanted.warn(origin{parameter: params.ParamOverlays, path: "[1].weight"},
				"NodeOverlays a and b have the same weight, change the same, and may select "+
					"the same instance types: Karpenter then uses only b; write different weights")
		}
		if got := compiled.conflicts(); !reflect.DeepEqual(got, wanted) {
			t.Errorf("%s: %v", value, got)
		}
	}
}
