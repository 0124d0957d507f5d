package main

import (
	"slices"
	"strings"
	"testing"
)

// Access entries are the keys to clusters, administrators' too: the functions make, change and delete their own, and those of nodes.
func TestAccessEntriesArePinnedToOurRoles(t *testing.T) {
	pinned := map[string]func(condition string) bool{
		"Access": func(condition string) bool {
			return strings.Count(condition, `"Fn::GetAtt"`) == 6 && strings.Contains(condition, `{"ArnEquals":{"eks:p`) && strings.Contains(condition, `"eks:principalArn":[{"Fn::GetAtt":["`)
		},
		"Infrastructure": func(condition string) bool {
			return strings.Contains(condition, `"ArnLike":{"eks:principalArn":[{"Fn::Join":["",["arn:",{"Ref":"AWS::Partition"},":iam::",{"Ref":"AWS::AccountId"},":role/sawhorse/*-karpenter-nodes"]]}]}`)
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
	for _, want := range []string{"Access CreateAccessEntry", "Access UpdateAccessEntry", "Access DeleteAccessEntry", "Access AssociateAccessPolicy",
		"Infrastructure CreateAccessEntry", "Infrastructure DeleteAccessEntry"} {
		if seen[want] != 1 {
			t.Errorf("%s: %d statements", want, seen[want])
		}
	}
	if len(seen) != 6 {
		t.Errorf("%v", seen)
	}
}

// Whoever makes an access entry of nodes must be allowed to hand their role to EC2.
func TestTheNodeRoleIsHandedToEC2(t *testing.T) {
	const condition = `{"StringEquals":{"iam:PassedToService":["ec2.amazonaws.com","ec2.amazonaws.com.cn"]}}`
	seen := 0
	for _, g := range production.grants() {
		if strings.HasPrefix(g.where, "Infrastructure") && slices.Contains(g.actions, any("iam:PassRole")) && strings.Contains(text(g.resources), `:role/sawhorse/*-karpenter-nodes"`) {
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
