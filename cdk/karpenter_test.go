package main

import (
	"path"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/karpenter"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// The boundary allows what the policies of each version of the catalogue allow in the stack's own account, action by action
// and resource by resource.
func TestTheBoundaryCoversEveryVersionOfKarpenter(t *testing.T) {
	values := strings.NewReplacer(":*:", ":123456789012:",
		"${Partition}", "aws", "${Region}", "eu-central-1", "${Account}", "123456789012", "${ClusterName}", "prod",
		"${NodeRoleARN}", "arn:aws:iam::123456789012:role"+ownership.RacksPath("")+ownership.NodeRole("prod"),
		"${QueueARN}", "arn:aws:sqs:eu-central-1:123456789012:"+ownership.Queue("prod"),
	)
	ofStack := strings.NewReplacer(
		"${AWS::Partition}", "aws", "${AWS::Region}", "eu-central-1", "${AWS::AccountId}", "123456789012", ownRack, "prod")
	var allowed []permission
	for id, boundary := range production.boundaries(t) {
		if id != "ControllerBoundary" {
			continue
		}
		for _, s := range list(at(boundary.Properties, "PolicyDocument", "Statement")) {
			var p permission
			for _, action := range list(at(s, "Action")) {
				p.actions = append(p.actions, action.(string))
			}
			for _, resource := range list(at(s, "Resource")) {
				p.resources = append(p.resources, ofStack.Replace(resolved(resource)))
			}
			allowed = append(allowed, p)
		}
	}
	checked := 0
	for _, release := range karpenter.All() {
		for _, p := range permissions(release) {
			for _, action := range p.actions {
				for _, resource := range p.resources {
					if checked++; !covers(allowed, action, strings.ReplaceAll(values.Replace(resource), "*", "any")) {
						t.Errorf("karpenter %s: the boundary does not allow %s on %s", release.Version, action, resource)
					}
				}
			}
		}
	}
	if checked < 100 || covers(allowed, "ec2:StopInstances", "any") || covers(allowed, "iam:PassRole", "any") {
		t.Errorf("%d permissions were checked, and the check refuses what the boundary does not allow", checked)
	}
}

// covers reports whether a statement allows an action on a resource. It leaves the conditions out.
func covers(allowed []permission, action, resource string) bool {
	matches := func(patterns []string, text string) bool {
		for _, pattern := range patterns {
			// In a policy * also matches a slash.
			if is, err := path.Match(strings.ReplaceAll(pattern, "/", "|"), strings.ReplaceAll(text, "/", "|")); err == nil && is {
				return true
			}
		}
		return false
	}
	for _, p := range allowed {
		if matches(p.actions, action) && matches(p.resources, resource) {
			return true
		}
	}
	return false
}

// resolved returns an intrinsic of CloudFormation as a text with ${…}: a text, Fn::Join, or Ref.
func resolved(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case map[string]any:
		if ref, is := v["Ref"].(string); is {
			return "${" + ref + "}"
		}
		var whole strings.Builder
		for _, part := range list(at(v, "Fn::Join", 1)) {
			whole.WriteString(resolved(part))
		}
		return whole.String()
	}
	return ""
}
