package main

import (
	"slices"
	"strings"
	"testing"
)

// The function nodegroups makes copies and nothing else, deletes no copy, and hands roles to EKS alone.
func TestNodeGroupsAreReplacedByCopiesOnly(t *testing.T) {
	want := map[string]string{
		"eks:CreateNodegroup": `{"Null":{"aws:RequestTag/sawhorse.dev/replaces":"false"}}`,
		"eks:TagResource":     `{"Null":{"aws:RequestTag/sawhorse.dev/replaces":"false"}}`,
		"eks:DeleteNodegroup": `{"Null":{"aws:ResourceTag/sawhorse.dev/replaces":"true"}}`,
		"iam:PassRole":        `{"StringEquals":{"iam:PassedToService":"eks.amazonaws.com"}}`,
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
	for _, action := range []string{"eks:CreateNodegroup", "eks:TagResource", "eks:DeleteNodegroup", "iam:PassRole", "ec2:RunInstances"} {
		if !seen[action] {
			t.Errorf("%s is missing, or without its condition", action)
		}
	}
}
