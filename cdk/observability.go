package main

import (
	"fmt"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatchactions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/aws-cdk-go/awscdk/v2/interfaces/interfacesawscloudwatch"
	"github.com/aws/jsii-runtime-go"

	"github.com/sawhorse-io/sawhorse/internal/names"
)

// addAlarms adds an alarm for each thing that somebody must look at, and a dashboard to look at.
func (s *sawhorse) addAlarms() {
	period := awscdk.Duration_Minutes(jsii.Number(5))
	sum := &awscloudwatch.MetricOptions{Statistic: jsii.String("Sum"), Period: period}
	alarms := []interfacesawscloudwatch.IAlarmRef{
		s.alarm("PassFailed", "A pass failed: the rack's status says where and why.", s.machine.MetricFailed(sum)),
		s.alarm("PassTimedOut", "A pass was cut off by the state machine's time limit.", s.machine.MetricTimedOut(sum)),
		s.alarm("NotDelivered", "Events are in the queue of the undelivered: a rack may lag behind its parameters.",
			s.undelivered.MetricApproximateNumberOfMessagesVisible(&awscloudwatch.MetricOptions{Statistic: jsii.String("Maximum"), Period: period})),
		s.alarmAt(unreadSeconds, "QueueUnread", "Nobody reads the interruption queue of a rack: its Karpenter controller is down, or watches another queue.", oldestMessage()),
	}
	var errors, throttles []awscloudwatch.IMetric
	for _, f := range functions {
		fn := s.functions[f.name]
		throttle := fn.MetricThrottles(sum)
		alarms = append(alarms, s.alarm(logicalID(f.name)+"Throttled", "Function "+f.name+" was throttled: the account's concurrency is used up.", throttle))
		throttles = append(throttles, throttle)
		errors = append(errors, fn.MetricErrors(sum))
	}
	s.addDashboard(sum, errors, throttles, alarms)
}

// unreadSeconds is when a message is too old: Karpenter reads its queue without a pause, SQS drops messages at 300 s.
const unreadSeconds = 120

// oldestMessage is the age of the oldest message in any rack's interruption queue. Racks come and go, so it is a query over
// the tag that their queues carry (the account must have resource tags on telemetry switched on: docs/deploy.md).
func oldestMessage() awscloudwatch.IMetric {
	return awscloudwatch.NewMathExpression(&awscloudwatch.MathExpressionProps{
		Expression: jsii.String(fmt.Sprintf(`SELECT MAX(ApproximateAgeOfOldestMessage) FROM SCHEMA("AWS/SQS", QueueName) WHERE tag."%s" = '%s'`,
			names.TagQueue, names.TagQueueInterruption)),
		Period: awscdk.Duration_Minutes(jsii.Number(1)),
		Label:  jsii.String("oldest message, seconds"),
	})
}

// messages are the message counts of the racks' interruption queues, a line for each rack.
func messages() awscloudwatch.IMetric {
	return awscloudwatch.NewMathExpression(&awscloudwatch.MathExpressionProps{
		Expression: jsii.String(fmt.Sprintf(`SELECT MAX(ApproximateNumberOfMessagesVisible) FROM SCHEMA("AWS/SQS", QueueName) WHERE tag."%s" = '%s' GROUP BY tag."%s"`,
			names.TagQueue, names.TagQueueInterruption, names.TagRack)),
		Period: awscdk.Duration_Minutes(jsii.Number(1)),
		Label:  jsii.String(""),
	})
}

// alarm goes off at one occurrence within a period.
func (s *sawhorse) alarm(id, description string, metric awscloudwatch.IMetric) awscloudwatch.IAlarm {
	return s.alarmAt(1, id, description, metric)
}

// alarmAt goes off at a threshold; no data is good news.
func (s *sawhorse) alarmAt(threshold float64, id, description string, metric awscloudwatch.IMetric) awscloudwatch.IAlarm {
	alarm := awscloudwatch.NewAlarm(s.stack, jsii.String(id), &awscloudwatch.AlarmProps{
		AlarmDescription:   jsii.String(description),
		Metric:             metric,
		Threshold:          jsii.Number(threshold),
		EvaluationPeriods:  jsii.Number(1),
		ComparisonOperator: awscloudwatch.ComparisonOperator_GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
		TreatMissingData:   awscloudwatch.TreatMissingData_NOT_BREACHING,
	})
	if s.AlarmTopicARN != "" {
		topic := awssns.Topic_FromTopicArn(s.stack, jsii.String(id+"Topic"), jsii.String(s.AlarmTopicARN))
		alarm.AddAlarmAction(awscloudwatchactions.NewSnsAction(topic))
	}
	return alarm
}

func (s *sawhorse) addDashboard(sum *awscloudwatch.MetricOptions, errors, throttles []awscloudwatch.IMetric, alarms []interfacesawscloudwatch.IAlarmRef) {
	graph := func(title string, left []awscloudwatch.IMetric) awscloudwatch.IWidget {
		return awscloudwatch.NewGraphWidget(&awscloudwatch.GraphWidgetProps{Title: jsii.String(title), Left: &left, Width: jsii.Number(12)})
	}
	slowest := &awscloudwatch.MetricOptions{Statistic: jsii.String("Maximum")}
	board := awscloudwatch.NewDashboard(s.stack, jsii.String("Dashboard"), &awscloudwatch.DashboardProps{DashboardName: jsii.String(s.StackName)})
	board.AddWidgets(awscloudwatch.NewAlarmStatusWidget(&awscloudwatch.AlarmStatusWidgetProps{Title: jsii.String("Alarms"), Alarms: &alarms, Width: jsii.Number(24)}))
	board.AddWidgets(
		graph("Passes", []awscloudwatch.IMetric{s.machine.MetricStarted(sum), s.machine.MetricSucceeded(sum), s.machine.MetricFailed(sum)}),
		graph("Longest pass", []awscloudwatch.IMetric{s.machine.MetricTime(slowest)}))
	board.AddWidgets(graph("Function errors", errors), graph("Function throttles", throttles))
	board.AddWidgets(
		graph("Interruption queues: messages by rack", []awscloudwatch.IMetric{messages()}),
		graph("Interruption queues: age of the oldest message", []awscloudwatch.IMetric{oldestMessage()}))
}
