package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatchactions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/aws-cdk-go/awscdk/v2/interfaces/interfacesawscloudwatch"
	"github.com/aws/jsii-runtime-go"
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

// alarm goes off at one occurrence within a period; no data is good news.
func (s *sawhorse) alarm(id, description string, metric awscloudwatch.IMetric) awscloudwatch.IAlarm {
	alarm := awscloudwatch.NewAlarm(s.stack, jsii.String(id), &awscloudwatch.AlarmProps{
		AlarmDescription:   jsii.String(description),
		Metric:             metric,
		Threshold:          jsii.Number(1),
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
}
