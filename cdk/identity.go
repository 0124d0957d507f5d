package main

import (
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

// infrastructurePermissions create roles that can never do more than the boundary allows, nowhere but below Sawhorse's path; and
// access entries for node roles, and for nobody else.
func (s *sawhorse) infrastructurePermissions() []awsiam.PolicyStatement {
	bounded := conditions{"StringEquals": map[string]any{"iam:PermissionsBoundary": s.boundary.ManagedPolicyArn()}}
	ofNodes := conditions{"ArnLike": map[string]any{"eks:principalArn": nodeRoles()}}
	nodesOnly := conditions{"StringEquals": map[string]any{"eks:accessEntryType": "EC2_LINUX"}}
	toPods := conditions{"StringEquals": map[string]any{"iam:PassedToService": "pods.eks.amazonaws.com"}}
	return []awsiam.PolicyStatement{
		allow([]string{"iam:CreateRole", "iam:PutRolePermissionsBoundary", "iam:PutRolePolicy", "iam:AttachRolePolicy"}, ourRoles(), bounded),
		allow([]string{"iam:DeleteRole", "iam:DeleteRolePolicy", "iam:DetachRolePolicy", "iam:GetRolePolicy", "iam:ListRolePolicies",
			"iam:ListAttachedRolePolicies", "iam:TagRole", "iam:UpdateAssumeRolePolicy"}, ourRoles()),
		allow([]string{"iam:GetRole"}, ourRoleNames()),
		allow([]string{"iam:ListInstanceProfiles"}, anything),
		allow([]string{"iam:RemoveRoleFromInstanceProfile", "iam:DeleteInstanceProfile"}, []string{iamARN("instance-profile/karpenter/*")}), // what Karpenter left
		allow([]string{"iam:PassRole"}, []string{iamARN("role" + names.IAMPath + names.ControllerRole("*"))}, toPods),
		// Who makes an access entry of nodes must be allowed to hand their role on (EKS user guide, "Create access entries").
		allow([]string{"iam:PassRole"}, nodeRoles(), toEC2()),
		allow([]string{"eks:CreatePodIdentityAssociation", "eks:ListPodIdentityAssociations"}, clusters()),
		allow([]string{"eks:CreateAccessEntry"}, clusters(), nodesOnly, ofNodes),
		allow([]string{"eks:DescribeAccessEntry", "eks:TagResource"}, accessEntries()),
		allow([]string{"eks:DeleteAccessEntry"}, accessEntries(), ofNodes),
		allow([]string{"eks:DescribePodIdentityAssociation", "eks:UpdatePodIdentityAssociation", "eks:DeletePodIdentityAssociation",
			"eks:TagResource"}, associations()),
	}
}

// addBoundary adds the permissions boundary of the roles that Sawhorse creates: what a Karpenter controller and its nodes
// may do at most. The roles' own policies grant less. It is kept when the stack goes, for the roles that still bear it, and
// lies outside Sawhorse's path, where the function infrastructure cannot rewrite it.
func (s *sawhorse) addBoundary() {
	s.boundary = awsiam.NewManagedPolicy(s.stack, jsii.String("Boundary"), &awsiam.ManagedPolicyProps{
		Description: jsii.String("The most that roles created by Sawhorse may do"),
	})
	s.boundary.AddStatements(controllerBoundary()...)
	s.boundary.AddStatements(s.nodeBoundary()...)
	s.boundary.ApplyRemovalPolicy(s.removal())
}

// controllerBoundary covers Karpenter 1.10's own policies (reference karpenter-1.10-cloudformation.yaml) for any cluster.
func controllerBoundary() []awsiam.PolicyStatement {
	owned := conditions{"StringLike": map[string]any{"aws:ResourceTag/karpenter.sh/nodepool": "*"}}
	profiles := []string{iamARN("instance-profile/*")}
	region := *awscdk.Aws_REGION()
	public := "arn:" + *awscdk.Aws_PARTITION() + ":"
	return []awsiam.PolicyStatement{
		allow([]string{"ec2:RunInstances", "ec2:CreateFleet", "ec2:CreateLaunchTemplate"}, []string{
			public + "ec2:" + region + "::image/*", public + "ec2:" + region + "::snapshot/*", public + "ec2:" + region + ":*:*/*"}),
		allow([]string{"ec2:CreateTags"}, []string{arn("ec2", "*/*")}),
		allow([]string{"ec2:TerminateInstances", "ec2:DeleteLaunchTemplate"}, []string{arn("ec2", "instance/*"), arn("ec2", "launch-template/*")}, owned),
		allow([]string{"iam:PassRole"}, nodeRoles(), toEC2()),
		allow([]string{"iam:CreateInstanceProfile", "iam:TagInstanceProfile", "iam:AddRoleToInstanceProfile",
			"iam:RemoveRoleFromInstanceProfile", "iam:DeleteInstanceProfile", "iam:GetInstanceProfile"}, profiles),
		allow([]string{"sqs:DeleteMessage", "sqs:GetQueueUrl", "sqs:ReceiveMessage"}, []string{arn("sqs", names.Queue("*"))}),
		allow([]string{"ssm:GetParameter"}, []string{public + "ssm:" + region + "::parameter/aws/service/*"}),
		allow([]string{"pricing:GetProducts", "iam:ListInstanceProfiles"}, anything),
	}
}

// nodeBoundary covers the managed policies of a node: AmazonEKSWorkerNodePolicy, AmazonEKS_CNI_Policy,
// AmazonEC2ContainerRegistryPullOnly and AmazonSSMManagedInstanceCore; the policy that the CNI wants in an IPv6 cluster; and what
// the deployment lets further policies do.
func (s *sawhorse) nodeBoundary() []awsiam.PolicyStatement {
	statements := []awsiam.PolicyStatement{
		allow([]string{"eks:DescribeCluster", "eks-auth:AssumeRoleForPodIdentity"}, clusters()),
		allow([]string{"ec2:Describe*"}, anything),
		allow([]string{"ec2:AssignPrivateIpAddresses", "ec2:AttachNetworkInterface", "ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface",
			"ec2:DetachNetworkInterface", "ec2:ModifyNetworkInterfaceAttribute", "ec2:UnassignPrivateIpAddresses",
			"ec2:AssignIpv6Addresses", "ec2:UnassignIpv6Addresses"}, append(shareable(), arn("ec2", "*/*"))),
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
