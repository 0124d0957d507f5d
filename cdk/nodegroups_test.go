package main

import (
	"slices"
	"strings"
	"testing"
)

// Copies may get only the roles that the deployment names.
func TestCopiesGetTheRolesOfTheDeployment(t *testing.T) {
	const arn = `{"Fn::Join":["",["arn:",{"Ref":"AWS::Partition"},":iam::",{"Ref":"AWS::AccountId"},":role/`
	for want, of := range map[string]template{
		"[" + arn + `eks-nodes"]]}]`:                             production,
		"[" + arn + `eks-nodes"]]},` + arn + `team/*-nodes"]]}]`: custom,
	} {
		var found []string
		for _, g := range of.grants() {
			if strings.HasPrefix(g.where, "Nodegroups") && slices.Contains(g.actions, any("iam:PassRole")) {
				found = append(found, text(g.resources)+text(g.condition))
			}
		}
		if !slices.Equal(found, []string{want + `{"StringEquals":{"iam:PassedToService":"eks.amazonaws.com"}}`}) {
			t.Errorf("got %q, want %s", found, want)
		}
	}
}

// Without roles for copies no group can be replaced, so the function nodegroups may create, tag and delete none, and launch
// nothing.
func TestWithoutNodeRolesNodeGroupsAreOnlyResized(t *testing.T) {
	var found []any
	for _, g := range ofRole("nodegroups", again.grants()) {
		for _, action := range g.actions {
			if service, _, _ := strings.Cut(text(action), ":"); service == `"eks` || service == `"ec2` || service == `"iam` {
				found = append(found, action)
			}
		}
	}
	if got := text(found); got != `["eks:DescribeCluster","eks:DescribeNodegroup","eks:UpdateNodegroupConfig",`+
		`"eks:DescribeUpdate","eks:DescribeUpdate"]` {
		t.Errorf("got %s", got)
	}
}

// The function nodegroups creates only copies, and does not delete copies.
func TestNodeGroupsAreReplacedByCopiesOnly(t *testing.T) {
	want := map[string]string{
		"eks:CreateNodegroup": `{"Null":{"aws:RequestTag/sawhorse.dev/replaces":"false"},"StringLike":{"aws:ResourceTag/sawhorse.dev/rack":"*"}}`,
		"eks:TagResource":     `{"Null":{"aws:RequestTag/sawhorse.dev/replaces":"false"},"StringLike":` + ownershipInCall + `}`,
		"eks:DeleteNodegroup": `{"Null":{"aws:ResourceTag/sawhorse.dev/replaces":"true"}}`,
	}
	seen := map[string]bool{}
	for _, g := range production.grants() {
		nodegroups := strings.HasPrefix(g.where, "Nodegroups")
		for action, condition := range want {
			if !slices.Contains(g.actions, any(action)) {
				continue
			}
			if !nodegroups && strings.HasSuffix(action, "Nodegroup") {
				t.Errorf("%s may %s", g.where, action)
			}
			if got := text(g.condition); nodegroups && got != condition {
				t.Errorf("%s: condition %s, want %s", action, got, condition)
			}
			seen[action] = seen[action] || nodegroups
		}
		if nodegroups && slices.Contains(g.actions, any("ec2:RunInstances")) {
			seen["ec2:RunInstances"] = strings.Contains(text(g.condition), `{"ArnLike":{"ec2:LaunchTemplate":`)
			for _, used := range []string{":placement-group/*", ":capacity-reservation/*", ":license-configuration:*"} {
				if !strings.Contains(text(g.resources), used) {
					t.Errorf("no launch from a template that names something of %s", used)
				}
			}
		}
	}
	for _, action := range []string{"eks:CreateNodegroup", "eks:TagResource", "eks:DeleteNodegroup", "ec2:RunInstances"} {
		if !seen[action] {
			t.Errorf("%s is missing, or without its condition", action)
		}
	}
}
