package main

import (
	"strconv"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/jsii-runtime-go"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// addPeople adds the policies for people and for other automation. Their names contain the region, because IAM is
// global and a stack of the same name may exist in each region. Neither policy allows putting events, because events
// can change every rack.
func (s *sawhorse) addPeople() {
	for i, racks := range s.operatorPolicies() {
		s.managed(numbered("Operator", i), "Write the parameters of racks, and so change their clusters' nodes", s.operatorPermissions(racks))
	}
	s.managed("Viewer", "See what racks are to be, what became of them, and why", s.viewerPermissions())
}

// numbered returns the plain name for the first of several policies, and appends a number from 2 on for the others.
func numbered(role string, i int) string {
	if i == 0 {
		return role
	}
	return role + strconv.Itoa(i+1)
}

// IAM's limits: the characters of a managed policy without white space, and the number of managed policies
// per role or user.
const policyCharacters, policiesEach = 6144, 10

// operatorPolicies splits operatorRacks into groups that fit into one policy each.
func (s settings) operatorPolicies() [][]string {
	const frame = 900 // everything except what is named after racks
	// The part of an ARN before the rack, with quotes and comma, and with the maximum lengths of partition (10), region
	// (14) and account (12). A rack has four ARNs: two to write, one to read, one to list,
	// and a partition of snapshots.
	begin := len(`"arn::ssm:::parameter",`) + 10 + 14 + 12 + len(ownership.Paths{Prefix: s.Prefix}.Racks()+"//params/*")
	var all [][]string
	left := 0
	for _, rack := range s.OperatorRacks {
		size := 4*(begin+len(rack)) + len(`"",`+ownership.PartitionSnapshot+rack)
		if left < size {
			all, left = append(all, nil), policyCharacters-frame
		}
		all[len(all)-1], left = append(all[len(all)-1], rack), left-size
	}
	return all
}

func (s *sawhorse) managed(role, description string, statements []awsiam.PolicyStatement) {
	awsiam.NewManagedPolicy(s.stack, jsii.String(role), &awsiam.ManagedPolicyProps{
		ManagedPolicyName: jsii.String(s.StackName + role + "-" + *awscdk.Aws_REGION()),
		Description:       jsii.String(description), Statements: &statements,
	})
}

// operatorPermissions returns the statements for running `sawhorse register`, for writing and reading the parameters of these racks,
// and for reading their snapshots.
func (s *sawhorse) operatorPermissions(racks []string) []awsiam.PolicyStatement {
	paths := ownership.Paths{Prefix: s.Prefix}
	var write, read, snapshots []string
	for _, rack := range racks {
		write = append(write, parameter(paths.Params(rack)+"/*"), parameter(paths.Change(rack)))
		read = append(read, s.rackARNs(rack)...)
		snapshots = append(snapshots, ownership.PartitionSnapshot+rack)
	}
	return []awsiam.PolicyStatement{
		allow([]string{"ssm:PutParameter", "ssm:DeleteParameter", "ssm:DeleteParameters"}, write),
		allow([]string{"ssm:GetParameter", "ssm:GetParameters", "ssm:GetParametersByPath", "ssm:GetParameterHistory"}, read),
		allow([]string{"ssm:DescribeParameters"}, anything),
		allow([]string{"dynamodb:GetItem", "dynamodb:Query"}, []string{*s.table.TableArn()}, ofPartitions(snapshots...)),
	}
}

// viewerPermissions returns the statements for running `sawhorse status` and `sawhorse watch`, for what `sawhorse cost` reads of AWS, and
// for seeing the logs and metrics.
func (s *sawhorse) viewerPermissions() []awsiam.PolicyStatement {
	execution := arn("states", "execution:"+s.machineName()+":*")
	dashboard := arnOf("cloudwatch", "", *awscdk.Aws_ACCOUNT_ID(), "dashboard/"+s.dashboardName())
	return []awsiam.PolicyStatement{
		allow([]string{"ssm:GetParameter", "ssm:GetParameters", "ssm:GetParametersByPath", "ssm:GetParameterHistory"}, s.rackARNs("*")),
		s.readHold(),
		allow([]string{"ssm:DescribeParameters", "states:ListStateMachines"}, anything),
		allow([]string{"states:ListExecutions", "states:DescribeStateMachine"}, []string{s.machineARN()}),
		allow([]string{"states:DescribeExecution", "states:GetExecutionHistory"}, []string{execution}),
		allow([]string{"logs:FilterLogEvents", "logs:GetLogEvents", "logs:DescribeLogStreams"},
			[]string{arn("logs", "log-group:/aws/lambda/"+s.functionName("*"))}),
		allow([]string{"cloudwatch:GetDashboard"}, []string{dashboard}),
		allow([]string{"cloudwatch:GetMetricData", "cloudwatch:DescribeAlarms"}, anything),
		allow([]string{"ec2:DescribeSpotPriceHistory", "pricing:GetProducts"}, anything),
		allow([]string{"eks:DescribeCluster"}, []string{arn("eks", "cluster/*")}),
	}
}

// rackARNs returns the ARN of a rack's folder, on which reading by path is authorized, and of everything in it.
func (s *sawhorse) rackARNs(rack string) []string {
	folder := ownership.Paths{Prefix: s.Prefix}.Rack(rack)
	return []string{parameter(folder), parameter(folder + "/*")}
}
