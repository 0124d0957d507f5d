package validation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// drift is one row of a table: former parameters, new parameters, and the expected effect on the workload pool.
type drift struct {
	what    string
	was, is map[string]string
	want    string
}

// compared returns the Result for parameters of a rack with Karpenter while a plan is in force, or nil for none.
func compared(t *testing.T, texts map[string]string, facts plan.Facts, inForce *plan.Plan) Result {
	t.Helper()
	all := map[string]string{"karpenter_auth_mode": "true", "karpenter_enabled": "true"}
	maps.Copy(all, texts)
	facts.Offline = facts.Cluster == nil
	if inForce != nil {
		facts.Records.Applied = applied(inForce)
	}
	return Validate(Input{
		Parsed: params.Parse(params.Input{Rack: "demo", Params: all}), Facts: facts, Compare: true, InForce: inForce,
	})
}

func (d drift) test(t *testing.T, facts plan.Facts) {
	t.Helper()
	was := compared(t, d.was, facts, nil)
	is := compared(t, d.is, facts, &was.Plan)
	var pools []string
	for _, e := range is.Plan.Effects {
		pools = append(pools, e.String())
	}
	if got := strings.Join(pools, "; "); got != d.want || len(was.Problems)+len(is.Problems) > 0 {
		t.Errorf("%s: %q %v %v\nwant %q", d.what, got, was.Problems, is.Problems, d.want)
	}
}

type texts = map[string]string

const unchanged = "pool workload is changed: its nodes stay"

func allOf(nodes, reason string) string {
	return "pool workload is changed: Karpenter replaces " + nodes + " (" + reason + "), as its disruption budget allows"
}

func mayBe(reason string) string {
	return "pool workload is changed: Karpenter may replace some or all of its nodes (" + reason + "), as its disruption budget allows"
}

// requiring returns a karpenter_config with requirements of the pool and fields of the class.
func requiring(class string, requirements ...string) texts {
	return texts{"karpenter_config": fmt.Sprintf(`{"nodePool":{"template":{"spec":{"requirements":[%s]}}},"ec2NodeClass":{%s}}`,
		strings.Join(requirements, ","), class)}
}

// reserving returns a pool that may run in the capacity reservations with these ids.
func reserving(ids ...string) texts {
	return requiring(`"capacityReservationSelectorTerms":[{"id":"`+strings.Join(ids, `"},{"id":"`)+`"}]`,
		`{"key":"karpenter.sh/capacity-type","operator":"In","values":["reserved","on-demand"]}`)
}

func classOf(fields string) texts {
	return texts{"karpenter_config": `{"ec2NodeClass":{` + fields + `}}`}
}

// Karpenter decides which nodes it replaces. The hash of its types is only a part of that: requirements, AMIs, subnets,
// security groups and capacity reservations are not in the hash, and cause drift too.
func TestWhatReplacesNodes(t *testing.T) {
	const (
		onDemand = `{"key":"karpenter.sh/capacity-type","operator":"In","values":["on-demand"]}`
		category = `{"key":"karpenter.k8s.aws/instance-category","operator":`
		team     = `{"key":"example.com/team","operator":`
		ofBuild  = "pool build is changed: Karpenter replaces its nodes (NodeClassDrift), as its disruption budget allows"
	)
	for _, d := range []drift{
		{"a limit", nil, texts{"karpenter_cpu_limit": "7"}, unchanged},
		{"a budget", nil, texts{"karpenter_disruption_budget_nodes": "5"}, unchanged},
		{"a freeze", nil, texts{"karpenter_freeze": "true"}, unchanged},
		{"consolidation", nil, texts{"karpenter_consolidation_enabled": "false"}, unchanged},
		{"a weight", nil, texts{"karpenter_config": `{"nodePool":{"weight":5}}`}, unchanged},
		{"a label", nil, texts{"karpenter_node_labels": "a=b"}, allOf("its nodes", "NodePoolDrifted")},
		{"a taint", nil, texts{"karpenter_node_taints": "a=b:NoSchedule"}, allOf("its nodes", "NodePoolDrifted")},
		{"expiry", nil, texts{"karpenter_node_expiry": "1h"}, allOf("its nodes", "NodePoolDrifted")},
		{"the disk", nil, texts{"karpenter_node_disk": "50"}, allOf("its nodes", "NodeClassDrift")},
		{"user data", nil, classOf(`"userData":"x"`), allOf("its nodes", "NodeClassDrift")},
		{"tags", nil, texts{"tags": "a=b"}, allOf("its nodes", "NodeClassDrift")},
		{"another AMI family", nil, classOf(`"amiSelectorTerms":[{"alias":"bottlerocket@latest"}]`), allOf("its nodes", "NodeClassDrift")},
		{"what the definition's defaults come to", classOf(`"metadataOptions":{"httpTokens":"required"}`), nil, unchanged},
		{"a pool more", nil, texts{"build_node_enabled": "true"}, "pool build is created"},
		{"a role of their own for build nodes", texts{"build_node_enabled": "true"},
			texts{"build_node_enabled": "true", "build_node_minimal_role_enabled": "true"}, ofBuild},
		{"no role of their own any more", texts{"build_node_enabled": "true", "build_node_minimal_role_enabled": "true"},
			texts{"build_node_enabled": "true"}, ofBuild},
		{"a role of nodes that there are none of", nil, texts{"build_node_minimal_role_enabled": "true"}, ""},
		{"Karpenter off", nil, texts{"karpenter_enabled": "false"}, "pool workload is removed: Karpenter drains and ends its nodes"},

		{"another architecture", nil, texts{"karpenter_arch": "arm64"}, allOf("its nodes", "RequirementsDrifted")},
		{"a further architecture", nil, texts{"karpenter_arch": "arm64,amd64"}, unchanged},
		{"one of two architectures", texts{"karpenter_arch": "arm64,amd64"}, texts{"karpenter_arch": "arm64"}, mayBe("RequirementsDrifted")},
		{"families where there were none", nil, texts{"karpenter_instance_families": "m6i"}, mayBe("RequirementsDrifted")},
		{"no families any more", texts{"karpenter_instance_families": "m6i"}, nil, unchanged},
		{"a family more and a family less", texts{"karpenter_instance_families": "c6i,m6i"}, texts{"karpenter_instance_families": "m6i,r6i"},
			mayBe("RequirementsDrifted")},
		{"other sizes", texts{"karpenter_instance_sizes": "large"}, texts{"karpenter_instance_sizes": "xlarge"},
			allOf("its nodes", "RequirementsDrifted")},
		{"other capacity types", nil, texts{"karpenter_capacity_types": "spot"}, allOf("its nodes", "RequirementsDrifted")},
		{"a zone", requiring("", onDemand),
			requiring("", onDemand, `{"key":"topology.kubernetes.io/zone","operator":"In","values":["us-east-1a"]}`),
			mayBe("RequirementsDrifted")},
		{"older generations too", requiring("", `{"key":"karpenter.k8s.aws/instance-generation","operator":"Gt","values":["4"]}`),
			requiring("", `{"key":"karpenter.k8s.aws/instance-generation","operator":"Gt","values":["2"]}`), unchanged},
		{"newer generations alone", requiring("", `{"key":"karpenter.k8s.aws/instance-generation","operator":"Gt","values":["2"]}`),
			requiring("", `{"key":"karpenter.k8s.aws/instance-generation","operator":"Gt","values":["4"]}`), mayBe("RequirementsDrifted")},
		{"a category less", requiring("", category+`"NotIn","values":["t"]}`), requiring("", category+`"NotIn","values":["t","m"]}`),
			mayBe("RequirementsDrifted")},
		{"a category more", requiring("", category+`"NotIn","values":["t","m"]}`), requiring("", category+`"NotIn","values":["t"]}`), unchanged},
		{"a label that need not be there", requiring("", team+`"NotIn","values":["a"]}`), requiring("", team+`"Exists"}`),
			mayBe("RequirementsDrifted")},
		{"a label that must not be there", requiring("", team+`"In","values":["a"]}`), requiring("", team+`"DoesNotExist"}`),
			allOf("its nodes", "RequirementsDrifted")},

		{"a pinned AMI", nil, classOf(`"amiSelectorTerms":[{"alias":"al2023@v20250101"}]`), mayBe("AMIDrift")},
		{"AMIs by tag", nil, classOf(`"amiFamily":"AL2023","amiSelectorTerms":[{"owner":"self","tags":{"sawhorse.dev/nodes":"b"}}]`),
			mayBe("AMIDrift")},
		{"subnets", nil, texts{"subnet_ids": "subnet-01234567"}, mayBe("SubnetDrift")},
		{"a further subnet", texts{"subnet_ids": "subnet-01234567"}, texts{"subnet_ids": "subnet-01234567,subnet-11234567"}, ""},
		{"a subnet less", texts{"subnet_ids": "subnet-01234567,subnet-11234567"}, texts{"subnet_ids": "subnet-01234567"}, mayBe("SubnetDrift")},
		{"security groups", nil, texts{"security_group_ids": "sg-01234567"}, mayBe("SecurityGroupDrift")},
		{"a further security group", texts{"security_group_ids": "sg-01234567"}, texts{"security_group_ids": "sg-01234567,sg-11234567"},
			mayBe("SecurityGroupDrift")},
		{"both", nil, texts{"security_group_ids": "sg-01234567", "subnet_ids": "subnet-01234567"}, mayBe("SecurityGroupDrift, SubnetDrift")},
		{"a label beside it", nil, texts{"security_group_ids": "sg-01234567", "karpenter_node_labels": "a=b"},
			allOf("its nodes", "NodePoolDrifted")},
		{"reservations for a pool without reserved capacity", nil, classOf(`"capacityReservationSelectorTerms":[{"id":"cr-1"}]`), unchanged},
		{"another reservation", reserving("cr-1"), reserving("cr-2"), mayBe("CapacityReservationDrift")},
	} {
		d.test(t, plan.Facts{})
	}
}

// claim returns a launched NodeClaim of the workload pool.
func claim(labels texts, annotations texts) plan.Object {
	all := map[string]any{"karpenter.sh/nodepool": "workload"}
	for key, value := range labels {
		all[key] = value
	}
	with := map[string]any{}
	for key, value := range annotations {
		with[key] = value
	}
	return plan.Object{
		"metadata": map[string]any{"labels": all, "annotations": with},
		"status":   map[string]any{"imageID": "ami-11111111", "conditions": []any{map[string]any{"type": "Launched", "status": "True"}}},
	}
}

// If the NodeClaims are known, the effect is computed node by node.
func TestWhichNodesAreReplaced(t *testing.T) {
	of := func(arch, family string, more texts) texts {
		labels := texts{"kubernetes.io/arch": arch, "karpenter.sh/capacity-type": "on-demand", "karpenter.k8s.aws/instance-family": family}
		maps.Copy(labels, more)
		return labels
	}
	amd, arm := claim(of("amd64", "m6i", nil), nil), claim(of("arm64", "m7g", nil), nil)
	reserved := texts{"karpenter.sh/capacity-type": "reserved", "karpenter.k8s.aws/capacity-reservation-id": "cr-1"}
	inReservation := claim(of("amd64", "m6i", reserved), nil)
	withOthersFields := claim(of("amd64", "m6i", nil), texts{"karpenter.sh/nodepool-hash": "1", "karpenter.sh/nodepool-hash-version": "v3"})
	drifted := func(reason string) plan.Object {
		node := claim(of("amd64", "m6i", nil), nil)
		status := node["status"].(map[string]any)
		status["conditions"] = append(status["conditions"].([]any), map[string]any{"type": "Drifted", "status": "True", "reason": reason})
		return node
	}
	leaving, launching := claim(of("amd64", "m6i", nil), nil), claim(texts{}, nil)
	leaving["metadata"].(map[string]any)["deletionTimestamp"] = "2026-01-01T00:00:00Z"
	delete(launching, "status")
	elsewhere := claim(of("amd64", "m6i", texts{"karpenter.sh/nodepool": "other"}), nil)
	pinned := func(id string) texts { return classOf(`"amiFamily":"AL2023","amiSelectorTerms":[{"id":"` + id + `"}]`) }
	for _, c := range []struct {
		drift
		claims []plan.Object
	}{
		{drift{"4 of 12 are arm64 already", nil, texts{"karpenter_arch": "arm64"}, allOf("8 of its 12 nodes", "RequirementsDrifted")},
			slices.Concat(slices.Repeat([]plan.Object{amd}, 8), slices.Repeat([]plan.Object{arm}, 4))},
		{drift{"all are", texts{"karpenter_arch": "arm64,amd64"}, texts{"karpenter_arch": "arm64"},
			"pool workload is changed: its 1 node stays"}, []plan.Object{arm}},
		{drift{"families that all have", texts{"karpenter_arch": "arm64,amd64"},
			texts{"karpenter_arch": "arm64,amd64", "karpenter_instance_families": "m6i,m7g"},
			"pool workload is changed: its 2 nodes stay"}, []plan.Object{amd, arm}},
		{drift{"those on their way are not counted", nil, texts{"karpenter_arch": "arm64"},
			allOf("its 1 node", "RequirementsDrifted")}, []plan.Object{amd, leaving, launching, elsewhere}},
		{drift{"no nodes", nil, texts{"karpenter_arch": "arm64"}, "pool workload is changed: it has no nodes"}, []plan.Object{}},
		{drift{"a change before this one is under way", nil, texts{"karpenter_cpu_limit": "7"},
			allOf("2 of its 3 nodes", "AMIDrift, NodePoolDrifted")}, []plan.Object{amd, drifted("NodePoolDrifted"), drifted("AMIDrift")}},
		{drift{"and this one ends it", nil, texts{"karpenter_arch": "arm64,amd64"},
			"pool workload is changed: its 1 node stays"}, []plan.Object{drifted("RequirementsDrifted")}},
		{drift{"what others have set in the pool is in the hash", nil, texts{"karpenter_cpu_limit": "7"},
			"pool workload is changed: its 1 node stays"}, []plan.Object{withOthersFields}},
		{drift{"an AMI that none has", nil, pinned("ami-22222222"), allOf("its 2 nodes", "AMIDrift")}, []plan.Object{amd, amd}},
		{drift{"the AMI that they have", nil, pinned("ami-11111111"), "pool workload is changed: its 2 nodes stay"}, []plan.Object{amd, amd}},
		{drift{"one of several AMIs", nil, classOf(`"amiFamily":"AL2023","amiSelectorTerms":[{"id":"ami-11111111"},{"id":"ami-22222222"}]`),
			strings.Replace(mayBe("AMIDrift"), "its nodes", "its 2 nodes", 1)}, []plan.Object{amd, amd}},
		{drift{"an architecture, and an alias", nil,
			texts{"karpenter_arch": "arm64", "karpenter_config": `{"ec2NodeClass":{"amiSelectorTerms":[{"alias":"al2023@v20250101"}]}}`},
			allOf("1 of its 3 nodes, and may replace others", "AMIDrift, RequirementsDrifted")}, []plan.Object{amd, arm, arm}},
		{drift{"a subnet, and one node", nil, texts{"subnet_ids": "subnet-01234567"},
			"pool workload is changed: Karpenter may replace its 1 node (SubnetDrift), as its disruption budget allows"}, []plan.Object{amd}},
		{drift{"a subnet, and no nodes", nil, texts{"subnet_ids": "subnet-01234567"}, ""}, []plan.Object{}},
		{drift{"another reservation", reserving("cr-1"), reserving("cr-2"),
			allOf("1 of its 2 nodes", "CapacityReservationDrift")}, []plan.Object{amd, inReservation}},
		{drift{"a further reservation", reserving("cr-1"), reserving("cr-1", "cr-2"),
			"pool workload is changed: its 2 nodes stay"}, []plan.Object{amd, inReservation}},
	} {
		c.test(t, plan.Facts{NodeClaims: c.claims})
	}
}

// The CRD accepts a limit with a large exponent that Kubernetes takes minutes to compute. It must not block a pass.
func TestLimitsAreReadInTime(t *testing.T) {
	good := compared(t, nil, plan.Facts{}, nil).Plan
	running := plan.Facts{Pools: map[string]plan.PoolFacts{"workload": {CPU: "4", Memory: "9e-99999999"}}}
	bad := compared(t, texts{"karpenter_config": `{"nodePool":{"limits":{"cpu":"9e-99999999"}}}`}, running, &good)
	if len(bad.Problems) != 1 || bad.Problems[0].Path != "nodePool.limits.cpu" {
		t.Errorf("%v", bad.Problems)
	}
	if now := compared(t, nil, running, &bad.Plan); len(now.Plan.Effects) != 1 || !now.Plan.Effects[0].MayReplace {
		t.Errorf("it was in force: %v", now.Plan.Effects)
	}
}

// Invalid manifests must never be hashed: on an alias that it cannot read, Karpenter's hash ends the process.
func TestNothingBadIsHashed(t *testing.T) {
	good := compared(t, nil, plan.Facts{}, nil).Plan
	for _, alias := range []string{"bottlerocket", "al2022@latest", "@", "al2023@v1@latest", "AL2023@latest"} {
		bad := compared(t, classOf(fmt.Sprintf(`"amiSelectorTerms":[{"alias":%q}]`, alias)), plan.Facts{}, &good)
		if len(bad.Problems) == 0 || bad.Problems[0].Path != "ec2NodeClass.amiSelectorTerms[0].alias" || len(bad.Plan.Effects) > 0 {
			t.Errorf("%s: problems %v, effects %v", alias, bad.Problems, bad.Plan.Effects)
		}
		if now := compared(t, nil, plan.Facts{}, &bad.Plan); len(now.Plan.Effects) != 1 || !now.Plan.Effects[0].MayReplace {
			t.Errorf("%s was in force: %v", alias, now.Plan.Effects)
		}
	}
}
