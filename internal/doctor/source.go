package doctor

import (
	"fmt"
	"strings"
)

// Source is something that an observation reads. Its text has the AWS actions that the read needs or, after the word
// kubernetes, the kind of the objects in the cluster.
type Source string

// The sources.
const (
	Parameters    Source = "ssm:GetParametersByPath"
	AllParameters Source = "ssm:DescribeParameters"
	Hold          Source = "ssm:GetParameter"
	TheCluster    Source = "eks:DescribeCluster"
	Facts         Source = "eks:ListNodegroups, eks:DescribeNodegroup, eks:DescribeAddon, ec2:DescribeLaunchTemplateVersions, " +
		"ec2:DescribeSubnets, ec2:DescribeSecurityGroups, ec2:DescribeInstanceTypes, " +
		"ec2:DescribeInstanceTypeOfferings, ec2:DescribeImages, " +
		"ec2:DescribeCapacityReservations, ec2:DescribePlacementGroups, ssm:GetParameter, " +
		"ssm:GetParameters, iam:GetRole, iam:GetOpenIDConnectProvider, iam:ListAttachedRolePolicies, sqs:GetQueueUrl, sqs:ListQueueTags, " +
		"events:ListTagsForResource"
	AddOns        Source = "eks:ListAddons, eks:DescribeAddon"
	AddOnVersions Source = "eks:DescribeAddonVersions"
	Associations  Source = "eks:ListPodIdentityAssociations"
	Addresses     Source = "ec2:DescribeSubnets"
	Endpoints     Source = "ec2:DescribeVpcEndpoints"
	Instances     Source = "ec2:DescribeInstances"
	Keys          Source = "ec2:GetEbsDefaultKmsKeyId, kms:DescribeKey, kms:GetKeyPolicy, kms:ListGrants, iam:GetRole, " +
		"iam:SimulatePrincipalPolicy"
	Quotas         Source = "servicequotas:GetServiceQuota, servicequotas:GetAWSDefaultServiceQuota"
	AccountSummary Source = "iam:GetAccountSummary"
	Rules          Source = "events:ListRules"
	Organization   Source = "iam:GetRole, iam:SimulatePrincipalPolicy"
	Nodes          Source = kubernetes + "nodes"
	Pods           Source = kubernetes + "pods"
	Deployments    Source = kubernetes + "deployments"
	StatefulSets   Source = kubernetes + "statefulsets"
	DaemonSets     Source = kubernetes + "daemonsets"
	CNI            Source = kubernetes + "daemonsets, serviceaccounts, pods"
	Budgets        Source = kubernetes + "poddisruptionbudgets"
	NodePools      Source = kubernetes + "nodepools, ec2nodeclasses"
	NodeClaims     Source = kubernetes + "nodeclaims, events"
	PodEvents      Source = kubernetes + "events"
)

const kubernetes = "kubernetes "

// viewPolicy is the access policy that may read everything in a cluster, including nodes, and change nothing.
const viewPolicy = "cluster-access-policy/AmazonEKSAdminViewPolicy"

// ConfigMap is the access mode of a cluster without access entries: EKS refuses to create one.
const ConfigMap = "CONFIG_MAP"

// remedy returns what to do to make a source readable, and the commands for it.
func (s Source) remedy(o *Observed) (string, []string) {
	// If the cluster was not observed, neither was anything in it.
	cluster := o.Facts.Cluster
	if cluster == nil && o.Unseen[s] == o.Unseen[TheCluster] {
		if o.Missing || o.Config.HasRefused("cluster_name") {
			return "See the check parameters.", nil
		}
		s = TheCluster
	}
	switch {
	case !strings.HasPrefix(string(s), kubernetes):
		return fmt.Sprintf("If the caller is not allowed to look, allow it %s, and run this again.", s), nil
	case strings.HasSuffix(o.Caller, ":root"):
		return "Run this as an IAM role or user: no access entry can name the account's root.", nil
	case cluster.AuthMode == ConfigMap:
		return "If the API server refuses the caller, run this again after karpenter_auth_mode=true, which brings access entries; " +
			"to look before that, " +
			"give the caller a place in the ConfigMap aws-auth, with a group that may read everything. " +
			"If the API server cannot be reached, run this from a network that reaches it.", nil
	case o.Caller == "":
		return "Give the caller an access entry that may read the cluster, or a network path to its API server, and run this again.", nil
	}
	entry := fmt.Sprintf("--cluster-name %s --principal-arn %s", cluster.Name, o.Caller)
	return "If the API server refuses the caller, give it an access entry that may read everything; " +
			"if it cannot be reached, run this from a network that reaches it.", []string{
			"aws eks create-access-entry " + entry,
			fmt.Sprintf("aws eks associate-access-policy %s --access-scope type=cluster --policy-arn arn:%s:eks::aws:%s", entry,
				cluster.Partition, viewPolicy),
		}
}
