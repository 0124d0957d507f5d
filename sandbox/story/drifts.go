package story

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"strings"
	"time"
)

// drift is a change of one kind of field. said is what the command and the pass predict for the three nodes
// before the change. did is a pattern for what Karpenter does to each node: its architecture, and the reason
// of its condition Drifted.
type drift struct {
	what      string
	set       map[string]string
	said, did string
}

const (
	stay   = "amd64: amd64: arm64:"
	anyOf  = "amd64:(%[1]s)? amd64:(%[1]s)? arm64:(%[1]s)?"
	allOf  = "amd64:%[1]s amd64:%[1]s arm64:%[1]s"
	subnet = `aws eks describe-nodegroup --cluster-name demo --nodegroup-name system --query 'nodegroup.subnets[0]' --output text`
	group  = `aws ec2 describe-security-groups --filters Name=group-name,Values=demo-node --query 'SecurityGroups[0].GroupId' --output text`
	image  = "aws ssm get-parameter --query Parameter.Value --output text --name /aws/service/eks/optimized-ami/" +
		"$(aws eks describe-cluster --name demo --query cluster.version --output text)/amazon-linux-2023/%s/standard/recommended/image_id"
	// drifted prints what Karpenter does to each node of the pool.
	drifted = `kubectl get nodeclaims -l karpenter.sh/nodepool=workload -o json | python3 -c 'import json,sys
def reason(claim): return "".join(c["reason"] for c in claim["status"]["conditions"] if c["type"] == "Drifted" and c["status"] == "True")
print(*sorted(c["metadata"]["labels"]["kubernetes.io/arch"] + ":" + reason(c) for c in json.load(sys.stdin)["items"]))'`
)

func unmoved(what string, set map[string]string) drift {
	return drift{what, set, "pool workload is changed: its 3 nodes stay", stay}
}

func moved(what, reason string, set map[string]string) drift {
	return drift{what, set, "Karpenter replaces its 3 nodes (" + reason + "), as its disruption budget allows", fmt.Sprintf(allOf, reason)}
}

func maybe(what, reason string, set map[string]string) drift {
	said := "Karpenter may replace some or all of its 3 nodes (" + reason + "), as its disruption budget allows"
	return drift{what, set, said, fmt.Sprintf(anyOf, reason)}
}

func one(name, value string) map[string]string { return map[string]string{name: value} }

func overriding(config string) map[string]string { return one("karpenter_config", config) }

// drifts returns one change for each kind of field.
func drifts(t *Teller) []drift {
	const (
		zone = `{"nodePool":{"template":{"spec":{"requirements":[{"key":"karpenter.sh/capacity-type","operator":"In",` +
			`"values":["on-demand"]},` +
			`{"key":"kubernetes.io/arch","operator":"In","values":["amd64","arm64"]},` +
			`{"key":"topology.kubernetes.io/zone","operator":"In","values":["us-east-1z"]}]}}}}`
		reservations = `{"ec2NodeClass":{"capacityReservationSelectorTerms":[{"tags":{"team":"none"}}]}}`
		images       = `{"ec2NodeClass":{"amiFamily":"AL2023","amiSelectorTerms":[{"id":"%s"}]}}`
	)
	intel, graviton := t.Ask(fmt.Sprintf(image, "x86_64")), t.Ask(fmt.Sprintf(image, "arm64"))
	return []drift{
		unmoved("a limit", one("karpenter_cpu_limit", "500")),
		unmoved("consolidation", one("karpenter_consolidate_after", "45s")),
		unmoved("a weight", overriding(`{"nodePool":{"weight":5}}`)),
		unmoved("a capacity type more", one("karpenter_capacity_types", "spot,on-demand")),
		unmoved("metadata options as their defaults are", overriding(`{"ec2NodeClass":{"metadataOptions":{"httpTokens":"required"}}}`)),
		unmoved("capacity reservations, which no node runs in", overriding(reservations)),
		moved("a label", "NodePoolDrifted", one("karpenter_node_labels", "team=web")),
		moved("a taint", "NodePoolDrifted", one("karpenter_node_taints", "example.com/a=b:NoSchedule")),
		moved("the expiry", "NodePoolDrifted", one("karpenter_node_expiry", "700h")),
		moved("the grace period", "NodePoolDrifted", overriding(`{"nodePool":{"template":{"spec":{"terminationGracePeriod":"48h"}}}}`)),
		moved("the disk", "NodeClassDrift", one("karpenter_node_disk", "50")),
		moved("the volume type", "NodeClassDrift", one("karpenter_node_volume_type", "gp2")),
		moved("tags", "NodeClassDrift", one("tags", "team=web")),
		moved("user data", "NodeClassDrift", overriding(`{"ec2NodeClass":{"userData":"#!/bin/sh"}}`)),
		moved("the hop limit", "NodeClassDrift", overriding(`{"ec2NodeClass":{"metadataOptions":{"httpPutResponseHopLimit":2}}}`)),
		moved("families", "RequirementsDrifted", one("karpenter_instance_families", "x2idn,x2gd")),
		moved("sizes", "RequirementsDrifted", one("karpenter_instance_sizes", "24xlarge")),
		moved("capacity types", "RequirementsDrifted", one("karpenter_capacity_types", "spot")),
		moved("a zone where no node is", "RequirementsDrifted", overriding(zone)),
		{"one architecture less", one("karpenter_arch", "arm64"),
			"Karpenter replaces 2 of its 3 nodes (RequirementsDrifted), as its disruption budget allows",
			"amd64:RequirementsDrifted amd64:RequirementsDrifted arm64:"},
		{"the AMI of one architecture", overriding(fmt.Sprintf(images, intel)),
			"Karpenter replaces 1 of its 3 nodes (AMIDrift), as its disruption budget allows", "amd64: amd64: arm64:AMIDrift"},
		maybe("the AMIs that there are", "AMIDrift", overriding(fmt.Sprintf(images, intel+`"},{"id":"`+graviton))),
		maybe("one subnet of several", "SubnetDrift", one("subnet_ids", t.Ask(subnet))),
		maybe("one security group of two", "SecurityGroupDrift", one("security_group_ids", t.Ask(group))),
	}
}

// Drifts makes one change of each kind of field in turn, and compares the predicted effect on the nodes with what
// Karpenter does to each of them.
func Drifts(t *Teller) {
	base := map[string]string{"karpenter_arch": "amd64,arm64", "karpenter_disruption_budget_nodes": "0"}
	amd, arm := onNodesOf("amd64", 2), onNodesOf("arm64", 1)

	t.Chapter("Two nodes of one architecture, one of another; none is disrupted")
	request(t, encoded(map[string]any{"rack": "demo", "set": base}))
	t.Until("the budget", "kubectl get nodepool workload -o jsonpath='{.spec.disruption.budgets[0].nodes}'", "0", time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	amd.start(t)
	arm.start(t)
	t.Type("kubectl wait nodeclaims -l karpenter.sh/nodepool=workload --for=condition=Initialized --timeout=60s")
	t.Check("drifted", drifted, stay)

	for _, d := range drifts(t) {
		t.Chapter(strings.ToUpper(d.what[:1]) + d.what[1:])
		t.Contains("sawhorse plan", planOf(t, d.set), d.said)
		paused := maps.Clone(d.set)
		paused["paused"] = "true"
		request(t, encoded(map[string]any{"rack": "demo", "set": paused}))
		t.Until("status", state, "Paused", time.Minute)
		t.Until("the pass has ended", running, "0", time.Minute)
		t.Contains("the pass that changes nothing yet", status, d.said)
		t.Type(put + "paused --value unset --query Version")
		t.Until("status", state, "Reconciled", 2*time.Minute)
		t.Until("the pass has ended", running, "0", time.Minute)
		t.wait(10 * time.Second) // time for Karpenter to examine a node that is to stay
		matches := drifted + ` | grep -Ecx '` + d.did + `'`
		t.Until("Karpenter: "+d.did, matches, "1", 6*time.Minute) // Karpenter reads subnets and groups every few minutes
		request(t, back(base, d.set))
		t.Until("and back", drifted, stay, 6*time.Minute)
		t.Until("the pass has ended", running, "0", time.Minute)
	}

	t.Chapter("Back to the defaults")
	amd.end(t)
	arm.end(t)
	request(t, `{"rack":"demo","unset":["karpenter_arch","karpenter_disruption_budget_nodes"]}`)
	t.Until("nodes of NodePools", nodes, "", 3*time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Check("status", state, "Reconciled")
}

// back returns the request that reverts a change to the script's own settings.
func back(base, set map[string]string) string {
	again, unset := map[string]string{}, []string{}
	for name := range set {
		if value, ours := base[name]; ours {
			again[name] = value
		} else {
			unset = append(unset, name)
		}
	}
	return encoded(map[string]any{"rack": "demo", "set": again, "unset": unset})
}

// planOf returns the output of `sawhorse plan` for a change of the rack's parameters, with the existing NodeClaims.
func planOf(t *Teller, set map[string]string) string {
	const written = "aws ssm get-parameters-by-path --path /sawhorse/racks/demo/params --query 'Parameters[].[Name,Value]' --output json"
	var parameters [][2]string
	var claims struct {
		Items []json.RawMessage `json:"items"`
	}
	err := json.Unmarshal([]byte(t.Ask(written)), &parameters)
	if err := errors.Join(err, json.Unmarshal([]byte(t.Ask("kubectl get nodeclaims -o json")), &claims)); err != nil {
		t.fail("parameters and NodeClaims: %v", err)
	}
	previous := map[string]string{}
	for _, p := range parameters {
		previous[path.Base(p[0])] = p[1]
	}
	params := maps.Clone(previous)
	maps.Copy(params, set)
	observed := map[string]any{"nodeclaims": claims.Items}
	input := encoded(map[string]any{"rack": "demo", "previous": previous, "params": params, "observed": observed})
	return "sawhorse plan - <<'EOF'\n" + input + "\nEOF"
}

// onNodesOf returns pods for nodes of an architecture, each on a node of its own.
func onNodesOf(arch string, replicas int) app {
	return app{name: arch, replicas: replicas, cpu: `"2"`, spec: fmt.Sprintf(`nodeSelector: {kubernetes.io/arch: %[1]s}
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: %[1]s}}}`, arch)}
}
