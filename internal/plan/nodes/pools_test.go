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

// rendered returns the manifests of a rack with Karpenter on, by kind and name.
func rendered(t *testing.T, facts plan.Facts, written map[string]string) map[string]plan.Object {
	t.Helper()
	compiled := Compile(configOf(t, written), facts)
	if problems := compiled.Check(); len(problems) > 0 {
		t.Fatal(problems)
	}
	found := map[string]plan.Object{}
	var order []string
	for _, object := range read(t, compiled.Objects()) {
		name := fmt.Sprint(object["kind"], "/", at(t, object, "metadata.name"))
		found[name] = object
		order = append(order, name)
	}
	if !slices.IsSorted(order) {
		t.Errorf("order %v, want kind and name", order)
	}
	return found
}

// places compares the values at "Kind/name path".
func places(t *testing.T, objects map[string]plan.Object, want map[string]any) {
	t.Helper()
	for place, value := range want {
		name, path, _ := strings.Cut(place, " ")
		if objects[name] == nil {
			t.Errorf("no %s", name)
			continue
		}
		if got := at(t, objects[name], path); !reflect.DeepEqual(got, value) {
			t.Errorf("%s is %v, want %v", place, got, value)
		}
	}
}

type object = map[string]any

func in(key string, values ...any) object {
	return object{"key": key, "operator": "In", "values": values}
}

func TestBuildPool(t *testing.T) {
	without := rendered(t, plan.Facts{}, map[string]string{"karpenter_build_cpu_limit": "7", "karpenter_build_node_labels": "a=b"})
	if without["NodePool/build"] != nil || without["EC2NodeClass/build"] != nil {
		t.Error("there are no build nodes, and a pool for them")
	}
	objects := rendered(t, plan.Facts{}, map[string]string{
		"build_node_enabled": "true", "build_node_type": "m7g.large", "karpenter_instance_families": "c6g", "karpenter_instance_sizes": "large",
		"karpenter_build_instance_sizes": "xlarge",
		"karpenter_node_expiry":          "24h", "karpenter_node_disk": "70", "karpenter_node_volume_type": "gp2",
		"karpenter_build_node_labels": "team=ci", "karpenter_node_labels": "team=web",
		"karpenter_node_taints": "a:NoSchedule",
		"karpenter_config":      `{"nodePool":{"weight":9,"template":{"spec":{"expireAfter":"1h"}}},"ec2NodeClass":{"userData":"x"}}`,
		// whose consolidation is not for build nodes
		"karpenter_defaults_config": `{"nodePool":{"disruption":{"consolidationPolicy":"WhenEmptyOrUnderutilized","consolidateAfter":"5m"}}}`,
	})
	places(t, objects, map[string]any{
		"NodePool/workload spec.disruption.consolidateAfter": "5m",
		"NodePool/build spec.template.metadata.labels":       object{"convox-build": "true", "convox.io/nodepool": "build", "team": "ci"},
		"NodePool/build spec.template.spec.taints":           []any{object{"key": "dedicated", "value": "build", "effect": "NoSchedule"}},
		"NodePool/build spec.template.spec.expireAfter":      "24h",
		"NodePool/build spec.template.spec.nodeClassRef":     object{"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "build"},
		"NodePool/build spec.disruption":                     object{"consolidationPolicy": "WhenEmpty", "consolidateAfter": "60s"},
		"NodePool/build spec.limits":                         object{"cpu": "32", "memory": "256Gi"},
		"NodePool/build spec.weight":                         nil,
		"NodePool/build spec.template.spec.requirements": []any{
			in("karpenter.sh/capacity-type", "on-demand"), in("kubernetes.io/arch", "arm64"), in("karpenter.k8s.aws/instance-family", "c6g"),
			in("karpenter.k8s.aws/instance-size", "xlarge")},
		"EC2NodeClass/build spec.blockDeviceMappings": []any{object{"deviceName": "/dev/xvda", "ebs": object{"encrypted": true,
			"volumeSize": "70Gi", "volumeType": "gp2"}}},
		"EC2NodeClass/build spec.tags":                object{"Name": "demo/karpenter/build", "Rack": "demo"},
		"EC2NodeClass/build spec.userData":            nil,
		"NodePool/workload spec.template.spec.taints": []any{object{"key": "a", "effect": "NoSchedule"}},
	})
}

// Only build nodes run code of others: all other pools keep the nodes' role.
func TestBuildNodesHaveARoleOfTheirOwn(t *testing.T) {
	places(t, rendered(t, plan.Facts{}, map[string]string{
		"build_node_enabled": "true", "build_node_minimal_role_enabled": "true",
		"additional_karpenter_nodepools_config": `[{"name":"gpu"}]`,
	}), map[string]any{
		"EC2NodeClass/build spec.role": "demo-karpenter-build-nodes", "EC2NodeClass/workload spec.role": "demo-karpenter-nodes",
		"EC2NodeClass/gpu spec.role": "demo-karpenter-nodes",
	})
	places(t, rendered(t, plan.Facts{}, map[string]string{"build_node_enabled": "true"}), map[string]any{
		"EC2NodeClass/build spec.role": "demo-karpenter-nodes"})
}

func TestArchitecturesAreDetected(t *testing.T) {
	groups := []plan.NodeGroup{{Name: "system", AMIType: "AL2023_ARM_64_STANDARD"},
		{Name: "build", InstanceTypes: []string{"m6i.large", "m7g.large"}, Labels: map[string]string{"convox-build": "true"}}}
	for _, c := range []struct {
		what            string
		facts           plan.Facts
		written         map[string]string
		workload, build []any
	}{
		{"nothing known", plan.Facts{}, nil, []any{"amd64"}, []any{"amd64"}},
		{"from the node groups", plan.Facts{NodeGroups: groups}, nil, []any{"arm64"}, []any{"amd64", "arm64"}},
		{"from node_type, for both", plan.Facts{NodeGroups: groups}, map[string]string{"node_type": "c6i.large"}, []any{"amd64"}, []any{"amd64"}},
		{"from build_node_type", plan.Facts{}, map[string]string{"node_type": "c6i.large", "build_node_type": "c7g.large"},
			[]any{"amd64"}, []any{"arm64"}},
		{"karpenter_arch is the workload's alone", plan.Facts{NodeGroups: groups}, map[string]string{"karpenter_arch": "amd64"},
			[]any{"amd64"}, []any{"amd64", "arm64"}},
		{"also where the build nodes have no group", plan.Facts{}, map[string]string{"karpenter_arch": "arm64"}, []any{"arm64"}, []any{"amd64"}},
		{"from the system groups then", plan.Facts{NodeGroups: groups[:1]}, map[string]string{"karpenter_arch": "amd64"}, []any{"amd64"},
			[]any{"arm64"}},
		{"as EC2 says", plan.Facts{Architectures: map[string]string{"z1.large": "arm64"}}, map[string]string{"node_type": "z1.large"},
			[]any{"arm64"}, []any{"arm64"}},
	} {
		written := map[string]string{"build_node_enabled": "true"}
		for name, value := range c.written {
			written[name] = value
		}
		objects := rendered(t, c.facts, written)
		for name, want := range map[string][]any{"NodePool/workload": c.workload, "NodePool/build": c.build} {
			if got := at(t, objects[name], "spec.template.spec.requirements.1"); !reflect.DeepEqual(got, in("kubernetes.io/arch", want...)) {
				t.Errorf("%s: %s has %v, want %v", c.what, name, got, want)
			}
		}
	}
}

func TestAdditionalPools(t *testing.T) {
	objects := rendered(t, plan.Facts{}, map[string]string{
		"node_type": "m7g.large", "node_disk": "33", "karpenter_node_disk": "44", "karpenter_node_volume_type": "gp2",
		"karpenter_node_expiry": "1h", "karpenter_cpu_limit": "7", "karpenter_instance_families": "c6g", "tags": "team=web",
		"additional_karpenter_nodepools_config": `[{"name":"gpu","instance_families":"g5","taints":"nvidia.com/gpu=true:NoSchedule",` +
			`"labels":"a=b","dedicated":true,"weight":10,"disk":200,"volume_type":"io1"},{"name":"a"}]`,
	})
	if len(objects) != 6 {
		t.Errorf("%d objects", len(objects))
	}
	places(t, objects, map[string]any{
		"NodePool/a spec.template.spec.requirements": []any{in("karpenter.sh/capacity-type", "on-demand"), in("kubernetes.io/arch", "amd64")},
		"NodePool/a spec.limits":                     object{"cpu": "100", "memory": "400Gi"},
		"NodePool/a spec.template.spec.expireAfter":  "720h",
		"NodePool/a spec.template.spec.taints":       nil,
		"NodePool/a spec.weight":                     nil,
		"NodePool/a spec.template.metadata.labels":   object{"convox.io/nodepool": "a"},
		"NodePool/a spec.disruption": object{"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "30s",
			"budgets": []any{object{"nodes": "10%"}}},
		"EC2NodeClass/a spec.blockDeviceMappings.0.ebs": object{"encrypted": true, "volumeSize": "44Gi", "volumeType": "gp3"},
		"EC2NodeClass/a spec.tags":                      object{"Name": "demo/karpenter/a", "Rack": "demo", "team": "web"},
		"NodePool/gpu spec.weight":                      float64(10),
		"NodePool/gpu spec.template.spec.taints": []any{
			object{"key": "dedicated-node", "value": "gpu", "effect": "NoSchedule"}, object{"key": "nvidia.com/gpu", "value": "true",
				"effect": "NoSchedule"}},
		"NodePool/gpu spec.template.metadata.labels": object{"convox.io/nodepool": "gpu", "a": "b"},
		"EC2NodeClass/gpu spec.blockDeviceMappings.0.ebs": object{"encrypted": true, "volumeSize": "200Gi", "volumeType": "io1",
			"iops": float64(3000)},
	})
}

// What a pool's own fields and parameters say of instance metadata, budgets, volumes and tags is what Karpenter gets, and is not
// overruled by karpenter_defaults_config.
func TestWhatPoolsSay(t *testing.T) {
	objects := rendered(t, plan.Facts{}, map[string]string{
		"build_node_enabled": "true", "karpenter_node_volume_iops": "5000", "karpenter_node_volume_throughput": "300",
		"karpenter_node_disk":         "70",
		"karpenter_build_imds_tokens": "required", "karpenter_build_imds_hop_limit": "3", "karpenter_build_disruption_budget_nodes": "4",
		"tags": "team=web,stage=prod",
		"karpenter_defaults_config": `{"nodePool":{"template":{"spec":{"taints":[{"key":"d","effect":"NoSchedule"}]}}},"ec2NodeClass":{
			"tags":{"team":"none","cost":"7","stage":"none"},
			"metadataOptions":{"httpTokens":"optional","httpPutResponseHopLimit":9,"httpProtocolIPv6":"enabled"},
			"blockDeviceMappings":[{"deviceName":"/dev/xvda","ebs":{"volumeSize":"9Gi","volumeType":"gp3"}}]}}`,
		"karpenter_build_config": `{"nodePool":{"template":{"spec":{"taints":[{"key":"x","effect":"NoSchedule"}]}}}}`,
		"additional_karpenter_nodepools_config": `[{"name":"a","tags":"team=ml"},
			{"name":"b","volume_iops":4000,"disk":30,"taints":"y:NoSchedule"},{"name":"c","volume_type":"gp2","dedicated":true}]`,
	})
	disk := func(size, kind string, more object) object {
		made := object{"encrypted": true, "volumeSize": size, "volumeType": kind}
		for key, value := range more {
			made[key] = value
		}
		return made
	}
	taint := func(key, value string) object {
		made := object{"key": key, "effect": "NoSchedule"}
		if value != "" {
			made["value"] = value
		}
		return made
	}
	build := object{"httpTokens": "required", "httpPutResponseHopLimit": float64(3), "httpProtocolIPv6": "enabled"}
	own := object{"iops": float64(4000), "throughput": float64(300)}
	const device, taints = " spec.blockDeviceMappings.0.ebs", " spec.template.spec.taints"
	inherited := object{"iops": float64(5000), "throughput": float64(300)}
	places(t, objects, map[string]any{
		"EC2NodeClass/workload" + device:                              disk("70Gi", "gp3", inherited),
		"EC2NodeClass/build" + device:                                 disk("70Gi", "gp3", inherited),
		"EC2NodeClass/b" + device:                                     disk("30Gi", "gp3", own),
		"EC2NodeClass/c" + device:                                     disk("70Gi", "gp2", nil),
		"EC2NodeClass/build spec.metadataOptions":                     build,
		"EC2NodeClass/a spec.metadataOptions.httpPutResponseHopLimit": float64(9),
		"NodePool/build spec.disruption.budgets": []any{object{"nodes": "4", "reasons": []any{"Empty"}},
			object{"nodes": "10%", "reasons": []any{"Drifted", "Underutilized"}}},
		"EC2NodeClass/a spec.tags":   object{"Name": "demo/karpenter/a", "Rack": "demo", "team": "ml", "stage": "prod", "cost": "7"},
		"EC2NodeClass/b spec.tags":   object{"Name": "demo/karpenter/b", "Rack": "demo", "team": "web", "stage": "prod", "cost": "7"},
		"NodePool/build" + taints:    []any{taint("dedicated", "build"), taint("x", "")},
		"NodePool/workload" + taints: []any{taint("d", "")},
		"NodePool/b" + taints:        []any{taint("y", "")},
		"NodePool/c" + taints:        []any{taint("dedicated-node", "c"), taint("d", "")},
	})
}

// The devices of karpenter_defaults_config are those of the pools for which no parameter or field says what the volume is.
func TestDevicesOfTheDefaults(t *testing.T) {
	objects := rendered(t, plan.Facts{}, map[string]string{
		"karpenter_defaults_config": `{"ec2NodeClass":{"blockDeviceMappings":[
			{"deviceName":"/dev/xvda","ebs":{"volumeSize":"9Gi"}}]}}`,
		"additional_karpenter_nodepools_config": `[{"name":"a","disk":30}]`,
	})
	places(t, objects, map[string]any{
		"EC2NodeClass/workload spec.blockDeviceMappings.0.ebs.volumeSize": "9Gi",
		"EC2NodeClass/a spec.blockDeviceMappings.0.ebs.volumeSize":        "30Gi",
	})
}

// karpenter_config takes precedence over the other parameters, section by section.
func TestOverride(t *testing.T) {
	objects := rendered(t, plan.Facts{}, map[string]string{
		"karpenter_instance_families": "c6i", "karpenter_node_labels": "a=parameter,b=parameter", "karpenter_node_taints": "x:NoSchedule",
		"karpenter_consolidate_after": "5m", "tags": "t=parameter,u=parameter",
		"karpenter_config": `{
			"nodePool": {
				"template": {
					"metadata": {"labels": {"b": "config", "c": "config"}, "annotations": {"d": "e"}},
					"spec": {"requirements": [{"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": ["c7i-flex"]}],
						"taints": [{"key": "y", "effect": "NoExecute"}], "expireAfter": "Never", "terminationGracePeriod": "48h",
						"startupTaints": [{"key": "z", "effect": "NoSchedule"}]}
				},
				"limits": {"cpu": 5}, "weight": 50, "disruption": {"consolidationPolicy": "WhenEmpty",
					"budgets": [{"nodes": "1"}, {"nodes": "0", "schedule": "0 9 * * mon-fri", "duration": "8h", "reasons": ["Drifted"]}]}
			},
			"ec2NodeClass": {
				"metadataOptions": {"httpTokens": "optional"}, "amiSelectorTerms": [{"alias": "bottlerocket@v1.20.0"}],
				"amiFamily": "Bottlerocket", "userData": "[settings.ntp]", "tags": {"u": "config", "v": "config"},
				"blockDeviceMappings": [{"deviceName": "/dev/xvdb", "ebs": {"volumeSize": "1Ti"}}], "kubelet": {"maxPods": 20}
			}}`,
	})
	places(t, objects, map[string]any{
		"NodePool/workload spec.template.metadata": object{
			"labels": object{"a": "parameter", "b": "config", "c": "config", "convox.io/nodepool": "workload"}, "annotations": object{"d": "e"}},
		"NodePool/workload spec.template.spec.requirements":           []any{in("karpenter.k8s.aws/instance-family", "c7i-flex")},
		"NodePool/workload spec.template.spec.taints":                 []any{object{"key": "y", "effect": "NoExecute"}},
		"NodePool/workload spec.template.spec.startupTaints":          []any{object{"key": "z", "effect": "NoSchedule"}},
		"NodePool/workload spec.template.spec.expireAfter":            "Never",
		"NodePool/workload spec.template.spec.terminationGracePeriod": "48h",
		"NodePool/workload spec.limits":                               object{"cpu": float64(5)},
		"NodePool/workload spec.weight":                               float64(50),
		"NodePool/workload spec.disruption": object{"consolidateAfter": "5m", "consolidationPolicy": "WhenEmpty",
			"budgets": []any{object{"nodes": "1"}, object{"nodes": "0", "schedule": "0 9 * * mon-fri", "duration": "8h",
				"reasons": []any{"Drifted"}}}},
		"EC2NodeClass/workload spec.metadataOptions":     object{"httpTokens": "optional"},
		"EC2NodeClass/workload spec.amiSelectorTerms":    []any{object{"alias": "bottlerocket@v1.20.0"}},
		"EC2NodeClass/workload spec.amiFamily":           "Bottlerocket",
		"EC2NodeClass/workload spec.userData":            "[settings.ntp]",
		"EC2NodeClass/workload spec.kubelet":             object{"maxPods": float64(20)},
		"EC2NodeClass/workload spec.blockDeviceMappings": []any{object{"deviceName": "/dev/xvdb", "ebs": object{"volumeSize": "1Ti"}}},
		"EC2NodeClass/workload spec.tags": object{"t": "parameter", "u": "config", "v": "config",
			"Name": "demo/karpenter/workload", "Rack": "demo"},
		"EC2NodeClass/workload spec.role": "demo-karpenter-nodes",
	})
}

// A refusal is reported under the parameter that caused it, wherever the value ended up.
func TestBlame(t *testing.T) {
	for _, c := range []struct {
		written map[string]string
		want    string
	}{
		{map[string]string{"karpenter_node_labels": "karpenter.sh/x=y"}, "karpenter_node_labels "},
		{map[string]string{"karpenter_build_node_labels": "karpenter.sh/x=y"}, "karpenter_build_node_labels "},
		{map[string]string{"karpenter_instance_families": strings.Repeat("a", 64)}, "karpenter_instance_families "},
		{map[string]string{"karpenter_build_instance_sizes": strings.Repeat("a", 64)}, "karpenter_build_instance_sizes "},
		{map[string]string{"additional_karpenter_nodepools_config": `[{"name":"a"},{"name":"b","instance_sizes":"` +
			strings.Repeat("a", 64) + `"}]`}, "additional_karpenter_nodepools_config [1].instance_sizes"},
		{map[string]string{"karpenter_config": `{"nodePool":{"template":{"spec":{"requirements":[` +
			`{"key":"a","operator":"Exists"},{"key":"a","operator":"In"}]}}}}`},
			"karpenter_config nodePool.template.spec.requirements[1]"},
	} {
		parsed := params.Parse(params.Input{Rack: "demo", Params: c.written})
		problems := Compile(parsed.Config, plan.Facts{}).Check()
		if len(problems) == 0 {
			t.Errorf("%v: nothing is refused", c.written)
		}
		for _, p := range problems {
			if got := p.Parameter + " " + p.Path; !strings.HasPrefix(got, c.want) {
				t.Errorf("%v: %s is blamed: %s", c.written, got, p.Message)
			}
		}
	}
}

// Some checks depend on the cluster: on the AMIs of its Kubernetes version, and on the zones of its subnets.
func TestWhatTheClusterDoesNotHave(t *testing.T) {
	const al2, zone = `{"ec2NodeClass":{"amiSelectorTerms":[{"alias":"al2@latest"}]}}`,
		`{"nodePool":{"template":{"spec":{"requirements":[{"key":"kubernetes.io/arch","operator":"In","values":["amd64"]},` +
			`{"key":"karpenter.sh/capacity-type","operator":"In","values":["on-demand"]},` +
			`{"key":"topology.kubernetes.io/zone","operator":"In","values":["eu-central-1c"]}]}}}}`
	for _, c := range []struct {
		what, config, version, zone, problem, surprise string
	}{
		{what: "AL2, and a version without it", config: al2, version: "1.33",
			problem: `is "al2@latest", and EKS has no AMI of Amazon Linux 2 for Kubernetes 1.33 and later, which the cluster runs (1.33)`},
		{what: "AL2, and a later version", config: al2, version: "1.35", problem: "write al2023@latest or bottlerocket@latest"},
		{what: "AL2, and the last version with it", config: al2, version: "1.32"},
		{what: "AL2, and a version that nobody has looked up", config: al2},
		{what: "AL2023, and a version without AL2", config: `{}`, version: "1.33"},
		{what: "a zone without subnets", config: zone, zone: "eu-central-1a",
			surprise: "the rack's subnets are in eu-central-1a, and topology.kubernetes.io/zone In eu-central-1c leaves none of them"},
		{what: "a zone with a subnet", config: zone, zone: "eu-central-1c"},
		{what: "zones that nobody has looked up", config: zone},
	} {
		parsed := params.Parse(params.Input{Rack: "demo", Params: map[string]string{"karpenter_auth_mode": "true", "karpenter_enabled": "true",
			"karpenter_config": c.config}})
		facts := plan.Facts{Cluster: &plan.ClusterFacts{Version: c.version}, Subnets: []plan.Tagged{{ID: "subnet-1", Zone: c.zone}}}
		compiled := Compile(parsed.Config, facts)
		one := func(kind string, found []params.Problem, want string) {
			if len(found) > 1 || (len(found) == 1) != (want != "") || len(found) == 1 && !strings.Contains(found[0].Message, want) {
				t.Errorf("%s: %s %v, want %q", c.what, kind, found, want)
			}
		}
		problems, warnings := compiled.Aliases(facts, nil)
		one("problems", append(compiled.Check(), problems...), c.problem)
		one("warnings", warnings, "")
		inForce := &plan.Plan{NodePools: plan.NodePools{Objects: compiled.Objects()}}
		problems, warnings = compiled.Aliases(facts, inForce)
		one("problems with what is in force", problems, "")
		one("warnings of what is in force", warnings, c.problem)
		one("surprises", compiled.Surprises(), c.surprise)
	}
}
