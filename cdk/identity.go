package main

import (
	"slices"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/jsii-runtime-go"

	"github.com/sawhorse-io/sawhorse/internal/names"
)

// ourRoles are what Sawhorse itself creates in IAM, with inline policies: all of it below its path.
func ourRoles() []string { return []string{iamARN("role" + names.IAMPath + "*")} }

// nodeRoles are the roles of the nodes that Karpenter launches.
func nodeRoles() []string { return []string{iamARN("role" + names.IAMPath + names.NodeRole("*"))} }

// toEC2 is for handing a role to instances; in China EC2 has a name of its own.
func toEC2() conditions {
	return conditions{"StringEquals": map[string]any{"iam:PassedToService": []string{"ec2.amazonaws.com", "ec2.amazonaws.com.cn"}}}
}

// controllerRoles are the roles of Karpenter's controllers.
func controllerRoles() []string {
	return []string{iamARN("role" + names.IAMPath + names.ControllerRole("*"))}
}

// bearing is for calls about roles that bear the boundary, before or by the call.
func bearing(boundary awsiam.ManagedPolicy) conditions {
	return conditions{"StringEquals": map[string]any{"iam:PermissionsBoundary": boundary.ManagedPolicyArn()}}
}

// infrastructurePermissions create roles that can never do more than their boundary allows, nowhere but below Sawhorse's path; and
// access entries for node roles, and for nobody else.
func (s *sawhorse) infrastructurePermissions() []awsiam.PolicyStatement {
	ofNodes := conditions{"ArnLike": map[string]any{"eks:principalArn": nodeRoles()}}
	nodesOnly := conditions{"StringEquals": map[string]any{"eks:accessEntryType": "EC2_LINUX"}}
	ofRacks := conditions{"StringLike": map[string]any{"aws:ResourceTag/" + names.TagRack: "*"}}
	toPods := conditions{"StringEquals": map[string]any{"iam:PassedToService": "pods.eks.amazonaws.com"}}
	return []awsiam.PolicyStatement{
		allow([]string{"iam:CreateRole", "iam:PutRolePermissionsBoundary", "iam:PutRolePolicy"}, controllerRoles(), bearing(s.controllerBoundary)),
		allow([]string{"iam:CreateRole", "iam:PutRolePermissionsBoundary", "iam:AttachRolePolicy"}, nodeRoles(), bearing(s.nodeBoundary)),
		allow([]string{"iam:DeleteRole", "iam:DeleteRolePolicy", "iam:DetachRolePolicy", "iam:GetRolePolicy", "iam:ListRolePolicies",
			"iam:ListAttachedRolePolicies", "iam:TagRole", "iam:UpdateAssumeRolePolicy"}, ourRoles()),
		allow([]string{"iam:GetRole"}, ourRoleNames()),
		allow([]string{"iam:ListInstanceProfiles"}, anything),
		allow([]string{"iam:RemoveRoleFromInstanceProfile", "iam:DeleteInstanceProfile"}, []string{iamARN("instance-profile/karpenter/*")}), // what Karpenter left
		allow([]string{"iam:PassRole"}, controllerRoles(), toPods),
		// Who makes an access entry of nodes must be allowed to hand their role on (EKS user guide, "Create access entries").
		allow([]string{"iam:PassRole"}, nodeRoles(), toEC2()),
		allow([]string{"eks:ListPodIdentityAssociations"}, clusters()),
		allow([]string{"eks:CreatePodIdentityAssociation"}, clusters(), s.letIn()),
		allow([]string{"eks:CreateAccessEntry"}, clusters(), nodesOnly, ofNodes, s.letIn()),
		allow([]string{"eks:DescribeAccessEntry", "eks:TagResource"}, accessEntries()),
		allow([]string{"eks:DeleteAccessEntry"}, accessEntries(), ofNodes),
		allow([]string{"eks:DescribePodIdentityAssociation", "eks:TagResource"}, associations()),
		allow([]string{"eks:UpdatePodIdentityAssociation", "eks:DeletePodIdentityAssociation"}, associations(), ofRacks),
	}
}

// addBoundaries adds the permissions boundaries of the roles that Sawhorse creates: what a Karpenter controller may do at most, and
// what its nodes may. The roles' own policies grant less, and a node's role has whatever policies its rack names. Boundaries are kept
// when the stack goes, for the roles that still bear them, and lie outside Sawhorse's path, where the function infrastructure cannot
// rewrite them.
func (s *sawhorse) addBoundaries() {
	boundary := func(id, of string, statements []awsiam.PolicyStatement) awsiam.ManagedPolicy {
		policy := awsiam.NewManagedPolicy(s.stack, jsii.String(id), &awsiam.ManagedPolicyProps{
			Description: jsii.String("The most that the role of " + of + " may do"),
			Statements:  &statements,
		})
		policy.ApplyRemovalPolicy(s.removal())
		return policy
	}
	s.controllerBoundary = boundary("ControllerBoundary", "a Karpenter controller", s.controllerAtMost())
	s.nodeBoundary = boundary("NodeBoundary", "Karpenter's nodes", s.nodesAtMost())
}

// labelNodeClass is Karpenter's own tag of the instance profiles that it makes.
const labelNodeClass = "karpenter.k8s.aws/ec2nodeclass"

// ownRack stands in an ARN for the rack that the calling role is tagged with.
const ownRack = "${aws:PrincipalTag/" + names.TagRack + "}"

// controllerAtMost covers Karpenter 1.10's own policies (reference karpenter-1.10-cloudformation.yaml) for any cluster, under the
// conditions that they have for one: what is launched and tagged says that it is a pool's, and so is what is ended. Node role and
// queue are those of the role's own rack, whatever cluster its policies name.
func (s *sawhorse) controllerAtMost() []awsiam.PolicyStatement {
	const pool, cluster = names.LabelPool, names.TagEKSCluster
	launched := conditions{"StringLike": map[string]any{"aws:RequestTag/" + pool: "*", "aws:RequestTag/" + cluster: "*"}}
	launching := conditions{"StringEquals": map[string]any{"ec2:CreateAction": []string{"RunInstances", "CreateFleet", "CreateLaunchTemplate"}}}
	ofPool := conditions{"StringLike": map[string]any{"aws:ResourceTag/" + pool: "*"}}
	named := conditions{"ForAllValues:StringEquals": map[string]any{"aws:TagKeys": []string{cluster, "karpenter.sh/nodeclaim", names.TagName}}}
	// A snapshot that a launch names becomes a disk of the node: those of the account stay out of reach. EC2 does not judge the snapshots
	// of an image, only those that block device mappings name (terraform-aws-eks issue 2648).
	ofAmazon := conditions{"StringEquals": map[string]any{"ec2:Owner": "amazon"}}
	asked := conditions{"StringLike": map[string]any{"aws:RequestTag/" + labelNodeClass: "*"}}
	ofClass := conditions{"StringLike": map[string]any{"aws:ResourceTag/" + labelNodeClass: "*"}}

	profiles := []string{iamARN("instance-profile/*")}
	public := "arn:" + *awscdk.Aws_PARTITION() + ":ec2:" + *awscdk.Aws_REGION() + "::"
	launch := []string{"ec2:RunInstances", "ec2:CreateFleet"}
	var made []string
	for _, kind := range []string{"fleet", "instance", "volume", "network-interface", "launch-template", "spot-instances-request"} {
		made = append(made, arn("ec2", kind+"/*"))
	}
	statements := []awsiam.PolicyStatement{
		allow(launch, append(shareable(), public+"image/*", "arn:"+*awscdk.Aws_PARTITION()+":ec2:"+*awscdk.Aws_REGION()+":*:capacity-reservation/*")),
		allow(launch, []string{public + "snapshot/*"}, ofAmazon),
		allow(launch, []string{arn("ec2", "launch-template/*")}, ofPool),
		allow(append(launch, "ec2:CreateLaunchTemplate"), made, launched),
		allow([]string{"ec2:CreateTags"}, made, launched, launching),
		allow([]string{"ec2:CreateTags"}, []string{arn("ec2", "instance/*")}, ofPool, named),
		allow([]string{"ec2:TerminateInstances", "ec2:DeleteLaunchTemplate"}, []string{arn("ec2", "instance/*"), arn("ec2", "launch-template/*")}, ofPool),
		allow([]string{"iam:PassRole"}, []string{iamARN("role" + names.IAMPath + names.NodeRole(ownRack))}, toEC2()),
		allow([]string{"iam:CreateInstanceProfile"}, profiles, asked),
		allow([]string{"iam:TagInstanceProfile"}, profiles, asked, ofClass),
		allow([]string{"iam:AddRoleToInstanceProfile", "iam:RemoveRoleFromInstanceProfile", "iam:DeleteInstanceProfile"}, profiles, ofClass),
		allow([]string{"iam:GetInstanceProfile"}, profiles),
		allow([]string{"sqs:DeleteMessage", "sqs:GetQueueUrl", "sqs:ReceiveMessage"}, []string{arn("sqs", names.Queue(ownRack))}),
		allow([]string{"ssm:GetParameter"}, []string{publicParameters()}),
		allow([]string{"eks:DescribeCluster"}, clusters()),
		allow([]string{"ec2:Describe*", "pricing:GetProducts", "iam:ListInstanceProfiles"}, anything),
	}
	// EC2 uses the keys of nodes' volumes in the name of the role that launches them.
	if keys := slices.DeleteFunc(slices.Clone(s.NodeActions), func(action string) bool { return !strings.HasPrefix(action, "kms:") }); len(keys) > 0 {
		statements = append(statements, allow(keys, anything))
	}
	return statements
}

// publicParameters are AWS's own, for the images of nodes.
func publicParameters() string {
	return "arn:" + *awscdk.Aws_PARTITION() + ":ssm:" + *awscdk.Aws_REGION() + "::parameter/aws/service/*"
}

// nodesAtMost covers the managed policies of a node: AmazonEKSWorkerNodePolicy, AmazonEKS_CNI_Policy,
// AmazonEC2ContainerRegistryPullOnly and AmazonSSMManagedInstanceCore; the policy that the CNI wants in an IPv6 cluster; and what
// the deployment lets further policies do.
func (s *sawhorse) nodesAtMost() []awsiam.PolicyStatement {
	statements := []awsiam.PolicyStatement{
		allow([]string{"eks:DescribeCluster", "eks-auth:AssumeRoleForPodIdentity"}, clusters()),
		allow([]string{"ec2:Describe*"}, anything),
		allow([]string{"ec2:AssignPrivateIpAddresses", "ec2:AttachNetworkInterface", "ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface",
			"ec2:DetachNetworkInterface", "ec2:ModifyNetworkInterfaceAttribute", "ec2:UnassignPrivateIpAddresses",
			"ec2:AssignIpv6Addresses", "ec2:UnassignIpv6Addresses"}, append(shareable(), arn("ec2", "network-interface/*"), arn("ec2", "instance/*"))),
		allow([]string{"ec2:CreateTags"}, []string{arn("ec2", "network-interface/*")}),
		allow([]string{"ssm:GetParameter"}, []string{publicParameters()}),
		allow([]string{"ecr:GetAuthorizationToken"}, anything),
		allow([]string{"ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer", "ecr:BatchImportUpstreamImage"},
			[]string{"arn:" + *awscdk.Aws_PARTITION() + ":ecr:*:*:repository/*"}),
		allow([]string{"ssm:DescribeAssociation", "ssm:DescribeDocument", "ssm:GetDeployablePatchSnapshotForInstance", "ssm:GetDocument",
			"ssm:GetManifest", "ssm:ListAssociations", "ssm:ListInstanceAssociations", "ssm:PutComplianceItems",
			"ssm:PutConfigurePackageResult", "ssm:PutInventory", "ssm:UpdateAssociationStatus", "ssm:UpdateInstanceAssociationStatus",
			"ssm:UpdateInstanceInformation", "ssmmessages:CreateControlChannel", "ssmmessages:CreateDataChannel",
			"ssmmessages:OpenControlChannel", "ssmmessages:OpenDataChannel", "ec2messages:AcknowledgeMessage", "ec2messages:DeleteMessage",
			"ec2messages:FailMessage", "ec2messages:GetEndpoint", "ec2messages:GetMessages", "ec2messages:SendReply"}, anything),
	}
	if len(s.NodeActions) > 0 {
		statements = append(statements, allow(s.NodeActions, anything))
	}
	return statements
}
