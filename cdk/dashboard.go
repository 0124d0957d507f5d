package main

import (
	"fmt"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/jsii-runtime-go"

	"github.com/sawhorse-io/sawhorse/internal/metrics"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// dashboardName is the dashboard's name. The dashboards of all regions share an account's names.
func (s *sawhorse) dashboardName() string { return s.StackName + "-" + *awscdk.Aws_REGION() }

// addDashboard adds the dashboard. From top to bottom it shows whether every rack matches its parameters, what is
// wrong, what was changed recently, and the health of Sawhorse itself.
func (s *sawhorse) addDashboard() {
	outOfLine := s.each(metrics.Dimension, metrics.OutOfLine, "Maximum")
	var errors, throttles []awscloudwatch.IMetric
	for _, f := range functions {
		errors = append(errors, s.functions[f.name].MetricErrors(sum()))
		throttles = append(throttles, s.functions[f.name].MetricThrottles(sum()))
	}
	board := awscloudwatch.NewDashboard(s.stack, jsii.String("Dashboard"),
		&awscloudwatch.DashboardProps{DashboardName: jsii.String(s.dashboardName())})
	board.AddWidgets(awscloudwatch.NewSingleValueWidget(&awscloudwatch.SingleValueWidgetProps{
		Title: jsii.String("Is every rack as its parameters say? 0: yes, 1: rejected, failed, paused or degraded; its status says why"),
		// The latest value. A rack that is out of line sends one in each resync interval, and one whenever it has
		// something to report.
		Metrics: &[]awscloudwatch.IMetric{outOfLine}, Width: jsii.Number(24), Height: jsii.Number(4),
	}))
	board.AddWidgets(awscloudwatch.NewAlarmStatusWidget(&awscloudwatch.AlarmStatusWidgetProps{
		Title: jsii.String("Alarms"), Alarms: &s.alarms, Width: jsii.Number(24), Height: jsii.Number(4),
	}))
	board.AddWidgets(
		graph("Racks out of line", outOfLine),
		graph("Changes made", s.overall(metrics.Changes, "Sum")))
	board.AddWidgets(
		graph("Outcomes of passes", s.overall(metrics.Passes, "Sum"), s.overall(metrics.Rejected, "Sum"), s.overall(metrics.Failed, "Sum")),
		graph("Seconds of passes that had something to do", s.overall(metrics.Seconds, "Maximum")))
	board.AddWidgets(
		graph("Executions", s.machine.MetricStarted(sum()), s.machine.MetricSucceeded(sum()), s.machine.MetricFailed(sum())),
		graph("Longest pass under way", s.longestPass()))
	board.AddWidgets(graph("Function errors", errors...), graph("Function throttles", throttles...))
	board.AddWidgets(
		graph("Interruption queues: messages", messages()),
		graph("Interruption queues: age of the oldest message", oldestMessage()))
	board.AddWidgets(
		graph("Instances that EC2 takes, by kind", s.each(metrics.DimensionKind, metrics.Interruptions, "Sum")),
		graph("Pods that wait for a node", s.overall(metrics.WaitingPods, "Maximum")))
}

func graph(title string, left ...awscloudwatch.IMetric) awscloudwatch.IWidget {
	return awscloudwatch.NewGraphWidget(&awscloudwatch.GraphWidgetProps{Title: jsii.String(title), Left: &left, Width: jsii.Number(12)})
}

// each searches for a metric by a dimension, with a line for each of its values, because racks are added and removed, and kinds seen for
// the first time, after the stack is deployed.
func (s *sawhorse) each(dimension, name, statistic string) awscloudwatch.IMetric {
	return awscloudwatch.NewSearchExpression(&awscloudwatch.SearchExpressionProps{
		Expression: jsii.String(fmt.Sprintf(`SEARCH('{"%s",%s} MetricName="%s"', '%s', 300)`, s.StackName, dimension, name, statistic)),
		Label:      jsii.String("${PROP('Dim." + dimension + "')}"),
		Period:     minutes(5),
	})
}

// overall returns a metric for all racks together.
func (s *sawhorse) overall(name, statistic string) awscloudwatch.IMetric {
	return awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
		Namespace: jsii.String(s.StackName), MetricName: jsii.String(name), Label: jsii.String(strings.ToLower(name)),
		Statistic: jsii.String(statistic), Period: minutes(5),
	})
}

// messages returns the message counts of the racks' interruption queues, a line for each rack.
func messages() awscloudwatch.IMetric {
	return awscloudwatch.NewMathExpression(&awscloudwatch.MathExpressionProps{
		Expression: jsii.String(fmt.Sprintf(
			`SELECT MAX(ApproximateNumberOfMessagesVisible) FROM SCHEMA("AWS/SQS", QueueName) WHERE tag."%s" = '%s' GROUP BY tag."%s"`,
			ownership.TagQueue, ownership.TagQueueInterruption, ownership.TagRack)),
		Period: minutes(1),
		Label:  jsii.String(""),
	})
}
