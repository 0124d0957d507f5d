package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// managedPolicies are the AWS managed policies of a node, as GetPolicyVersion returns them, in testdata/nodes. AWS may
// publish a new version at any time; make acceptance compares the versions.
func managedPolicies(t *testing.T) map[string][]permission {
	t.Helper()
	files, err := filepath.Glob("testdata/nodes/*.json")
	if err != nil || len(files) != 4 {
		t.Fatalf("%v, %v", files, err)
	}
	policies := map[string][]permission{}
	for _, file := range files {
		var version struct {
			PolicyVersion struct {
				VersionID string `json:"VersionId"`
				Document  struct {
					Statement []struct{ Action, Resource any }
				}
			}
		}
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, &version)
		}
		if err != nil || !regexp.MustCompile(`^v\d+$`).MatchString(version.PolicyVersion.VersionID) {
			t.Fatalf("%s: version %q, %v", file, version.PolicyVersion.VersionID, err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		for _, s := range version.PolicyVersion.Document.Statement {
			policies[name] = append(policies[name], permission{oneOrMore(s.Action), oneOrMore(s.Resource)})
		}
	}
	return policies
}

// atMostOfNodes returns the statements of the nodes' boundary in the stack without context values, with the values of an
// account.
func atMostOfNodes(t *testing.T) (allowed []permission) {
	t.Helper()
	account := strings.NewReplacer("${AWS::Partition}", "aws", "${AWS::Region}", "eu-central-1", "${AWS::AccountId}", "123456789012")
	for _, s := range list(at(production.boundaries(t)["NodeBoundary"].Properties, "PolicyDocument", "Statement")) {
		var p permission
		for _, action := range list(at(s, "Action")) {
			p.actions = append(p.actions, action.(string))
		}
		for _, resource := range list(at(s, "Resource")) {
			p.resources = append(p.resources, account.Replace(resolved(resource)))
		}
		allowed = append(allowed, p)
	}
	return allowed
}

// withheld are the actions of a node's managed policies that the boundary does not allow, and why no node needs them.
var withheld = map[string]string{
	"ssm:GetParameters": "reads any parameter of the account; the agent itself calls GetParameter for AWS's own, which the boundary allows",
}

// narrowed are the actions that the managed policies allow on every resource and the boundary only on those of the
// stack's account, or of a kind, each with resources that a node must reach, and one that it must not.
var narrowed = map[string]struct {
	reached []string
	beyond  string
}{
	"eks:DescribeCluster":               {[]string{cluster}, "arn:aws:eks:eu-central-1:210987654321:cluster/prod"},
	"eks-auth:AssumeRoleForPodIdentity": {[]string{cluster}, "arn:aws:eks:eu-central-1:210987654321:cluster/prod"},
	"ssm:GetParameter": {[]string{"arn:aws:ssm:eu-central-1::parameter/aws/service/eks/optimized-ami"},
		"arn:aws:ssm:eu-central-1:123456789012:parameter/password"},
	"ecr:BatchGetImage":                   {pulled, "any"},
	"ecr:GetDownloadUrlForLayer":          {pulled, "any"},
	"ecr:BatchImportUpstreamImage":        {pulled, "any"},
	"ec2:AssignPrivateIpAddresses":        {ofCNI[:1], "any"},
	"ec2:UnassignPrivateIpAddresses":      {ofCNI[:1], "any"},
	"ec2:DeleteNetworkInterface":          {ofCNI[:1], "any"},
	"ec2:AttachNetworkInterface":          {ofCNI[:2], "any"},
	"ec2:DetachNetworkInterface":          {ofCNI[:2], "any"},
	"ec2:CreateNetworkInterface":          {ofCNI, "any"},
	"ec2:ModifyNetworkInterfaceAttribute": {ofCNI, "any"},
}

const cluster = "arn:aws:eks:eu-central-1:123456789012:cluster/prod"

var (
	// Nodes pull EKS's own images from an account of AWS.
	pulled = []string{"arn:aws:ecr:eu-central-1:123456789012:repository/app",
		"arn:aws:ecr:us-west-2:602401143452:repository/eks/pause"}
	ofCNI = []string{"arn:aws:ec2:eu-central-1:123456789012:network-interface/eni-1", "arn:aws:ec2:eu-central-1:123456789012:instance/i-1",
		"arn:aws:ec2:eu-central-1:210987654321:subnet/subnet-1", "arn:aws:ec2:eu-central-1:210987654321:security-group/sg-1"}
)

// The boundary allows what the managed policies of a node allow, except for what is withheld by name.
func TestTheBoundaryOfNodesCoversTheirManagedPolicies(t *testing.T) {
	allowed, asked := atMostOfNodes(t), map[string]bool{}
	for name, policy := range managedPolicies(t) {
		for _, p := range policy {
			for _, action := range p.actions {
				asked[action] = true
				resources := p.resources
				if slices.Equal(resources, anything) {
					resources = []string{"any"}
				}
				if n, is := narrowed[action]; is {
					if resources = n.reached; covers(allowed, action, n.beyond) {
						t.Errorf("%s: the boundary allows %s on %s", name, action, n.beyond)
					}
				}
				for _, resource := range resources {
					resource = strings.NewReplacer(":*:*:", ":eu-central-1:123456789012:", "/*", "/eni-1").Replace(resource)
					if is := covers(allowed, action, resource); is != (withheld[action] == "") {
						t.Errorf("%s: %s on %s: the boundary allows it: %v, withheld: %q", name, action, resource, is, withheld[action])
					}
				}
			}
		}
	}
	for action := range withheld {
		if !asked[action] {
			t.Errorf("withheld: %s is in no managed policy", action)
		}
	}
	for action := range narrowed {
		if !asked[action] {
			t.Errorf("narrowed: %s is in no managed policy", action)
		}
	}
}

// beyondManaged are the actions that the boundary allows although no managed policy of a node has them, and why.
var beyondManaged = map[string]string{
	"ec2:AssignIpv6Addresses":         "the CNI in an IPv6 cluster",
	"ec2:UnassignIpv6Addresses":       "other CNIs in an IPv6 cluster",
	"ecr:BatchCheckLayerAvailability": "AmazonEC2ContainerRegistryReadOnly, which node_policy_arns may name",
}

// With AdministratorAccess from node_policy_arns, a node may do what the boundary allows. It is a list of actions: none
// returns the user data of the account's instances or launch templates.
func TestNodesReadNoUserData(t *testing.T) {
	asked := map[string]bool{}
	for _, policy := range managedPolicies(t) {
		for _, p := range policy {
			for _, action := range p.actions {
				asked[action] = true
			}
		}
	}
	allowed := atMostOfNodes(t)
	for _, action := range []string{"ec2:DescribeInstanceAttribute", "ec2:DescribeLaunchTemplateVersions", "ec2:DescribeSpotFleetRequests",
		"ec2:GetLaunchTemplateData", "ec2:GetConsoleOutput", "ec2:GetPasswordData"} {
		if covers(allowed, action, "any") {
			t.Errorf("nodes may %s", action)
		}
	}
	for _, p := range allowed {
		for _, action := range p.actions {
			if !asked[action] && beyondManaged[action] == "" {
				t.Errorf("nodes may %s, which no policy of a node has", action)
			}
		}
	}
}
