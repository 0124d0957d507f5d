package main

import (
	"regexp"
	"slices"
	"strings"

	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
	"github.com/cdklabs/cdk-nag-go/cdknag/v2"
)

// accept records in the template why a rule of cdk-nag does not apply to a construct. The
// tests run cdk-nag's AwsSolutions.
func accept(what constructs.Construct, rule, why string) {
	cdknag.NagSuppressions_AddResourceSuppressions(what, &[]*cdknag.NagPackSuppression{{Id: jsii.String(rule), Reason: jsii.String(why)}}, nil)
}

// lintIgnores returns the metadata that makes cfn-lint ignore a rule in a resource or in the template.
func lintIgnores(rule string) map[string]any {
	return map[string]any{"config": map[string]any{"ignore_checks": []string{rule}}}
}

// wildcard is the end of the resources of some statements, or a whole action, and why it cannot be narrower.
type wildcard struct{ ends, why string }

// wildcards lists the wildcards in all policies of the stack. If a row mentions conditions, the statements have them,
// and permissions_test.go checks that.
var wildcards = []wildcard{
	{"Resource::*", "actions that know no resources; the list unscoped in permissions_test.go has each with its reason"},
	{":cluster/*", "racks name their clusters in parameters, after the stack is deployed"},
	{":nodegroup/*", "of clusters that racks name after the stack is deployed; creating, tagging and deleting have conditions"},
	{":access-entry/*", "of clusters that racks name after the stack is deployed; creating, changing and deleting have " +
		"conditions on the principal"},
	{":podidentityassociation/*", "of clusters that racks name after the stack is deployed; their ids are EKS's"},
	{":addon/*", "of clusters that racks name after the stack is deployed; only read"},
	{":autoScalingGroup:*:autoScalingGroupName/eks-*", "EKS names the Auto Scaling groups of node groups so; by a condition on EKS's tag"},
	{":oidc-provider/*", "a cluster's provider has an id of EKS's in its name; only read"},
	{"-karpenter", "a rack's role, queue and rule are named after the rack"},
	{"-karpenter-nodes", "a rack's role is named after the rack"},
	{"-karpenter-build-nodes", "a rack's role is named after the rack"},
	{"/sawhorse/*", "the roles that Sawhorse makes for racks, and no others, are below this path; they bear the boundary"},
	{":role/*", "node groups have roles with whatever names their makers gave them; only read"},
	{":instance-profile/karpenter/*", "Karpenter's own path: what it left behind is cleared away"},
	{":instance-profile/*", "boundary: Karpenter's policies scope them by tags, and the names are Karpenter's"},
	{"/racks/*", "racks come and go after the stack is deployed"},
	{"/racks/*/*", "racks come and go after the stack is deployed"},
	{"/racks/*/params", "racks come and go after the stack is deployed"},
	{"/racks/*/params/*", "racks come and go after the stack is deployed"},
	{"/racks/*/status", "racks come and go after the stack is deployed"},
	{"/racks/*/change", "racks come and go after the stack is deployed"},
	{"/racks/*/outputs", "racks come and go after the stack is deployed"},
	{":parameter/aws/service/*", "boundary: AWS's public parameters, for the images of nodes"},
	{":repository/*", "boundary: nodes pull from whatever repository of ECR their pods name"},
	{":subnet/*", "subnets of clusters that racks name after the stack is deployed; tagging is confined to one key by conditions"},
	{":security-group/*", "groups of clusters that racks name after the stack is deployed; tagging is confined to one key by conditions"},
	{":instance/*", "instances have ids of EC2's; ending and launching have conditions"},
	{":volume/*", "ids of EC2's; only at a launch from a template, by a condition"},
	{":network-interface/*", "ids of EC2's; only at a launch from a template, by a condition"},
	{":launch-template/*", "ids of EC2's; the template is that of the node group which is copied"},
	{":placement-group/*", "whatever placement group the launch template of the copied node group names"},
	{":capacity-reservation/*", "whatever capacity reservation the launch template of the copied node group names"},
	{":license-configuration:*", "whatever licence configuration the launch template of the copied node group names"},
	{":key-pair/*", "whatever key the launch template of the copied node group names"},
	{"::image/*", "whatever image the launch template or the NodeClass names"},
	{"::snapshot/*", "whatever snapshot the image is made of"},
	{":fleet/*", "boundary: ids of EC2's; by conditions on the tags that a launch asks for"},
	{":spot-instances-request/*", "boundary: ids of EC2's; by conditions on the tags that a launch asks for"},
	{"-reconcile:*", "executions of the state machine have names of EventBridge's and the Scheduler's"},
}

// acceptWildcards records the reasons on the whole stack, because most statements of most roles have one of the same
// few wildcards.
func (s *sawhorse) acceptWildcards() {
	all := append(slices.Clone(wildcards), wildcard{":log-group:/aws/lambda/" + s.functionName("*"), "the functions of this stack"})
	for _, f := range functions {
		all = append(all, wildcard{":function:" + s.functionName(f.name) + ":*", "the versions of all releases whose executions may still run"})
	}
	for _, rack := range s.OperatorRacks {
		for _, below := range []string{"", "/*", "/params/*", "/change"} {
			all = append(all, wildcard{"/racks/" + rack + below, "what is in the folders of the racks that this deployment names (operatorRacks)"})
		}
	}
	for _, action := range s.NodeActions {
		all = append(all, wildcard{"Action::" + action, "boundary: an action that this deployment lets the policies of nodes have (nodeActions)"})
	}
	for _, role := range s.NodeRoles {
		all = append(all, wildcard{":role/" + role,
			"roles that this deployment lets copies of node groups have (nodeRoles); passed to EKS alone"})
	}
	for _, prefix := range s.ObjectPrefixes {
		all = append(all, wildcard{":::" + objectPattern(prefix),
			"objects below a prefix that this deployment names (objectPrefixes, sharedObjectPrefixes)"})
	}
	var suppressions []*cdknag.NagPackSuppression
	for _, w := range all {
		suppressions = append(suppressions, &cdknag.NagPackSuppression{
			Id: jsii.String("AwsSolutions-IAM5"), Reason: jsii.String(w.why),
			AppliesTo: &[]any{&cdknag.RegexAppliesTo{Regex: jsii.String(w.regex())}},
		})
	}
	cdknag.NagSuppressions_AddStackSuppressions(s.stack, &suppressions, nil)
}

// regex returns a pattern, as /ECMAScript/, for a finding of cdk-nag. A complete finding is matched as a whole, an ARN
// by its end.
func (w wildcard) regex() string {
	text := strings.ReplaceAll(regexp.QuoteMeta(w.ends), "/", `\/`)
	if strings.HasPrefix(w.ends, "Resource::") || strings.HasPrefix(w.ends, "Action::") {
		return "/^" + text + "$/"
	}
	return "/^Resource::.*" + text + "$/"
}
