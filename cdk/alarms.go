package main

import (
	"fmt"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatchactions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/aws-cdk-go/awscdk/v2/interfaces/interfacesawscloudwatch"
	"github.com/aws/jsii-runtime-go"

	"github.com/sawhorse-io/sawhorse/internal/metrics"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// addAlarms adds an alarm for each condition that needs an operator.
func (s *sawhorse) addAlarms() {
	most := &awscloudwatch.MetricOptions{Statistic: jsii.String("Maximum"), Period: minutes(5)}
	s.alarms = []interfacesawscloudwatch.IAlarmRef{
		s.alarm("PassFailed", "A pass failed: the rack's status says where and why.", s.machine.MetricFailed(sum())),
		s.alarm("PassTimedOut", "A pass was cut off by the state machine's time limit.", s.machine.MetricTimedOut(sum())),
		s.alarmAt(longSeconds, "PassTooLong",
			"A pass has held its rack for more than an hour: its history in Step Functions shows what it waits for.", s.longestPass()),
		s.alarm("NotDelivered", "Events are in the queue of the undelivered: a rack may lag behind its parameters.",
			s.undelivered.MetricApproximateNumberOfMessagesVisible(most)),
		s.alarmAt(unreadSeconds, "QueueUnread",
			"Nobody reads the interruption queue of a rack: its Karpenter controller is down, or watches another queue.", oldestMessage()),
	}
	s.alarms = append(s.alarms, s.scheduleMissing(),
		// Each look at the racks writes the metric while one is Degraded, so a period of two looks always has data then.
		s.alarm("PoolDegraded",
			"A pool of a rack is not Ready, its nodes do not register, or cannot be launched: the rack's status has Karpenter's reason.",
			s.all("Maximum", metrics.DegradedRacks, minutes(2*s.RolloutMinutes))),
		s.alarm("PodsWaiting", "Pods have waited ten minutes for a node: the rack's status says why.",
			s.all("Maximum", metrics.WaitingPods, minutes(2*s.RolloutMinutes))),
		s.alarmAt(heldSeconds, "HoldOld", "A hold is older than a day: racks do not follow their parameters. Delete it, or write it again.",
			s.all("Maximum", metrics.HoldAge, s.ticks())),
		s.alarm("HoldUnclear", "The hold of the stack cannot be read or is not understood, and so holds all racks: their statuses say why.",
			s.all("Maximum", metrics.HoldUnclear, s.ticks())),
		s.nodeCheckMissing(),
		s.failing("audit", "audits", minutes(s.ResyncMinutes)),
		s.failing("resync", "ticks of the schedule", s.ticks()),
		s.failing("rollout", "node checks", minutes(s.RolloutMinutes)))
	for _, f := range functions {
		s.alarms = append(s.alarms, s.alarm(logicalID(f.name)+"Throttled",
			"Function "+f.name+" was throttled: the account's concurrency is used up.",
			s.functions[f.name].MetricThrottles(sum())))
	}
}

// sum adds up the events of five minutes.
func sum() *awscloudwatch.MetricOptions { return in(minutes(5)) }

// in adds up the events of a period.
func in(period awscdk.Duration) *awscloudwatch.MetricOptions {
	return &awscloudwatch.MetricOptions{Statistic: jsii.String("Sum"), Period: period}
}

func minutes(n int) awscdk.Duration { return awscdk.Duration_Minutes(jsii.Number(n)) }

// longSeconds is an hour. Most passes take seconds; a pass that drains nodes or replaces a node group takes minutes.
const longSeconds = 3_600

// heldSeconds is a day. A hold is for the hours of an upgrade or of an incident.
const heldSeconds = 86_400

// longestPass is how long the longest running pass has held its rack. resync measures it at each tick, because Step
// Functions reports an execution's time only when it has ended.
func (s *sawhorse) longestPass() awscloudwatch.IMetric {
	return s.all("Maximum", metrics.LongestPass, s.ticks())
}

// all returns a statistic of a metric of all racks together in each period.
func (s *sawhorse) all(statistic, name string, period awscdk.Duration) awscloudwatch.IMetric {
	return awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
		Namespace: jsii.String(s.StackName), MetricName: jsii.String(name), Statistic: jsii.String(statistic), Period: period,
	})
}

// ticks is a time in which the schedule ticks: five minutes, or the time between two ticks if that is longer.
func (s *sawhorse) ticks() awscdk.Duration { return minutes(max(5, s.ResyncMinutes/s.ResyncSlots)) }

// scheduleMissing triggers if resync has looked at no list of racks for two ticks of its schedule, or for ten minutes: a
// minute's tick may be a little late, and so may its metric. Racks are then checked only when a parameter is written. It
// counts what a tick measures and not the calls of resync, because each execution that fails calls it too, and a call may
// fail. Missing data triggers this alarm.
func (s *sawhorse) scheduleMissing() awscloudwatch.IAlarm {
	return s.newAlarm("ScheduleMissing", &awscloudwatch.AlarmProps{
		AlarmDescription: jsii.String("The schedule's ticks have not come, or have failed in the function resync, for two ticks or for ten " +
			"minutes: racks are looked at only when somebody writes to them."),
		Metric:    s.all("SampleCount", metrics.LongestPass, s.ticks()),
		Threshold: jsii.Number(1), EvaluationPeriods: jsii.Number(2),
		ComparisonOperator: awscloudwatch.ComparisonOperator_LESS_THAN_THRESHOLD, TreatMissingData: awscloudwatch.TreatMissingData_BREACHING,
	})
}

// nodeCheckMissing triggers if the schedule has not called rollout for two looks. Missing data triggers this alarm.
func (s *sawhorse) nodeCheckMissing() awscloudwatch.IAlarm {
	return s.newAlarm("NodeCheckMissing", &awscloudwatch.AlarmProps{
		AlarmDescription: jsii.String("The schedule has not called the function rollout for two node checks: nobody sees what Karpenter does."),
		Metric:           s.functions["rollout"].MetricInvocations(in(minutes(s.RolloutMinutes))),
		Threshold:        jsii.Number(1), EvaluationPeriods: jsii.Number(2),
		ComparisonOperator: awscloudwatch.ComparisonOperator_LESS_THAN_THRESHOLD, TreatMissingData: awscloudwatch.TreatMissingData_BREACHING,
	})
}

// failing triggers if calls of a function's alias have failed in two periods of its schedule in a row. One that fails once is repeated,
// or superseded by the next one. Passes call versions, and tell of failures themselves.
func (s *sawhorse) failing(function, of string, period awscdk.Duration) awscloudwatch.IAlarm {
	return s.newAlarm(logicalID(function)+"Failing", &awscloudwatch.AlarmProps{
		AlarmDescription: jsii.String("The function " + function + " has failed twice in a row, so that " + of + " of some racks, or of " +
			"all, are missing: its log says why."),
		Metric:    s.aliases[function].MetricErrors(in(period)),
		Threshold: jsii.Number(1), EvaluationPeriods: jsii.Number(2),
		ComparisonOperator: awscloudwatch.ComparisonOperator_GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
		TreatMissingData:   awscloudwatch.TreatMissingData_NOT_BREACHING,
	})
}

// unreadSeconds is the age at which a message has been unread for too long. Karpenter reads its queue continuously, and
// SQS drops messages after 300 s.
const unreadSeconds = 120

// oldestMessage is the age of the oldest message in any rack's interruption queue. The set of racks changes, so it is a
// query over the tag of their queues. The account must have resource tags on telemetry switched on (docs/deploy.md).
func oldestMessage() awscloudwatch.IMetric {
	return awscloudwatch.NewMathExpression(&awscloudwatch.MathExpressionProps{
		Expression: jsii.String(fmt.Sprintf(`SELECT MAX(ApproximateAgeOfOldestMessage) FROM SCHEMA("AWS/SQS", QueueName) WHERE tag."%s" = '%s'`,
			ownership.TagQueue, ownership.TagQueueInterruption)),
		Period: minutes(1),
		Label:  jsii.String("oldest message, seconds"),
	})
}

// alarm returns an alarm that triggers at one occurrence within a period.
func (s *sawhorse) alarm(id, description string, metric awscloudwatch.IMetric) awscloudwatch.IAlarm {
	return s.alarmAt(1, id, description, metric)
}

// alarmAt returns an alarm that triggers at a threshold. Missing data does not trigger it.
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

// newAlarm adds an alarm that notifies the deployment's topic, if there is one.
func (s *sawhorse) newAlarm(id string, props *awscloudwatch.AlarmProps) awscloudwatch.IAlarm {
	alarm := awscloudwatch.NewAlarm(s.stack, jsii.String(id), props)
	if s.AlarmTopicARN != "" {
		topic := awssns.Topic_FromTopicArn(s.stack, jsii.String(id+"Topic"), jsii.String(s.AlarmTopicARN))
		alarm.AddAlarmAction(awscloudwatchactions.NewSnsAction(topic))
	}
	return alarm
}
