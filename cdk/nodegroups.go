package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// replacePermissions returns the statements for replacing a SPOT node group by its ON_DEMAND copy. They allow only
// copies to be created, and do not allow copies to be deleted. A copy has the tags of its group, so its keys are not
// limited. The group that is deleted was created by others, so no
// tag of Sawhorse can identify it. EKS itself checks the role, the subnets and the launch template of a new group with
// its caller's permissions: EKS launches the instances, but rejects a caller that could not launch them from the
// template. The copy may get only the roles that the deployment names (nodeRoles); with any role that trusts EC2, the
// copy's nodes would have that role's permissions. IAM does not evaluate a role's tags for PassRole. Without such roles no
// group is replaced, and there are no statements.
func (s *sawhorse) replacePermissions() []awsiam.PolicyStatement {
	if len(s.NodeRoles) == 0 {
		return nil
	}
	aCopy := conditions{"Null": map[string]any{"aws:RequestTag/" + ownership.TagReplaces: "false"}}
	noCopy := conditions{"Null": map[string]any{"aws:ResourceTag/" + ownership.TagReplaces: "true"}}
	toEKS := conditions{"StringEquals": map[string]any{"iam:PassedToService": "eks.amazonaws.com"}}
	byTemplate := conditions{"ArnLike": map[string]any{"ec2:LaunchTemplate": arn("ec2", "launch-template/*")}}
	launched := conditions{"StringEquals": map[string]any{"ec2:CreateAction": "RunInstances"}}
	made := []string{arn("ec2", "instance/*"), arn("ec2", "volume/*"), arn("ec2", "network-interface/*")}
	used := append(shareable(), arn("ec2", "launch-template/*"), arn("ec2", "key-pair/*"), public("image/*"), public("snapshot/*"),
		arn("ec2", "placement-group/*"), arn("ec2", "capacity-reservation/*"), arn("license-manager", "license-configuration:*"))
	var roles []string
	for _, role := range s.NodeRoles {
		roles = append(roles, iamARN("role/"+role))
	}
	return []awsiam.PolicyStatement{
		allow([]string{"eks:CreateNodegroup"}, clusters(), aCopy, s.authorized()),
		allow([]string{"eks:TagResource"}, nodeGroups(), aCopy, asOurs()),
		allow([]string{"eks:DeleteNodegroup"}, nodeGroups(), noCopy),
		allow([]string{"iam:GetRole", "iam:ListAttachedRolePolicies"}, []string{iamARN("role/*")}),
		allow([]string{"ec2:DescribeSubnets", "ec2:DescribeLaunchTemplateVersions"}, anything),
		allow([]string{"ec2:RunInstances"}, append(used, made...), byTemplate),
		allow([]string{"ec2:CreateTags"}, made, launched),
		allow([]string{"iam:PassRole"}, roles, toEKS),
	}
}
