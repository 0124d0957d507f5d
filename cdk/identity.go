package main

import (
	"cmp"
	"slices"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// ourRoles returns the roles, with inline policies, that Sawhorse itself creates: everything below its path.
func (s *sawhorse) ourRoles() []string { return []string{s.roleARN("*")} }

// roleARN returns the ARN of a role that Sawhorse creates for a rack.
func (s *sawhorse) roleARN(name string) string {
	return iamARN("role" + ownership.RacksPath(s.RolePath) + name)
}

// nodeRoles returns the roles of the nodes that Karpenter launches.
func (s *sawhorse) nodeRoles() []string {
	return []string{s.roleARN(ownership.NodeRole("*")), s.roleARN(ownership.BuildNodeRole("*"))}
}

// toEC2 is the condition for passing a role to instances. In China EC2 has another service name.
func toEC2() conditions {
	return conditions{"StringEquals": map[string]any{"iam:PassedToService": []string{"ec2.amazonaws.com", "ec2.amazonaws.com.cn"}}}
}

// controllerRoles returns the roles of Karpenter's controllers.
func (s *sawhorse) controllerRoles() []string {
	return []string{s.roleARN(ownership.ControllerRole("*"))}
}

// bearing is the condition for calls about roles that have the boundary, or get it by the call.
func bearing(boundary *string) conditions {
	return conditions{"StringEquals": map[string]any{"iam:PermissionsBoundary": boundary}}
}

// infrastructurePermissions returns the statements for creating roles, access entries and what belongs to them. Roles
// can be created only below Sawhorse's path and only with a boundary, which limits what the roles can do. Access
// entries can be created only for node roles.
func (s *sawhorse) infrastructurePermissions() []awsiam.PolicyStatement {
	ofNodes := conditions{"ArnLike": map[string]any{"eks:principalArn": s.nodeRoles()}}
	nodesOnly := conditions{"StringEquals": map[string]any{"eks:accessEntryType": "EC2_LINUX"}}
	ofRacks := conditions{"StringLike": map[string]any{"aws:ResourceTag/" + ownership.TagRack: "*"}}
	toPods := conditions{"StringEquals": map[string]any{"iam:PassedToService": "pods.eks.amazonaws.com"}}
	return []awsiam.PolicyStatement{
		allow([]string{"iam:CreateRole", "iam:PutRolePermissionsBoundary", "iam:PutRolePolicy"}, s.controllerRoles(),
			bearing(s.controllerBoundary)),
		allow([]string{"iam:CreateRole", "iam:PutRolePermissionsBoundary", "iam:AttachRolePolicy", "iam:PutRolePolicy"}, s.nodeRoles(),
			bearing(s.nodeBoundary)),
		allow([]string{"iam:DeleteRole", "iam:DeleteRolePolicy", "iam:DetachRolePolicy", "iam:GetRolePolicy", "iam:ListRolePolicies",
			"iam:ListAttachedRolePolicies", "iam:TagRole", "iam:UpdateAssumeRolePolicy"}, s.ourRoles()),
		allow([]string{"iam:GetRole"}, ourRoleNames()),
		allow([]string{"iam:ListInstanceProfiles"}, anything),
		// For the profiles that Karpenter has left behind.
		allow([]string{"iam:RemoveRoleFromInstanceProfile", "iam:DeleteInstanceProfile"}, []string{iamARN("instance-profile/karpenter/*")}),
		allow([]string{"iam:PassRole"}, s.controllerRoles(), toPods),
		// The creator of an access entry for nodes must be allowed to pass their role (EKS user
		// guide, "Create access entries").
		allow([]string{"iam:PassRole"}, s.nodeRoles(), toEC2()),
		allow([]string{"eks:ListPodIdentityAssociations"}, clusters()),
		allow([]string{"eks:CreatePodIdentityAssociation"}, clusters(), s.authorized()),
		allow([]string{"eks:CreateAccessEntry"}, clusters(), nodesOnly, ofNodes, s.authorized()),
		allow([]string{"eks:DescribeAccessEntry"}, accessEntries()),
		allow([]string{"eks:DeleteAccessEntry"}, accessEntries(), ofNodes),
		allow([]string{"eks:DescribePodIdentityAssociation"}, associations()),
		allow([]string{"eks:TagResource"}, append(accessEntries(), associations()...), asOurs(), unreserved()),
		allow([]string{"eks:UpdatePodIdentityAssociation", "eks:DeletePodIdentityAssociation"}, associations(), ofRacks),
	}
}

// asOurs is the condition for tagging a resource of EKS: the call sets both ownership tags. Whatever Sawhorse tags is then
// recognized as Sawhorse's. EKS checks eks:TagResource in the calls that create a resource with tags too, and has no
// condition key that tells the two apart, so the condition cannot be the resource's own tags: a new one has none.
func asOurs() conditions {
	return conditions{"StringLike": map[string]any{
		"aws:RequestTag/" + ownership.TagRack: "*", "aws:RequestTag/" + ownership.TagCluster: arn("eks", "cluster/*")}}
}

// unreserved is the condition for calls that set a rack's tags, whose keys are the user's: none of them may be a key by
// which others recognize a resource, or another key of Sawhorse's.
func unreserved() conditions {
	keys := append(slices.Clone(ownership.ReservedTags), ownership.TagQueue, ownership.TagReplaces, ownership.TagRole)
	for _, prefix := range ownership.ReservedTagPrefixes {
		keys = append(keys, prefix+"*")
	}
	return conditions{"ForAllValues:StringNotLike": map[string]any{"aws:TagKeys": keys}}
}

// addBoundaries adds the permissions boundaries of the roles that Sawhorse creates: the maximum for a Karpenter
// controller, and for its nodes. The roles' own policies grant less. A node's role also has the policies that its rack
// names. Boundaries are retained when the stack is deleted, for the roles that still have them. They are outside
// Sawhorse's path, so the function infrastructure cannot change them. A role has one boundary, so boundaryArn takes their
// place; they are created all the same, because they say what it must contain.
func (s *sawhorse) addBoundaries() {
	boundary := func(id, of string, statements []awsiam.PolicyStatement) *string {
		policy := awsiam.NewManagedPolicy(s.stack, jsii.String(id), &awsiam.ManagedPolicyProps{
			Description: jsii.String("The most that the role of " + of + " may do"),
			Statements:  &statements,
		})
		policy.ApplyRemovalPolicy(s.removal())
		return jsii.String(cmp.Or(s.BoundaryARN, *policy.ManagedPolicyArn()))
	}
	s.controllerBoundary = boundary("ControllerBoundary", "a Karpenter controller", s.controllerAtMost())
	s.nodeBoundary = boundary("NodeBoundary", "Karpenter's nodes", s.nodesAtMost())
}

// placeRoles gives the stack's own roles the path and the boundary that the organization demands of every role. It comes
// after all else, because some constructs make roles of their own.
func (s *sawhorse) placeRoles() {
	for _, construct := range *s.stack.Node().FindAll(constructs.ConstructOrder_PREORDER) {
		if !*awsiam.CfnRole_IsCfnElement(construct) {
			continue
		}
		role, ok := construct.(awsiam.CfnRole)
		if !ok {
			continue
		}
		if s.RolePath != "" {
			role.SetPath(&s.RolePath)
		}
		if s.BoundaryARN != "" {
			role.SetPermissionsBoundary(&s.BoundaryARN)
		}
	}
}

// labelNodeClass is Karpenter's tag on the instance profiles that it creates.
const labelNodeClass = "karpenter.k8s.aws/ec2nodeclass"

// ownRack is a policy variable. In an ARN it stands for the rack in the calling role's tag.
const ownRack = "${aws:PrincipalTag/" + ownership.TagRack + "}"

// controllerAtMost returns the boundary of Karpenter's controllers. It covers the policies of all versions in the
// catalogue, which are those of Karpenter's CloudFormation template, for any cluster, with the same conditions:
// resources that are launched, tagged or terminated must carry a pool's tags. The node role and the queue must be those
// of the role's own rack, even if its policies name another cluster.
func (s *sawhorse) controllerAtMost() []awsiam.PolicyStatement {
	const pool, cluster = ownership.LabelPool, ownership.TagEKSCluster
	launched := conditions{"StringLike": map[string]any{"aws:RequestTag/" + pool: "*", "aws:RequestTag/" + cluster: "*"}}
	launching := conditions{"StringEquals": map[string]any{
		"ec2:CreateAction": []string{"RunInstances", "CreateFleet", "CreateLaunchTemplate"}}}
	ofPool := conditions{"StringLike": map[string]any{"aws:ResourceTag/" + pool: "*"}}
	named := conditions{"ForAllValues:StringEquals": map[string]any{
		"aws:TagKeys": []string{cluster, "karpenter.sh/nodeclaim", ownership.TagName}}}
	// A snapshot that a launch names becomes a disk of the node, so the account's own snapshots are excluded. EC2 does
	// not authorize the snapshots of an image, only those in block device mappings (terraform-aws-eks issue 2648).
	ofAmazon := conditions{"StringEquals": map[string]any{"ec2:Owner": "amazon"}}
	// The account's own images are mostly backups of servers, which would start with a rack's user data. EC2's owner of an
	// image is amazon, aws-marketplace or an account (Service Authorization Reference, Amazon EC2). The tags of an image
	// are those that an account itself has put on it, so the owner is compared too.
	ofOwners := conditions{"StringEquals": map[string]any{"ec2:Owner": append([]string{"amazon"}, s.ImageOwners...)}}
	ofNodes := conditions{"StringEquals": map[string]any{"ec2:Owner": *awscdk.Aws_ACCOUNT_ID()},
		"StringLike": map[string]any{"aws:ResourceTag/" + ownership.TagNodes: "*"}}
	asked := conditions{"StringLike": map[string]any{"aws:RequestTag/" + labelNodeClass: "*"}}
	ofClass := conditions{"StringLike": map[string]any{"aws:ResourceTag/" + labelNodeClass: "*"}}

	profiles := []string{iamARN("instance-profile/*")}
	launch := []string{"ec2:RunInstances", "ec2:CreateFleet"}
	var made []string
	for _, kind := range []string{"fleet", "instance", "volume", "network-interface", "launch-template", "spot-instances-request"} {
		made = append(made, arn("ec2", kind+"/*"))
	}
	statements := []awsiam.PolicyStatement{
		allow(launch, append(shareable(),
			arnOf("ec2", region(), "*", "capacity-reservation/*"), arnOf("ec2", region(), "*", "placement-group/*"))),
		allow(launch, []string{public("image/*")}, ofOwners),
		allow(launch, []string{public("image/*")}, ofNodes),
		allow(launch, []string{public("snapshot/*")}, ofAmazon),
		allow(launch, []string{arn("ec2", "launch-template/*")}, ofPool),
		allow(append(launch, "ec2:CreateLaunchTemplate"), made, launched),
		allow([]string{"ec2:CreateTags"}, made, launched, launching),
		allow([]string{"ec2:CreateTags"}, []string{arn("ec2", "instance/*")}, ofPool, named),
		allow([]string{"ec2:TerminateInstances", "ec2:DeleteLaunchTemplate"},
			[]string{arn("ec2", "instance/*"), arn("ec2", "launch-template/*")}, ofPool),
		allow([]string{"iam:PassRole"}, []string{s.roleARN(ownership.NodeRole(ownRack)), s.roleARN(ownership.BuildNodeRole(ownRack))}, toEC2()),
		allow([]string{"iam:CreateInstanceProfile"}, profiles, asked),
		allow([]string{"iam:TagInstanceProfile"}, profiles, asked, ofClass),
		allow([]string{"iam:AddRoleToInstanceProfile", "iam:RemoveRoleFromInstanceProfile", "iam:DeleteInstanceProfile"}, profiles, ofClass),
		allow([]string{"iam:GetInstanceProfile"}, profiles),
		allow([]string{"sqs:DeleteMessage", "sqs:GetQueueUrl", "sqs:ReceiveMessage"}, []string{arn("sqs", ownership.Queue(ownRack))}),
		allow([]string{"ssm:GetParameter"}, []string{publicParameters()}),
		allow([]string{"eks:DescribeCluster"}, clusters()),
		allow(readable(), anything),
	}
	// EC2 uses the KMS keys of nodes' volumes on behalf of the role that launches the nodes.
	other := func(action string) bool { return !strings.HasPrefix(action, "kms:") }
	if keys := slices.DeleteFunc(slices.Clone(s.NodeActions), other); len(keys) > 0 {
		statements = append(statements, allow(keys, anything))
	}
	return statements
}

// publicParameters returns the ARN of AWS's own parameters, which have the images of nodes.
func publicParameters() string {
	return arnOf("ssm", region(), "", "parameter/aws/service/*")
}

// nodesAtMost returns the boundary of nodes. It covers the managed policies of a node: AmazonEKSWorkerNodePolicy,
// AmazonEKS_CNI_Policy, AmazonEC2ContainerRegistryPullOnly and AmazonSSMManagedInstanceCore; the policy that the CNI
// needs in an IPv6 cluster; and what the deployment allows further policies to do. EC2's descriptions are listed, because
// some of the others contain secrets: DescribeInstanceAttribute and DescribeLaunchTemplateVersions return user data.
func (s *sawhorse) nodesAtMost() []awsiam.PolicyStatement {
	statements := []awsiam.PolicyStatement{
		allow([]string{"eks:DescribeCluster", "eks-auth:AssumeRoleForPodIdentity"}, clusters()),
		allow([]string{"ec2:DescribeInstanceTypes", "ec2:DescribeInstances", "ec2:DescribeNetworkInterfaces", "ec2:DescribeRouteTables",
			"ec2:DescribeSecurityGroups", "ec2:DescribeSubnets", "ec2:DescribeTags", "ec2:DescribeVolumes",
			"ec2:DescribeVolumesModifications", "ec2:DescribeVpcs"}, anything),
		allow([]string{"ec2:AssignPrivateIpAddresses", "ec2:AttachNetworkInterface", "ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface",
			"ec2:DetachNetworkInterface", "ec2:ModifyNetworkInterfaceAttribute", "ec2:UnassignPrivateIpAddresses",
			"ec2:AssignIpv6Addresses", "ec2:UnassignIpv6Addresses"},
			append(shareable(), arn("ec2", "network-interface/*"), arn("ec2", "instance/*"))),
		allow([]string{"ec2:CreateTags"}, []string{arn("ec2", "network-interface/*")}),
		allow([]string{"ssm:GetParameter"}, []string{publicParameters()}),
		allow([]string{"ecr:GetAuthorizationToken"}, anything),
		allow([]string{"ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer", "ecr:BatchImportUpstreamImage"},
			[]string{arnOf("ecr", "*", "*", "repository/*")}),
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
