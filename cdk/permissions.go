package main

import (
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/jsii-runtime-go"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// conditions is a policy statement's Condition: operator -> key -> value or values.
type conditions = map[string]map[string]any

// allow returns a statement that allows the actions on the resources, under the given conditions.
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

// anything is the resource of actions that support no resource types. The test of this package lists these actions with
// the reason.
var anything = []string{"*"}

func clusters() []string      { return []string{arn("eks", "cluster/*")} }
func nodeGroups() []string    { return []string{arn("eks", "nodegroup/*")} }
func accessEntries() []string { return []string{arn("eks", "access-entry/*")} }
func associations() []string  { return []string{arn("eks", "podidentityassociation/*")} }

// permissions returns the statements for everything that a function may do, except for writing its log and traces.
func (s *sawhorse) permissions(f function) []awsiam.PolicyStatement {
	statements := s.tableAccess(f)
	if s.inVPC(f) {
		statements = append(statements, allow([]string{"ec2:CreateNetworkInterface", "ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets",
			"ec2:DeleteNetworkInterface", "ec2:AssignPrivateIpAddresses", "ec2:UnassignPrivateIpAddresses"}, anything))
	}
	own := map[string]func() []awsiam.PolicyStatement{
		"validate":       s.validatePermissions,
		"audit":          s.auditPermissions,
		"change":         s.changePermissions,
		"access":         s.accessPermissions,
		"controller":     controllerPermissions,
		"network":        networkPermissions,
		"nodegroups":     s.nodegroupsPermissions,
		"nodepools":      nodepoolsPermissions,
		"proof":          proofPermissions,
		"autoscaler":     autoscalerPermissions,
		"infrastructure": s.infrastructurePermissions,
		"queue":          queuePermissions,
		"report":         s.statusPermissions,
		"resync":         s.resyncPermissions,
		"rollout":        s.rolloutPermissions,
	}
	if f.cluster {
		statements = append(statements, allow([]string{"eks:DescribeCluster"}, clusters())) // for the address of the API server
	}
	if more := own[f.name]; more != nil {
		statements = append(statements, more()...)
	}
	return statements
}

// tableAccess returns the statements for a function's items of the table. Each function of a pass renews the lease and
// records its changes, in the items of racks. What one function executes for another has a partition of its own, which
// few functions write: steps read the plan, and cannot write it.
func (s *sawhorse) tableAccess(f function) []awsiam.PolicyStatement {
	const records, plans, changes, claims = ownership.PartitionRack + "*", ownership.PartitionPlan + "*", ownership.PartitionChange + "*",
		ownership.PartitionCluster + "*"
	const snapshots = ownership.PartitionSnapshot + "*"
	const get, put, update, remove, query = "GetItem", "PutItem", "UpdateItem", "DeleteItem", "Query"
	const list, rollouts = ownership.PartitionList, ownership.PartitionRollouts
	on := func(partitions []string, operations ...string) awsiam.PolicyStatement {
		var actions []string
		for _, operation := range operations {
			actions = append(actions, "dynamodb:"+operation)
		}
		return allow(actions, []string{*s.table.TableArn()}, ofPartitions(partitions...))
	}
	switch f.name {
	case "validate", "audit":
		return []awsiam.PolicyStatement{
			on([]string{records, plans, claims, list}, get, put),
			on([]string{records}, update),
			on([]string{changes}, get, update),
			on([]string{snapshots}, get),
		}
	case "change":
		return []awsiam.PolicyStatement{on([]string{records}, update, get, put), on([]string{changes}, get, update)}
	case "report": // it deletes all items of a rack that ends, and reads in its plan which cluster that had
		return []awsiam.PolicyStatement{
			on([]string{records, list, rollouts}, update, get, put, query),
			on([]string{plans, changes}, get),
			on([]string{snapshots}, put, query),
			on([]string{records, list, rollouts, plans, changes, claims, snapshots}, remove),
		}
	case "resync":
		return []awsiam.PolicyStatement{
			on([]string{records, list}, get, put, query),
			on([]string{records, list, rollouts}, update), // the last of a pass that was stopped after it had made the pools
			on([]string{changes, plans, rollouts}, get),
		}
	case "rollout": // the status records, and the rollouts
		return []awsiam.PolicyStatement{on([]string{records, rollouts}, update, get, query)}
	}
	operations := []string{update, get, put}
	if slices.Contains([]string{"network", "nodegroups", "controller", "nodepools", "proof", "autoscaler"}, f.name) {
		operations = append(operations, remove) // a baseline that has been restored
	}
	return []awsiam.PolicyStatement{on([]string{records}, operations...), on([]string{plans}, get)}
}

// ofPartitions limits calls to items of the table with these partition keys. ForAllValues alone would also allow a call
// without a key.
func ofPartitions(keys ...string) conditions {
	return conditions{
		"ForAllValues:StringLike": map[string]any{"dynamodb:LeadingKeys": keys},
		"Null":                    map[string]any{"dynamodb:LeadingKeys": "false"},
	}
}

// parameter returns the ARN of a parameter, or of several if its name contains *.
func parameter(name string) string { return arn("ssm", "parameter"+name) }

// readHold returns the statement that allows reading the stack's hold.
func (s *sawhorse) readHold() awsiam.PolicyStatement {
	return allow([]string{"ssm:GetParameter"}, []string{parameter(ownership.Paths{Prefix: s.Prefix}.Hold())})
}

// putEvents returns the statement that allows events to be put on Sawhorse's own bus, and on no other.
func (s *sawhorse) putEvents() awsiam.PolicyStatement {
	return allow([]string{"events:PutEvents"}, []string{*s.bus.EventBusArn()})
}

// validatePermissions returns statements that only allow reading, except for the event that reports a pass's start.
func (s *sawhorse) validatePermissions() []awsiam.PolicyStatement {
	paths := ownership.Paths{Prefix: s.Prefix}
	statements := []awsiam.PolicyStatement{
		allow([]string{"ssm:GetParametersByPath"}, []string{parameter(paths.Racks() + "/*")}),
		allow([]string{"ssm:GetParameter", "ssm:GetParameterHistory"}, []string{parameter(paths.Change("*"))}),
		s.readHold(),
		allow([]string{"eks:ListNodegroups"}, clusters()),
		allow([]string{"eks:DescribeNodegroup"}, nodeGroups()),
		allow([]string{"eks:DescribeAddon"}, []string{arn("eks", "addon/*")}),
		allow([]string{"ec2:DescribeSubnets", "ec2:DescribeSecurityGroups", "ec2:DescribeLaunchTemplateVersions",
			"ec2:DescribeInstanceTypes", "ec2:DescribeInstanceTypeOfferings", "ec2:DescribeImages", "ec2:DescribeCapacityReservations",
			"ec2:DescribePlacementGroups"}, anything),
		allow([]string{"ssm:GetParameter", "ssm:GetParameters"}, []string{publicParameters()}), // the images that they have
		allow([]string{"iam:GetOpenIDConnectProvider"}, []string{iamARN("oidc-provider/*")}),
		// The request has no path, so IAM knows the path only of a role that exists.
		allow([]string{"iam:GetRole"}, append(ourRoleNames(), iamARN("role/"+ownership.SpotRole),
			iamARN("role"+ownership.SpotRolePath+ownership.SpotRole))),
		allow([]string{"iam:ListAttachedRolePolicies"}, []string{iamARN("role/*")}), // of node groups, whose role names can be anything
		allow([]string{"sqs:GetQueueUrl", "sqs:GetQueueAttributes", "sqs:ListQueueTags"}, []string{arn("sqs", ownership.Queue("*"))}),
		allow([]string{"events:DescribeRule", "events:ListTagsForResource", "events:ListTargetsByRule"},
			[]string{arn("events", "rule/"+ownership.Rule("*"))}),
		s.putEvents(),
	}
	if objects := s.objects(); len(objects) > 0 {
		statements = append(statements, allow([]string{"s3:GetObject"}, objects))
	}
	return statements
}

// auditPermissions returns the statements for reading what validate and all steps read. They do not allow any change to
// a rack: the event that requests a pass is put on Sawhorse's own bus, and the records of a rack are written only at
// the beginning of a full pass (tableAccess).
func (s *sawhorse) auditPermissions() []awsiam.PolicyStatement {
	return append(s.validatePermissions(),
		allow([]string{"eks:DescribeAccessEntry", "eks:ListAssociatedAccessPolicies"}, accessEntries()),
		allow([]string{"iam:GetRolePolicy", "iam:ListRolePolicies"}, s.ourRoles()),
		allow([]string{"iam:ListInstanceProfiles"}, anything),
		allow([]string{"eks:ListPodIdentityAssociations"}, clusters()),
		allow([]string{"eks:DescribePodIdentityAssociation"}, associations()),
		allow([]string{"ec2:DescribeTags", "ec2:DescribeInstances"}, anything),
		allow([]string{"autoscaling:DescribeAutoScalingGroups"}, anything),
	)
}

// objects returns the ARNs of the objects that JSON parameters may be read from. S3's ARNs have neither region nor account.
// The functions serve all racks, so their policies name the objects of all of them: {rack} is *. validate compares the
// rack's name.
func (s *sawhorse) objects() (arns []string) {
	for _, prefix := range s.ObjectPrefixes {
		arns = append(arns, arnOf("s3", "", "", objectPattern(prefix)))
	}
	return arns
}

// objectPattern returns the end of the ARN of the objects below a prefix.
func objectPattern(prefix string) string {
	return strings.ReplaceAll(strings.TrimPrefix(prefix, "s3://"), ownership.RackInPrefix, "*") + "*"
}

// objectOwners returns the accounts whose buckets JSON parameters may be read from. It returns none if the deployment
// does not allow any.
func (s *sawhorse) objectOwners() []string {
	if len(s.ObjectPrefixes) == 0 {
		return nil
	}
	return append([]string{*awscdk.Aws_ACCOUNT_ID()}, s.ObjectAccounts...)
}

// changePermissions returns the statements for writing the parameters that users write. No other function may write
// them, and this one may write nothing else.
func (s *sawhorse) changePermissions() []awsiam.PolicyStatement {
	folders := ownership.Paths{Prefix: s.Prefix}.Params("*")
	return []awsiam.PolicyStatement{
		allow([]string{"ssm:GetParametersByPath"}, []string{parameter(folders)}),
		allow([]string{"ssm:PutParameter"}, []string{parameter(folders + "/*")}),
		allow([]string{"ssm:GetParameterHistory"}, []string{parameter(folders + "/*")}),
	}
}

// ourRoleNames returns Sawhorse's role names on any path, because a role's name is unique in an account whatever its
// path is.
func ourRoleNames() []string {
	return []string{iamARN("role/" + ownership.ControllerRole("*")), iamARN("role/" + ownership.NodeRole("*")),
		iamARN("role/" + ownership.BuildNodeRole("*"))}
}

// authorized is the condition for calls that change a cluster: its owner must have allowed a rack in with a tag. validate
// compares the rack's name. A statement cannot, because the functions serve all racks.
func (s *sawhorse) authorized() conditions {
	if !s.RequireClusterTag {
		return nil
	}
	return conditions{"StringLike": map[string]any{"aws:ResourceTag/" + ownership.TagRack: "*"}}
}

// accessPermissions returns the statements for creating, changing and deleting the access entries of Sawhorse's own
// functions, and no others. EKS supplies the principal of the entry as a condition key in each of these calls (Service
// Authorization Reference, Amazon EKS).
func (s *sawhorse) accessPermissions() []awsiam.PolicyStatement {
	principals := s.principals()
	ours := conditions{"ArnEquals": map[string]any{"eks:principalArn": principals}}
	admin := conditions{"ArnEquals": map[string]any{
		"eks:policyArn": arnOf("eks", "", "aws", "cluster-access-policy/AmazonEKSClusterAdminPolicy")}}
	ofFunctions := conditions{"Null": map[string]any{"aws:RequestTag/" + ownership.TagRole: "false"}}
	// A call of UpdateClusterConfig with a mode changes only the mode, because it accepts one kind of change at a time.
	forward := conditions{"StringEquals": map[string]any{"eks:authenticationMode": "API_AND_CONFIG_MAP"}}
	return []awsiam.PolicyStatement{
		allow([]string{"eks:UpdateClusterConfig"}, clusters(), forward, s.authorized()),
		allow([]string{"eks:DescribeUpdate"}, clusters()),
		allow([]string{"eks:CreateAccessEntry"}, clusters(), ours, s.authorized()),
		allow([]string{"eks:DescribeAccessEntry", "eks:ListAssociatedAccessPolicies"}, accessEntries()),
		allow([]string{"eks:UpdateAccessEntry", "eks:DeleteAccessEntry"}, accessEntries(), ours),
		allow([]string{"eks:AssociateAccessPolicy"}, accessEntries(), ours, admin),
		allow([]string{"eks:TagResource"}, accessEntries(), asOurs(), ofFunctions),
	}
}

// principals returns the roles of the functions that have an access entry.
func (s *sawhorse) principals() (arns []string) {
	for _, f := range functions {
		if f.cluster && f.like == "" {
			arns = append(arns, *s.roles[f.name].RoleArn())
		}
	}
	return arns
}

// controllerPermissions returns the statement for reading the function's own access entry, which explains why the API
// server rejects it. Everything else is in the cluster.
func controllerPermissions() []awsiam.PolicyStatement {
	return []awsiam.PolicyStatement{allow([]string{"eks:ListAssociatedAccessPolicies"}, accessEntries())}
}

// shareable returns the ARNs of subnets and security groups. In a VPC that another account shares (RAM), their ARNs
// contain that account.
func shareable() []string {
	return []string{arnOf("ec2", region(), "*", "subnet/*"), arnOf("ec2", region(), "*", "security-group/*")}
}

// public returns the ARN of images or snapshots of EC2, which has no account.
func public(rest string) string { return arnOf("ec2", region(), "", rest) }

// networkPermissions returns statements that limit tagging to the discovery tag. Without the Null condition, a call
// without tag keys would be allowed too. The statements cannot hold the VPC of a rack's cluster: the condition key ec2:Vpc
// takes ARNs that are known when the stack is deployed, and the function serves all racks. validate compares the VPC.
func networkPermissions() []awsiam.PolicyStatement {
	return []awsiam.PolicyStatement{
		allow([]string{"ec2:DescribeTags"}, anything),
		allow([]string{"ec2:CreateTags", "ec2:DeleteTags"}, shareable(),
			conditions{
				"ForAllValues:StringEquals": map[string]any{"aws:TagKeys": []string{ownership.TagDiscovery}},
				"Null":                      map[string]any{"aws:TagKeys": "false"},
			}),
	}
}

// nodegroupsPermissions returns the statements for labels and sizes of node groups, and for ending a chosen node of one. Only the
// groups that EKS made for node groups have its tag.
func (s *sawhorse) nodegroupsPermissions() []awsiam.PolicyStatement {
	ofNodeGroup := conditions{"StringLike": map[string]any{"aws:ResourceTag/" + ownership.TagNodeGroup: "*"}}
	return append([]awsiam.PolicyStatement{
		allow([]string{"eks:DescribeNodegroup", "eks:UpdateNodegroupConfig"}, nodeGroups()),
		allow([]string{"eks:DescribeUpdate"}, clusters()),
		allow([]string{"eks:DescribeUpdate"}, nodeGroups()),                   // named beside the cluster in the Service Authorization Reference
		allow([]string{"autoscaling:DescribeAutoScalingInstances"}, anything), // it supports no resource types
		allow([]string{"autoscaling:TerminateInstanceInAutoScalingGroup"},
			[]string{arn("autoscaling", "autoScalingGroup:*:autoScalingGroupName/eks-*")}, ofNodeGroup),
	}, s.replacePermissions()...)
}

// nodepoolsPermissions returns the statements for terminating instances that Karpenter launched and did not terminate
// itself. The instances must have both of Karpenter's tags.
func nodepoolsPermissions() []awsiam.PolicyStatement {
	launched := conditions{"StringLike": map[string]any{
		"aws:ResourceTag/" + ownership.LabelPool: "*", "aws:ResourceTag/" + ownership.TagEKSCluster: "*"}}
	return []awsiam.PolicyStatement{
		allow([]string{"ec2:DescribeInstances"}, anything),
		allow([]string{"ec2:TerminateInstances"}, []string{arn("ec2", "instance/*")}, launched),
	}
}

// proofPermissions returns the statement for finding out whether build groups are at zero already.
func proofPermissions() []awsiam.PolicyStatement {
	return []awsiam.PolicyStatement{allow([]string{"eks:DescribeNodegroup"}, nodeGroups())}
}

// autoscalerPermissions returns the statement for finding Auto Scaling groups that Cluster Autoscaler scales and that
// are not part of EKS. The action supports no resource types.
func autoscalerPermissions() []awsiam.PolicyStatement {
	return []awsiam.PolicyStatement{allow([]string{"autoscaling:DescribeAutoScalingGroups"}, anything)}
}

// queuePermissions returns the statements for a rack's queue and rule. Their names end in -karpenter, so Sawhorse's own
// queue and rules are excluded.
func queuePermissions() []awsiam.PolicyStatement {
	return []awsiam.PolicyStatement{
		allow([]string{"sqs:CreateQueue", "sqs:DeleteQueue", "sqs:GetQueueUrl", "sqs:GetQueueAttributes", "sqs:SetQueueAttributes",
			"sqs:ListQueueTags", "sqs:TagQueue"}, []string{arn("sqs", ownership.Queue("*"))}),
		allow([]string{"events:PutRule", "events:DescribeRule", "events:DeleteRule", "events:PutTargets",
			"events:RemoveTargets", "events:ListTargetsByRule", "events:ListTagsForResource", "events:TagResource"},
			[]string{arn("events", "rule/"+ownership.Rule("*"))}),
	}
}

// reportPermissions returns the statements for writing status and outputs, and for checking whether a rack of that name
// exists. The deny statement is needed because IAM's * also matches a user's parameter named status.
func (s *sawhorse) reportPermissions() []awsiam.PolicyStatement {
	paths := ownership.Paths{Prefix: s.Prefix}
	outputs := parameter(paths.Outputs("*"))
	return []awsiam.PolicyStatement{
		allow([]string{"ssm:PutParameter", "ssm:DeleteParameter"}, []string{parameter(paths.Status("*")), outputs}),
		allow([]string{"ssm:GetParameter"}, []string{outputs, parameter(paths.Change("*"))}),
		allow([]string{"ssm:GetParametersByPath"}, []string{parameter(paths.Params("*"))}),
		deny([]string{"ssm:PutParameter", "ssm:DeleteParameter"}, []string{parameter(paths.Params("*") + "/*")}),
		s.putEvents(),
	}
}

// statusPermissions adds to reportPermissions the right to read the status, to see whether it is still what was written
// last, and who wrote what a snapshot has. Only resync reports without reading them: resync reports failed passes, whose status is
// always written, and whose values are kept as no snapshot.
func (s *sawhorse) statusPermissions() []awsiam.PolicyStatement {
	paths := ownership.Paths{Prefix: s.Prefix}
	return append(s.reportPermissions(),
		allow([]string{"ssm:GetParameter"}, []string{parameter(paths.Status("*"))}),
		allow([]string{"ssm:GetParameterHistory"}, []string{parameter(paths.Params("*") + "/*"), parameter(paths.Change("*"))}))
}

// resyncPermissions returns the statements for starting audits and passes, for reading the hold, and for reporting the passes
// that could not report themselves. Step Functions authorizes a call that names an alias on the ARN of the state machine.
func (s *sawhorse) resyncPermissions() []awsiam.PolicyStatement {
	return append([]awsiam.PolicyStatement{
		s.readHold(),
		allow([]string{"lambda:InvokeFunction"}, []string{arn("lambda", "function:"+s.functionName("audit")+":"+ownership.Alias)}),
		allow([]string{"states:StartExecution"}, []string{s.machineARN()}),
		allow([]string{"states:GetExecutionHistory"}, []string{arn("states", "execution:"+s.machineName()+":*")}),
	}, s.reportPermissions()...)
}

// rolloutPermissions returns the statements for writing the status and sending the event of a rollout. The function only
// reads clusters.
func (s *sawhorse) rolloutPermissions() []awsiam.PolicyStatement {
	paths := ownership.Paths{Prefix: s.Prefix}
	return []awsiam.PolicyStatement{
		allow([]string{"ssm:PutParameter"}, []string{parameter(paths.Status("*"))}),
		deny([]string{"ssm:PutParameter"}, []string{parameter(paths.Params("*") + "/*")}),
		s.putEvents(),
	}
}
