package main

import (
	"strconv"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/jsii-runtime-go"

	"github.com/sawhorse-io/sawhorse/internal/names"
)

// addPeople adds the policies for people and for other automation. The region is in their names: IAM has no regions, and a
// stack of the same name may stand in each. Neither lets anybody put events: who may, may change every rack.
func (s *sawhorse) addPeople() {
	for i, racks := range s.operatorPolicies() {
		s.managed(numbered("Operator", i), "Write the parameters of racks, and so change their clusters' nodes", s.operatorPermissions(racks))
	}
	s.managed("Viewer", "See what racks are to be, what became of them, and why", s.viewerPermissions())
}

// numbered gives the first of several policies the plain name, and the next ones a number from 2 on.
func numbered(role string, i int) string {
	if i == 0 {
		return role
	}
	return role + strconv.Itoa(i+1)
}

// IAM's limits: the characters of a managed policy, white space aside, and the managed policies that a role or user has at most.
const policyCharacters, policiesEach = 6144, 10

// operatorPolicies are the racks of operatorRacks, as many to a policy as it holds.
func (s settings) operatorPolicies() [][]string {
	const frame = 500 // all but the racks' ARNs
	// What stands before the rack in an ARN, with quotes and comma, where partition (10), region (14) and account (12) are as long
	// as they can be. A rack has three ARNs: to write, to read, to list.
	begin := len(`"arn::ssm:::parameter",`) + 10 + 14 + 12 + len(names.Paths{Prefix: s.Prefix}.Racks()+"//params/*")
	var all [][]string
	left := 0
	for _, rack := range s.OperatorRacks {
		size := 3 * (begin + len(rack))
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

// operatorPermissions are what `sawhorse register` and a write need, and the reading of the same racks.
func (s *sawhorse) operatorPermissions(racks []string) []awsiam.PolicyStatement {
	paths := names.Paths{Prefix: s.Prefix}
	var write, read []string
	for _, rack := range racks {
		write = append(write, parameter(paths.Params(rack)+"/*"))
		read = append(read, s.rackARNs(rack)...)
	}
	return []awsiam.PolicyStatement{
		allow([]string{"ssm:PutParameter", "ssm:DeleteParameter", "ssm:DeleteParameters"}, write),
		allow([]string{"ssm:GetParameter", "ssm:GetParameters", "ssm:GetParametersByPath", "ssm:GetParameterHistory"}, read),
		allow([]string{"ssm:DescribeParameters"}, anything),
	}
}

// viewerPermissions are what `sawhorse status` and `sawhorse watch` need, and the logs and figures behind them.
func (s *sawhorse) viewerPermissions() []awsiam.PolicyStatement {
	execution := arn("states", "execution:"+s.machineName()+":*")
	dashboard := "arn:" + *awscdk.Aws_PARTITION() + ":cloudwatch::" + *awscdk.Aws_ACCOUNT_ID() + ":dashboard/" + s.StackName
	return []awsiam.PolicyStatement{
		allow([]string{"ssm:GetParameter", "ssm:GetParameters", "ssm:GetParametersByPath", "ssm:GetParameterHistory"}, s.rackARNs("*")),
		allow([]string{"ssm:DescribeParameters", "states:ListStateMachines"}, anything),
		allow([]string{"states:ListExecutions", "states:DescribeStateMachine"}, []string{s.machineARN()}),
		allow([]string{"states:DescribeExecution", "states:GetExecutionHistory"}, []string{execution}),
		allow([]string{"logs:FilterLogEvents", "logs:GetLogEvents", "logs:DescribeLogStreams"}, []string{arn("logs", "log-group:/aws/lambda/"+s.functionName("*"))}),
		allow([]string{"cloudwatch:GetDashboard"}, []string{dashboard}),
		allow([]string{"cloudwatch:GetMetricData", "cloudwatch:DescribeAlarms"}, anything),
	}
}

// rackARNs are a rack's folder, which is what reading by path asks about, and all that is in it.
func (s *sawhorse) rackARNs(rack string) []string {
	folder := names.Paths{Prefix: s.Prefix}.Racks() + "/" + rack
	return []string{parameter(folder), parameter(folder + "/*")}
}
