package main

import (
	"slices"
	"strings"
	"testing"
)

// Access entries grant access to clusters, up to administrator. The functions create, change and delete only their own
// entries and those of nodes.
func TestAccessEntriesArePinnedToOurRoles(t *testing.T) {
	pinned := map[string]func(condition string) bool{
		"Access": func(condition string) bool {
			return strings.Count(condition, `"Fn::GetAtt"`) == 8 && strings.Contains(condition, `{"ArnEquals":{"eks:p`) &&
				strings.Contains(condition, `"eks:principalArn":[{"Fn::GetAtt":["`)
		},
		"Infrastructure": func(condition string) bool {
			return strings.Contains(condition, `"ArnLike":{"eks:principalArn":[{"Fn::Join":["",["arn:",{"Ref":"AWS::Partition"},`+
				`":iam::",{"Ref":"AWS::AccountId"},":role/sawhorse/*-karpenter-nodes"]]}]}`)
		},
	}
	seen := map[string]int{}
	for _, g := range production.grants() {
		for _, a := range g.actions {
			action := a.(string)
			verb, eks := strings.CutPrefix(action, "eks:")
			if !eks || !strings.Contains(verb, "Access") || strings.HasPrefix(verb, "Describe") || strings.HasPrefix(verb, "List") {
				continue
			}
			function := strings.TrimSuffix(strings.TrimRight(g.where, "0123456789ABCDEF"), "RoleDefaultPolicy")
			if check := pinned[function]; check == nil || !check(text(g.condition)) {
				t.Errorf("%s: %s, condition %s", function, action, text(g.condition))
			}
			seen[function+" "+verb]++
		}
	}
	for _, want := range []string{"Access CreateAccessEntry", "Access UpdateAccessEntry", "Access DeleteAccessEntry",
		"Access AssociateAccessPolicy",
		"Infrastructure CreateAccessEntry", "Infrastructure DeleteAccessEntry"} {
		if seen[want] != 1 {
			t.Errorf("%s: %d statements", want, seen[want])
		}
	}
	if len(seen) != 6 {
		t.Errorf("%v", seen)
	}
}

// The creator of an access entry for nodes must be allowed to pass their role to EC2.
func TestTheNodeRoleIsHandedToEC2(t *testing.T) {
	const condition = `{"StringEquals":{"iam:PassedToService":["ec2.amazonaws.com","ec2.amazonaws.com.cn"]}}`
	seen := 0
	for _, g := range production.grants() {
		if strings.HasPrefix(g.where, "Infrastructure") && slices.Contains(g.actions, any("iam:PassRole")) &&
			strings.Contains(text(g.resources), `:role/sawhorse/*-karpenter-nodes"`) {
			seen++
			if got := text(g.condition); got != condition || len(g.resources) != 1 {
				t.Errorf("%s, condition %s", text(g.resources), got)
			}
		}
	}
	if seen != 1 {
		t.Errorf("%d statements", seen)
	}
}

// Calls that change a cluster require its owner's tag, unless the deployment waives that (requireClusterTag=false). The
// access mode can only move forward, and no other cluster configuration can be changed.
func TestClustersAreChangedWithTheirOwnersTag(t *testing.T) {
	changes := []string{"eks:UpdateClusterConfig", "eks:CreateAccessEntry", "eks:CreatePodIdentityAssociation", "eks:CreateNodegroup"}
	for i, of := range []template{production, custom} {
		seen := map[string]bool{}
		for _, g := range of.grants() {
			for _, action := range changes {
				if !slices.Contains(g.actions, any(action)) {
					continue
				}
				seen[action] = true
				if tagged := strings.Contains(text(g.condition), `"StringLike":{"aws:ResourceTag/sawhorse.dev/rack":"*"}`); tagged != (i == 0) {
					t.Errorf("stack %d: %s: %s, condition %s", i, g.where, action, text(g.condition))
				}
				if action == "eks:UpdateClusterConfig" &&
					!strings.Contains(text(g.condition), `"StringEquals":{"eks:authenticationMode":"API_AND_CONFIG_MAP"}`) {
					t.Errorf("%s: %s, condition %s", g.where, action, text(g.condition))
				}
			}
		}
		if len(seen) != len(changes) {
			t.Errorf("stack %d: %v", i, seen)
		}
	}
}
