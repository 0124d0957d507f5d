package main

import (
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/metrics"
)

// Passes that have nothing to report do not write these metrics, so no alarm may depend on them: it would have no data
// for days.
func TestNoAlarmDependsOnMetricsOfReports(t *testing.T) {
	for id, alarm := range production.all("AWS::CloudWatch::Alarm") {
		for _, name := range []string{metrics.OutOfLine, metrics.Changes, metrics.Seconds, metrics.Dimension} {
			p := alarm.Properties
			if p["MetricName"] == name || strings.Contains(text(p["Metrics"])+text(p["Dimensions"]), `"`+name+`"`) {
				t.Errorf("alarm %s depends on %s", id, name)
			}
		}
	}
}

// The alarm examines two ticks, whose interval depends on the deployment.
func TestAMissingScheduleIsAlarming(t *testing.T) {
	for seconds, of := range map[float64]template{300: production, 600: custom} {
		found := 0
		for id, alarm := range of.all("AWS::CloudWatch::Alarm") {
			if !strings.HasPrefix(id, "ScheduleMissing") {
				continue
			}
			found++
			p := alarm.Properties
			if p["Period"] != seconds || p["EvaluationPeriods"] != 2.0 || p["Threshold"] != 1.0 || p["ComparisonOperator"] != "LessThanThreshold" ||
				p["MetricName"] != "Invocations" || !strings.Contains(text(p["Dimensions"]), `"Ref":"Resync`) {
				t.Errorf("%s", text(p))
			}
		}
		if found != 1 {
			t.Errorf("%d alarms", found)
		}
	}
}

// The metric has data only while a rack is degraded, once in each tick. With a period of two ticks, the alarm lasts.
func TestADegradedPoolIsAlarming(t *testing.T) {
	for seconds, of := range map[float64]template{600: production, 1800: custom} {
		found := 0
		for id, alarm := range of.all("AWS::CloudWatch::Alarm") {
			if !strings.HasPrefix(id, "PoolDegraded") {
				continue
			}
			found++
			if p := alarm.Properties; p["Period"] != seconds || p["Threshold"] != 1.0 || p["MetricName"] != metrics.DegradedRacks ||
				p["EvaluationPeriods"] != 1.0 || p["Statistic"] != "Maximum" || p["Dimensions"] != nil {
				t.Errorf("%s", text(p))
			}
		}
		if found != 1 {
			t.Errorf("%d alarms", found)
		}
	}
}

// The alarm uses the age of the lease. Step Functions publishes ExecutionTime only when an execution ends, and an
// execution that hangs does not end.
func TestALongPassIsAlarming(t *testing.T) {
	for id, alarm := range production.all("AWS::CloudWatch::Alarm") {
		if strings.HasPrefix(id, "PassTooLong") {
			if p := alarm.Properties; p["Threshold"] != 3600.0 || p["MetricName"] != metrics.LongestPass || p["Namespace"] != "Sawhorse" ||
				p["Statistic"] != "Maximum" || p["Period"] != 300.0 || p["Dimensions"] != nil {
				t.Errorf("%s", text(p))
			}
			return
		}
	}
	t.Error("no alarm")
}

// One alarm covers the queues of all racks. It finds them by the tag that the plan gives each queue.
func TestAnUnreadQueueIsAlarming(t *testing.T) {
	for id, alarm := range production.all("AWS::CloudWatch::Alarm") {
		if !strings.HasPrefix(id, "QueueUnread") {
			continue
		}
		want := `SELECT MAX(ApproximateAgeOfOldestMessage) FROM SCHEMA("AWS/SQS", QueueName) WHERE tag."sawhorse.dev/queue" = 'interruption'`
		if got := at(alarm.Properties, "Metrics", 0, "Expression"); got != want || at(alarm.Properties, "Threshold") != 120.0 {
			t.Errorf("%v, threshold %v", got, at(alarm.Properties, "Threshold"))
		}
		return
	}
	t.Error("no alarm")
}
