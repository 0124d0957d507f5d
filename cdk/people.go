package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/jsii-runtime-go"

	"github.com/sawhorse-io/sawhorse/internal/names"
)

// addPeople adds the policies for people and for other automation. The region is in their names: IAM has no regions, and a
// stack of the same name may stand in each. Neither lets anybody put events: who may, may change every rack.
func (s *sawhorse) addPeople() {
	s.managed("Operator", "Write the parameters of racks, and so change their clusters' nodes", s.operatorPermissions())
	s.managed("Viewer", "See what racks are to be, what became of them, and why", s.viewerPermissions())
}

func (s *sawhorse) managed(role, description string, statements []awsiam.PolicyStatement) {
	awsiam.NewManagedPolicy(s.stack, jsii.String(role), &awsiam.ManagedPolicyProps{
		ManagedPolicyName: jsii.String(s.StackName + role + "-" + *awscdk.Aws_REGION()),
		Description:       jsii.String(description), Statements: &statements,
	})
}

// operatorPermissions are what `sawhorse register` and a write need, and the reading of the same racks.
func (s *sawhorse) operatorPermissions() []awsiam.PolicyStatement {
	paths := names.Paths{Prefix: s.Prefix}
	var write, read []string
	for _, rack := range s.OperatorRacks {
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
