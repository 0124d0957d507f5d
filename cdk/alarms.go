package main

import (
	"fmt"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatchactions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/aws-cdk-go/awscdk/v2/interfaces/interfacesawscloudwatch"
	"github.com/aws/jsii-runtime-go"

	"github.com/sawhorse-io/sawhorse/internal/meter"
	"github.com/sawhorse-io/sawhorse/internal/names"
)

// addAlarms adds an alarm for each thing that somebody must look at.
func (s *sawhorse) addAlarms() {
	most := &awscloudwatch.MetricOptions{Statistic: jsii.String("Maximum"), Period: minutes(5)}
	s.alarms = []interfacesawscloudwatch.IAlarmRef{
		s.alarm("PassFailed", "A pass failed: the rack's status says where and why.", s.machine.MetricFailed(sum())),
		s.alarm("PassTimedOut", "A pass was cut off by the state machine's time limit.", s.machine.MetricTimedOut(sum())),
		s.alarmAt(longSeconds, "PassTooLong", "A pass has held its rack for more than an hour: its history in Step Functions shows what it waits for.", s.longestPass()),
		s.alarm("NotDelivered", "Events are in the queue of the undelivered: a rack may lag behind its parameters.",
			s.undelivered.MetricApproximateNumberOfMessagesVisible(most)),
		s.alarmAt(unreadSeconds, "QueueUnread", "Nobody reads the interruption queue of a rack: its Karpenter controller is down, or watches another queue.", oldestMessage()),
	}
	s.alarms = append(s.alarms, s.scheduleMissing())
	for _, f := range functions {
		s.alarms = append(s.alarms, s.alarm(logicalID(f.name)+"Throttled", "Function "+f.name+" was throttled: the account's concurrency is used up.",
			s.functions[f.name].MetricThrottles(sum())))
	}
}

// sum adds up what happened in five minutes.
func sum() *awscloudwatch.MetricOptions {
	return &awscloudwatch.MetricOptions{Statistic: jsii.String("Sum"), Period: minutes(5)}
}

func minutes(n int) awscdk.Duration { return awscdk.Duration_Minutes(jsii.Number(n)) }

// longSeconds is an hour: a pass that drains nodes or replaces a node group takes minutes, most take seconds.
const longSeconds = 3_600

// longestPass is how long the longest pass has held its rack, as resync measures it at each tick. Step Functions tells an
// execution's time only when it has ended.
func (s *sawhorse) longestPass() awscloudwatch.IMetric {
	return awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
		Namespace: jsii.String(s.StackName), MetricName: jsii.String(meter.LongestPass),
		Statistic: jsii.String("Maximum"), Period: minutes(s.ResyncMinutes / s.ResyncSlots),
	})
}

// scheduleMissing goes off where resync was not called for two ticks of its schedule: racks are then no longer looked at
// unless somebody writes to them. Here no data is bad news.
func (s *sawhorse) scheduleMissing() awscloudwatch.IAlarm {
	return s.newAlarm("ScheduleMissing", &awscloudwatch.AlarmProps{
		AlarmDescription: jsii.String("The schedule has not called the function resync for two of its ticks: racks are looked at only when somebody writes to them."),
		Metric: s.functions["resync"].MetricInvocations(&awscloudwatch.MetricOptions{
			Statistic: jsii.String("Sum"), Period: minutes(s.ResyncMinutes / s.ResyncSlots),
		}),
		Threshold: jsii.Number(1), EvaluationPeriods: jsii.Number(2),
		ComparisonOperator: awscloudwatch.ComparisonOperator_LESS_THAN_THRESHOLD, TreatMissingData: awscloudwatch.TreatMissingData_BREACHING,
	})
}

// unreadSeconds is when a message is too old: Karpenter reads its queue without a pause, SQS drops messages at 300 s.
const unreadSeconds = 120

// oldestMessage is the age of the oldest message in any rack's interruption queue. Racks come and go, so it is a query over
// the tag that their queues carry (the account must have resource tags on telemetry switched on: docs/deploy.md).
func oldestMessage() awscloudwatch.IMetric {
	return awscloudwatch.NewMathExpression(&awscloudwatch.MathExpressionProps{
		Expression: jsii.String(fmt.Sprintf(`SELECT MAX(ApproximateAgeOfOldestMessage) FROM SCHEMA("AWS/SQS", QueueName) WHERE tag."%s" = '%s'`,
			names.TagQueue, names.TagQueueInterruption)),
		Period: minutes(1),
		Label:  jsii.String("oldest message, seconds"),
	})
}

// alarm goes off at one occurrence within a period.
func (s *sawhorse) alarm(id, description string, metric awscloudwatch.IMetric) awscloudwatch.IAlarm {
	return s.alarmAt(1, id, description, metric)
}

// alarmAt goes off at a threshold; no data is good news.
func (s *sawhorse) alarmAt(threshold float64, id, description string, metric awscloudwatch.IMetric) awscloudwatch.IAlarm {
	return s.newAlarm(id, &awscloudwatch.AlarmProps{
		AlarmDescription:   jsii.String(description),
		Metric:             metric,
		Threshold:          jsii.Number(threshold),
		EvaluationPeriods:  jsii.Number(1),
		ComparisonOperator: awscloudwatch.ComparisonOperator_GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
		TreatMissingData:   awscloudwatch.TreatMissingData_NOT_BREACHING,
	})
}

// newAlarm adds an alarm that tells the topic of the deployment, if there is one.
func (s *sawhorse) newAlarm(id string, props *awscloudwatch.AlarmProps) awscloudwatch.IAlarm {
	alarm := awscloudwatch.NewAlarm(s.stack, jsii.String(id), props)
	if s.AlarmTopicARN != "" {
		topic := awssns.Topic_FromTopicArn(s.stack, jsii.String(id+"Topic"), jsii.String(s.AlarmTopicARN))
		alarm.AddAlarmAction(awscloudwatchactions.NewSnsAction(topic))
	}
	return alarm
}
