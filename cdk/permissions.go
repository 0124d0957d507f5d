package main

import (
	"maps"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/jsii-runtime-go"

	"github.com/sawhorse-io/sawhorse/internal/names"
)

// conditions is a policy statement's Condition: operator -> key -> value or values.
type conditions = map[string]map[string]any

// allow is a statement that allows the actions on the resources, under the conditions, if any.
func allow(actions, resources []string, when ...conditions) awsiam.PolicyStatement {
	return statement(awsiam.Effect_ALLOW, actions, resources, when)
}

func deny(actions, resources []string) awsiam.PolicyStatement {
	return statement(awsiam.Effect_DENY, actions, resources, nil)
}

func statement(effect awsiam.Effect, actions, resources []string, when []conditions) awsiam.PolicyStatement {
	all := map[string]any{}
	for _, c := range when {
		for operator, keys := range c {
			merged, _ := all[operator].(map[string]any)
			if merged == nil {
				merged = map[string]any{}
				all[operator] = merged
			}
			maps.Copy(merged, keys)
		}
	}
	props := &awsiam.PolicyStatementProps{Effect: effect, Actions: jsii.Strings(actions...), Resources: jsii.Strings(resources...)}
	if len(all) > 0 {
		props.Conditions = &all
	}
	return awsiam.NewPolicyStatement(props)
}

// anything is for actions that know no resource; the test of this package lists them with the reason.
var anything = []string{"*"}

func clusters() []string      { return []string{arn("eks", "cluster/*")} }
func nodeGroups() []string    { return []string{arn("eks", "nodegroup/*")} }
func accessEntries() []string { return []string{arn("eks", "access-entry/*")} }
func associations() []string  { return []string{arn("eks", "podidentityassociation/*")} }

// permissions is all that a function may do, apart from writing its log and traces.
func (s *sawhorse) permissions(f function) []awsiam.PolicyStatement {
	statements := s.tableAccess(f)
	if s.inVPC(f) {
		statements = append(statements, allow([]string{"ec2:CreateNetworkInterface", "ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets",
			"ec2:DeleteNetworkInterface", "ec2:AssignPrivateIpAddresses", "ec2:UnassignPrivateIpAddresses"}, anything))
	}
	own := map[string]func() []awsiam.PolicyStatement{
		"validate":       s.validatePermissions,
		"change":         s.changePermissions,
		"access":         s.accessPermissions,
		"controller":     controllerPermissions,
		"network":        networkPermissions,
		"nodegroups":     s.nodegroupsPermissions,
		"nodepools":      nodepoolsPermissions,
		"autoscaler":     autoscalerPermissions,
		"infrastructure": s.infrastructurePermissions,
		"queue":          queuePermissions,
		"report":         s.reportPermissions,
		"resync":         s.resyncPermissions,
	}
	if f.cluster {
		statements = append(statements, allow([]string{"eks:DescribeCluster"}, clusters())) // where the API server is
	}
	if more := own[f.name]; more != nil {
		statements = append(statements, more()...)
	}
	return statements
}

// tableAccess lets a function of a pass renew the lease, read the plan and note what it did, in what is kept of racks; few need more.
func (s *sawhorse) tableAccess(f function) []awsiam.PolicyStatement {
	const racks, clusters = names.PartitionRack + "*", names.PartitionCluster + "*"
	actions, partitions := []string{"dynamodb:UpdateItem", "dynamodb:GetItem", "dynamodb:PutItem"}, []string{racks}
	table := []string{*s.table.TableArn()}
	var more []awsiam.PolicyStatement
	switch f.name {
	case "validate":
		actions = append(actions, "dynamodb:Query") // the change requests
		partitions = append(partitions, clusters, names.PartitionList)
	case "change":
		actions = append(actions, "dynamodb:Query") // the change requests
	case "resync":
		actions = append(actions, "dynamodb:Query") // the list of racks
		partitions = append(partitions, names.PartitionList)
		more = append(more, allow([]string{"dynamodb:Scan"}, table)) // once, the racks that an earlier version left unlisted
	case "report":
		actions = append(actions, "dynamodb:Query", "dynamodb:DeleteItem") // the records of a run; all of a rack that ends
		partitions = append(partitions, clusters, names.PartitionList)
	case "network", "nodegroups", "controller", "nodepools", "autoscaler":
		actions = append(actions, "dynamodb:DeleteItem") // a baseline that has been restored
	}
	return append(more, allow(actions, table, ofPartitions(partitions...)))
}

// ofPartitions is for calls about items of the table with these partition keys. ForAllValues alone would also let a call through that
// names no key.
func ofPartitions(keys ...string) conditions {
	return conditions{
		"ForAllValues:StringLike": map[string]any{"dynamodb:LeadingKeys": keys},
		"Null":                    map[string]any{"dynamodb:LeadingKeys": "false"},
	}
}

// parameter is the ARN of a parameter, or of several with * in its name.
func parameter(name string) string { return arn("ssm", "parameter"+name) }

// putEvents lets a function send Sawhorse's events, on its own bus and under its own name only.
func (s *sawhorse) putEvents() awsiam.PolicyStatement {
	return allow([]string{"events:PutEvents"}, []string{*s.bus.EventBusArn()})
}

// validatePermissions only read, but for the event that a pass has started.
func (s *sawhorse) validatePermissions() []awsiam.PolicyStatement {
	statements := []awsiam.PolicyStatement{
		allow([]string{"ssm:GetParametersByPath"}, []string{parameter(names.Paths{Prefix: s.Prefix}.Racks() + "/*")}),
		allow([]string{"eks:ListNodegroups"}, clusters()),
		allow([]string{"eks:DescribeNodegroup"}, nodeGroups()),
		allow([]string{"eks:DescribeAddon"}, []string{arn("eks", "addon/*")}),
		allow([]string{"ec2:DescribeSubnets", "ec2:DescribeSecurityGroups", "ec2:DescribeLaunchTemplateVersions",
			"ec2:DescribeInstanceTypes"}, anything),
		allow([]string{"iam:GetOpenIDConnectProvider"}, []string{iamARN("oidc-provider/*")}),
		allow([]string{"iam:GetRole"}, ourRoleNames()),
		allow([]string{"iam:ListAttachedRolePolicies"}, []string{iamARN("role/*")}), // of the node groups, whatever their names
		allow([]string{"sqs:GetQueueUrl", "sqs:GetQueueAttributes", "sqs:ListQueueTags"}, []string{arn("sqs", names.Queue("*"))}),
		allow([]string{"events:DescribeRule", "events:ListTagsForResource", "events:ListTargetsByRule"}, []string{arn("events", "rule/"+names.Rule("*"))}),
		s.putEvents(),
	}
	if objects := s.objects(); len(objects) > 0 {
		statements = append(statements, allow([]string{"s3:GetObject"}, objects))
	}
	return statements
}

// objects are the ARNs of the objects that JSON parameters may be read from. S3's ARNs have neither region nor account.
func (s *sawhorse) objects() (arns []string) {
	for _, prefix := range s.ObjectPrefixes {
		arns = append(arns, "arn:"+*awscdk.Aws_PARTITION()+":s3:::"+strings.TrimPrefix(prefix, "s3://")+"*")
	}
	return arns
}

// objectOwners are the accounts whose buckets JSON parameters may be read from, where they may be read at all.
func (s *sawhorse) objectOwners() []string {
	if len(s.ObjectPrefixes) == 0 {
		return nil
	}
	return append([]string{*awscdk.Aws_ACCOUNT_ID()}, s.ObjectAccounts...)
}

// changePermissions write what users write, and nothing else: no other function may.
func (s *sawhorse) changePermissions() []awsiam.PolicyStatement {
	folders := names.Paths{Prefix: s.Prefix}.Params("*")
	return []awsiam.PolicyStatement{
		allow([]string{"ssm:GetParametersByPath"}, []string{parameter(folders)}),
		allow([]string{"ssm:DescribeParameters"}, anything),
		allow([]string{"ssm:PutParameter"}, []string{parameter(folders + "/*")}),
	}
}

// ourRoleNames are the roles with a name of ours on any path: a role's name is unique in an account whatever its path is.
func ourRoleNames() []string {
	return []string{iamARN("role/" + names.ControllerRole("*")), iamARN("role/" + names.NodeRole("*"))}
}

// letIn is for calls that change a cluster: its owner has let a rack in by a tag. Which one, validate compares: a statement cannot, as
// the functions serve all racks.
func (s *sawhorse) letIn() conditions {
	if !s.RequireClusterTag {
		return nil
	}
	return conditions{"StringLike": map[string]any{"aws:ResourceTag/" + names.TagRack: "*"}}
}

// accessPermissions make, change and delete entries of Sawhorse's own functions and of nobody else: EKS knows the principal of an
// entry in each of these calls (Service Authorization Reference, Amazon EKS).
func (s *sawhorse) accessPermissions() []awsiam.PolicyStatement {
	var principals []string
	for _, f := range functions {
		if f.cluster {
			principals = append(principals, *s.roles[f.name].RoleArn())
		}
	}
	ours := conditions{"ArnEquals": map[string]any{"eks:principalArn": principals}}
	admin := conditions{"ArnEquals": map[string]any{
		"eks:policyArn": "arn:" + *awscdk.Aws_PARTITION() + ":eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"}}
	// With a mode in the call, UpdateClusterConfig changes the mode and nothing else: it takes one kind of change at a time.
	forward := conditions{"StringEquals": map[string]any{"eks:authenticationMode": "API_AND_CONFIG_MAP"}}
	return []awsiam.PolicyStatement{
		allow([]string{"eks:UpdateClusterConfig"}, clusters(), forward, s.letIn()),
		allow([]string{"eks:CreateAccessEntry"}, clusters(), ours, s.letIn()),
		allow([]string{"eks:DescribeAccessEntry", "eks:ListAssociatedAccessPolicies"}, accessEntries()),
		allow([]string{"eks:UpdateAccessEntry", "eks:DeleteAccessEntry"}, accessEntries(), ours),
		allow([]string{"eks:AssociateAccessPolicy"}, accessEntries(), ours, admin),
		allow([]string{"iam:GetRole"}, principals), // an entry binds to a role as it was created
	}
}

// controllerPermissions are all in the cluster, but for a look at the function's own access entry, which tells why the API server refuses.
func controllerPermissions() []awsiam.PolicyStatement {
	return []awsiam.PolicyStatement{allow([]string{"eks:ListAssociatedAccessPolicies"}, accessEntries())}
}

// shareable are subnets and security groups: those of a VPC that another account shares (RAM) bear that account in their ARNs.
func shareable() []string {
	region := "arn:" + *awscdk.Aws_PARTITION() + ":ec2:" + *awscdk.Aws_REGION()
	return []string{region + ":*:subnet/*", region + ":*:security-group/*"}
}

// networkPermissions confine tagging to the one discovery tag; without the Null test, a call without tag keys would pass too.
func networkPermissions() []awsiam.PolicyStatement {
	return []awsiam.PolicyStatement{
		allow([]string{"ec2:DescribeTags"}, anything),
		allow([]string{"ec2:CreateTags", "ec2:DeleteTags"}, shareable(),
			conditions{
				"ForAllValues:StringEquals": map[string]any{"aws:TagKeys": []string{names.TagDiscovery}},
				"Null":                      map[string]any{"aws:TagKeys": "false"},
			}),
	}
}

func (s *sawhorse) nodegroupsPermissions() []awsiam.PolicyStatement {
	return append([]awsiam.PolicyStatement{
		allow([]string{"eks:DescribeNodegroup", "eks:UpdateNodegroupConfig"}, nodeGroups()),
	}, s.replacePermissions()...)
}

// nodepoolsPermissions end what Karpenter launched and did not end itself: instances with both of its tags, and no others.
func nodepoolsPermissions() []awsiam.PolicyStatement {
	launched := conditions{"StringLike": map[string]any{"aws:ResourceTag/" + names.LabelPool: "*", "aws:ResourceTag/" + names.TagEKSCluster: "*"}}
	return []awsiam.PolicyStatement{
		allow([]string{"ec2:DescribeInstances"}, anything),
		allow([]string{"ec2:TerminateInstances"}, []string{arn("ec2", "instance/*")}, launched),
	}
}

// autoscalerPermissions look for Auto Scaling groups that Cluster Autoscaler scales and EKS does not know. The action knows no
// resource.
func autoscalerPermissions() []awsiam.PolicyStatement {
	return []awsiam.PolicyStatement{allow([]string{"autoscaling:DescribeAutoScalingGroups"}, anything)}
}

// queuePermissions end in -karpenter: queue and rule of a rack, never Sawhorse's own.
func queuePermissions() []awsiam.PolicyStatement {
	return []awsiam.PolicyStatement{
		allow([]string{"sqs:CreateQueue", "sqs:DeleteQueue", "sqs:GetQueueUrl", "sqs:GetQueueAttributes", "sqs:SetQueueAttributes",
			"sqs:ListQueueTags", "sqs:TagQueue"}, []string{arn("sqs", names.Queue("*"))}),
		allow([]string{"events:PutRule", "events:DescribeRule", "events:DeleteRule", "events:PutTargets",
			"events:RemoveTargets", "events:ListTargetsByRule", "events:ListTagsForResource", "events:TagResource"}, []string{arn("events", "rule/"+names.Rule("*"))}),
	}
}

// reportPermissions write status and outputs, and look whether there is a rack of that name. The deny is for what IAM's * also matches: a user's parameter named status.
func (s *sawhorse) reportPermissions() []awsiam.PolicyStatement {
	paths := names.Paths{Prefix: s.Prefix}
	written := []string{parameter(paths.Status("*")), parameter(paths.Outputs("*")), parameter(paths.Outputs("*") + "/*")}
	return []awsiam.PolicyStatement{
		allow([]string{"ssm:PutParameter", "ssm:DeleteParameter", "ssm:GetParametersByPath"}, written),
		allow([]string{"ssm:GetParametersByPath"}, []string{parameter(paths.Params("*"))}),
		deny([]string{"ssm:PutParameter", "ssm:DeleteParameter"}, []string{parameter(paths.Params("*") + "/*")}),
		s.putEvents(),
	}
}

// resyncPermissions start passes, and report those that could not do so themselves.
func (s *sawhorse) resyncPermissions() []awsiam.PolicyStatement {
	return append([]awsiam.PolicyStatement{
		allow([]string{"states:StartExecution"}, []string{s.machineARN()}),
		allow([]string{"states:GetExecutionHistory"}, []string{arn("states", "execution:"+s.machineName()+":*")}),
	}, s.reportPermissions()...)
}
