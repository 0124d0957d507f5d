package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/plan"
)

const cni = "arn:aws:iam::aws:policy/AmazonEKS_CNI_Policy"

// The CNI's policy reaches every network interface of the account. Nodes lack it only while every pod of the VPC CNI has
// credentials of its own. Where that was not observed, nothing changes.
func TestNodesHaveTheCNIsPolicyOnlyIfItNeedsIt(t *testing.T) {
	applied := plan.Records{Goal: plan.GoalKarpenter, WasOn: true, CNIIndependent: true}
	off := applied
	off.WasOn = false
	for what, c := range map[string]struct {
		observed *plan.CNI
		records  plan.Records
		policy   bool
	}{
		"not observed":                           {nil, plan.Records{}, true},
		"not observed, after it was independent": {nil, applied, false},
		"not observed, after Karpenter was off":  {nil, off, true},
		"independent":                            {&plan.CNI{Pods: 3, OwnRole: true}, plan.Records{}, false},
		"still independent":                      {&plan.CNI{Pods: 4, OwnRole: true}, applied, false},
		"a pod without credentials":              {&plan.CNI{Pods: 3, OwnRole: true, Lacking: 1}, plan.Records{}, true},
		"a later pod without credentials":        {&plan.CNI{Pods: 3, OwnRole: true, Lacking: 1}, applied, true},
		"no role":                                {&plan.CNI{Pods: 3, Lacking: 3}, applied, true},
		"another CNI":                            {&plan.CNI{}, applied, true},
		"another CNI, and a role left behind":    {&plan.CNI{OwnRole: true}, applied, true},
	} {
		f := facts()
		f.CNI, f.Records = c.observed, c.records
		f.SystemPolicies = []string{cni}
		got := build(t, on, f)
		infrastructure := got.Plan.Infrastructure
		if has := slices.Contains(infrastructure.Nodes.Attached, cni); has != c.policy || infrastructure.CNIIndependent == has {
			t.Errorf("%s: policies %v, independent %v", what, infrastructure.Nodes.Attached, infrastructure.CNIIndependent)
		}
		for _, w := range got.Warnings {
			if strings.Contains(w.Message, cni) {
				t.Errorf("%s: %s", what, w.Message)
			}
		}
	}
}

// AWS's managed policy of the CNI has none of the actions of IPv6, so nodes of such a cluster have a policy of their own in its
// place, under the same conditions. The nodes' boundary ends at the partition's network interfaces too.
func TestNodesOfAnIPv6ClusterHaveItsPolicy(t *testing.T) {
	build6 := func(cni *plan.CNI) plan.Infrastructure {
		f := facts()
		f.Cluster.IPv6, f.Cluster.Partition, f.CNI = true, "aws-us-gov", cni
		return build(t, with(builds, "build_node_minimal_role_enabled", "true"), f).Plan.Infrastructure
	}
	got := build6(nil)
	for what, role := range map[string]plan.Role{"nodes": got.Nodes, "build nodes": *got.BuildNodes} {
		if slices.ContainsFunc(role.Attached, func(arn string) bool { return strings.HasSuffix(arn, "AmazonEKS_CNI_Policy") }) {
			t.Errorf("%s: attached %v", what, role.Attached)
		}
		for _, part := range []string{`"ec2:AssignIpv6Addresses"`, `"arn:aws-us-gov:ec2:*:*:network-interface/*"`} {
			if text := role.Policies["cni-ipv6"].JSON(); !strings.Contains(text, part) {
				t.Errorf("%s: %q without %s", what, text, part)
			}
		}
	}
	if got := build6(&plan.CNI{Pods: 3, OwnRole: true}); len(got.Nodes.Policies) > 0 || len(got.BuildNodes.Policies) > 0 {
		t.Errorf("independent: %v", got.Nodes.Policies)
	}
}

// Turning off needs no decision: what is removed has no policies.
func TestTheRemovalDoesNotNameTheCNI(t *testing.T) {
	f := facts()
	f.CNI, f.Records = &plan.CNI{Pods: 1, OwnRole: true}, plan.Records{Goal: plan.GoalKarpenter, WasOn: true, CNIIndependent: true}
	if got := build(t, texts{"karpenter_auth_mode": "true", "karpenter_enabled": "false"}, f).Plan.Infrastructure; got.CNIIndependent {
		t.Errorf("%+v", got)
	}
}
