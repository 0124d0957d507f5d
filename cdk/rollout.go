package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsscheduler"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsschedulertargets"
	"github.com/aws/jsii-runtime-go"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// addRollouts has the function rollout look at the nodes of all racks with Karpenter.
func (s *sawhorse) addRollouts() {
	between := awscdk.Duration_Minutes(jsii.Number(s.RolloutMinutes))
	awsscheduler.NewSchedule(s.stack, jsii.String("Rollout Schedule"), &awsscheduler.ScheduleProps{
		Description: jsii.String("Looks at the nodes of all racks, which follow a pass for hours"),
		Schedule:    awsscheduler.ScheduleExpression_Rate(between),
		Target: awsschedulertargets.NewLambdaInvoke(s.functions["rollout"], &awsschedulertargets.ScheduleTargetBaseProps{
			DeadLetterQueue: s.undelivered,
			RetryAttempts:   jsii.Number(2),
			MaxEventAge:     between,
			Input:           awsscheduler.ScheduleTargetInput_FromObject(map[string]any{}),
		}),
	})
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
