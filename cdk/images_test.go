package main

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// launchable reports whether the boundary of Karpenter's controllers lets an action use an image with this owner and these
// tags. own is the stack's account.
func (t template) launchable(action, owner string, tags map[string]string) bool {
	const own = `{"Ref":"AWS::AccountId"}`
	values := func(key string) (string, bool) {
		if key == "ec2:Owner" {
			return strings.ReplaceAll(owner, "own", own), true
		}
		value, there := tags[strings.TrimPrefix(key, "aws:ResourceTag/")]
		return value, there
	}
	return slices.ContainsFunc(t.grants(), func(g grant) bool {
		if !strings.HasPrefix(g.where, "ControllerBoundary") || !slices.Contains(g.actions, any(action)) ||
			!slices.ContainsFunc(g.resources, func(r any) bool { return strings.Contains(text(r), "::image/") || text(r) == `"*"` }) {
			return false
		}
		condition, _ := g.condition.(map[string]any)
		for operator, keys := range condition {
			for key, wanted := range keys.(map[string]any) {
				value, there := values(key)
				if !there || !slices.ContainsFunc(list(wanted), func(one any) bool { return meets(operator, one, value) }) {
					return false
				}
			}
		}
		return true
	})
}

// meets compares a value with what a condition wants. A pseudo parameter is compared by its JSON.
func meets(operator string, wanted any, value string) bool {
	pattern, is := wanted.(string)
	if !is {
		pattern = text(wanted)
	}
	if operator == "StringEquals" {
		return pattern == value
	}
	matches, err := path.Match(pattern, value)
	return operator == "StringLike" && err == nil && matches
}

// Whatever image a rack's parameters select, and whatever the policies of a controller's role say, nodes start only from
// images of Amazon, of the context's owners, and from the account's own with the tag of images for nodes.
func TestTheBoundaryRefusesImagesThatAreNotForNodes(t *testing.T) {
	forNodes, others := map[string]string{"sawhorse.dev/nodes": "true"}, map[string]string{"Name": "db-backup", "sawhorse.dev/rack": "demo"}
	for _, c := range []struct {
		what, owner string
		tags        map[string]string
		plain       bool
		listed      bool
	}{
		{"an image of Amazon", "amazon", nil, true, true},
		{"the account's own", "own", nil, false, false},
		{"the account's own, with other tags", "own", others, false, false},
		{"the account's own, for nodes", "own", forNodes, true, true},
		{"a listed account's", "099720109477", nil, false, true},
		{"another account's", "210987654321", nil, false, false},
		{"another account's, that this account has tagged", "210987654321", forNodes, false, false},
		{"one that is sold", "aws-marketplace", nil, false, false},
	} {
		for _, action := range []string{"ec2:RunInstances", "ec2:CreateFleet"} {
			if got := production.launchable(action, c.owner, c.tags); got != c.plain {
				t.Errorf("%s of %s: %v", action, c.what, got)
			}
			if got := custom.launchable(action, c.owner, c.tags); got != c.listed {
				t.Errorf("with imageOwners: %s of %s: %v", action, c.what, got)
			}
		}
	}
}
