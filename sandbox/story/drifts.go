package story

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
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
func drifts(s *Script) []drift {
	const (
		zone = `{"nodePool":{"template":{"spec":{"requirements":[{"key":"karpenter.sh/capacity-type","operator":"In",` +
			`"values":["on-demand"]},` +
			`{"key":"kubernetes.io/arch","operator":"In","values":["amd64","arm64"]},` +
			`{"key":"topology.kubernetes.io/zone","operator":"In","values":["us-east-1z"]}]}}}}`
		reservations = `{"ec2NodeClass":{"capacityReservationSelectorTerms":[{"tags":{"team":"none"}}]}}`
		images       = `{"ec2NodeClass":{"amiFamily":"AL2023","amiSelectorTerms":[{"id":"%s"}]}}`
	)
	intel, graviton := s.Output(fmt.Sprintf(image, "x86_64")), s.Output(fmt.Sprintf(image, "arm64"))
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
		maybe("one subnet of several", "SubnetDrift", one("subnet_ids", s.Output(subnet))),
		maybe("one security group of two", "SecurityGroupDrift", one("security_group_ids", s.Output(group))),
	}
}

// Drifts makes one change of each kind of field in turn, and compares the predicted effect on the nodes with what
// Karpenter does to each of them.
func Drifts(s *Script) {
	base := map[string]string{"karpenter_arch": "amd64,arm64", "karpenter_disruption_budget_nodes": "0"}
	amd, arm := onNodesOf("amd64", 2), onNodesOf("arm64", 1)

	s.Chapter("Two nodes of one architecture, one of another; none is disrupted", func() {
		s.Reconciled(s.Change(base))
		amd.start(s)
		arm.start(s)
		s.Type("kubectl wait nodeclaims -l karpenter.sh/nodepool=workload --for=condition=Initialized --timeout=60s")
		s.Equal("drifted", driftsOf(s), stay)
	})

	for _, d := range drifts(s) {
		s.Chapter(strings.ToUpper(d.what[:1])+d.what[1:], func() {
			s.Contains("sawhorse plan", planOf(s, d.set), d.said)
			paused := maps.Clone(d.set)
			paused["paused"] = "true"
			s.Change(paused)
			s.Paused()
			s.Says(d.said)
			s.Unset("paused")
			s.Reconciled()
			examined(s)
			wanted := regexp.MustCompile("^(" + d.did + ")$")
			s.Await("Karpenter: "+d.did, func() string { // it reads subnets and groups every few minutes
				got := driftsOf(s)
				if wanted.MatchString(got) {
					return ""
				}
				return got
			}, "", 6*time.Minute)
			revert(s, base, d.set)
			s.Await("Karpenter, and back", func() string { return driftsOf(s) }, stay, 6*time.Minute)
		})
	}

	s.Chapter("Back to the defaults", func() {
		amd.end(s)
		arm.end(s)
		s.Reconciled(s.Change(nil, "karpenter_arch", "karpenter_disruption_budget_nodes"))
		s.Until("nodes of NodePools", nodes, "", 3*time.Minute)
	})
}

// driftsOf returns what Karpenter does to each node of the pool workload: its architecture, and the reason of its
// condition Drifted.
func driftsOf(s *Script) string {
	var all []string
	for _, claim := range nodeClaims(s, "-l karpenter.sh/nodepool=workload").Items {
		all = append(all, claim.Metadata.Labels["kubernetes.io/arch"]+":"+claim.drifted())
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// revert reverts a change to the script's own settings.
func revert(s *Script, base, set map[string]string) {
	again, unset := map[string]string{}, []string{}
	for name := range set {
		if value, ours := base[name]; ours {
			again[name] = value
		} else {
			unset = append(unset, name)
		}
	}
	s.Reconciled(s.Change(again, unset...))
}

// planOf returns the command `sawhorse plan` for a change of the rack's parameters, with the existing NodeClaims.
func planOf(s *Script, set map[string]string) string {
	previous := map[string]string{}
	for _, p := range JSON[[][2]string](s, "aws ssm get-parameters-by-path --path /sawhorse/racks/demo/params "+
		"--query 'Parameters[].[Name,Value]' --output json") {
		previous[path.Base(p[0])] = p[1]
	}
	params := maps.Clone(previous)
	maps.Copy(params, set)
	observed := object{"nodeclaims": JSON[list[any]](s, "kubectl get nodeclaims -o json").Items}
	input := encoded(object{"rack": "demo", "previous": previous, "params": params, "observed": observed})
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
