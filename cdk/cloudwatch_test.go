package main

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// documented are the metrics of AWS that the alarms read, and one that they must not, each with the dimension under which AWS
// publishes it. A test that publishes another one fails, so an alarm that reads another one never goes off.
var documented = map[string]string{
	// https://docs.aws.amazon.com/step-functions/latest/dg/procedure-cw-metrics.html
	"AWS/States ExecutionsFailed":   "StateMachineArn",
	"AWS/States ExecutionsTimedOut": "StateMachineArn",
	// https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html and …/monitoring-metrics-view.html
	"AWS/Lambda Invocations": "FunctionName",
	"AWS/Lambda Errors":      "FunctionName",
	"AWS/Lambda Throttles":   "FunctionName",
	// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
	"AWS/SQS ApproximateNumberOfMessagesVisible": "QueueName",
	"AWS/SQS ApproximateAgeOfOldestMessage":      "QueueName",
}

// metric identifies a metric in CloudWatch. A metric with other dimensions is another metric.
type metric struct{ namespace, name, dimensions string }

// cloudWatch is as much of CloudWatch as the stack's alarms need.
type cloudWatch struct {
	*testing.T
	// begin is minute 0. values are those of each minute.
	begin  time.Time
	values map[metric]map[int][]float64
	// tags are those of the resources that a dimension names: "QueueName=demo-karpenter".
	tags map[string]map[string]string
}

func (w *cloudWatch) add(m metric, minute int, value float64) {
	if w.values[m] == nil {
		w.values[m] = map[int][]float64{}
	}
	w.values[m][minute] = append(w.values[m][minute], value)
}

// publish adds a value of one of AWS's own metrics, of the resource with that name. A function may have its alias or version with it:
// Lambda then publishes the metric of both.
func (w *cloudWatch) publish(minute int, name, resource string, value float64) {
	w.Helper()
	dimension, known := documented[name]
	if !known {
		w.Fatalf("AWS documents no metric %s", name)
	}
	namespace, name, _ := strings.Cut(name, " ")
	if function, _, qualified := strings.Cut(resource, ":"); qualified && dimension == "FunctionName" {
		w.add(metric{namespace, name, dimension + "=" + function + ",Resource=" + resource}, minute, value)
		resource = function
	}
	w.add(metric{namespace, name, dimension + "=" + resource}, minute, value)
}

// extract adds what CloudWatch extracts from the lines of a function's log.
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
func (w *cloudWatch) extract(lines string) {
	w.Helper()
	for text := range strings.Lines(lines) {
		var values map[string]any
		var line struct {
			AWS struct {
				Timestamp         int64
				CloudWatchMetrics []struct {
					Namespace  string
					Dimensions [][]string
					Metrics    []struct{ Name string }
				}
			} `json:"_aws"`
		}
		if json.Unmarshal([]byte(text), &values) != nil || json.Unmarshal([]byte(text), &line) != nil || len(line.AWS.CloudWatchMetrics) == 0 {
			w.Fatalf("not in the embedded metric format: %s", text)
		}
		minute := int(time.UnixMilli(line.AWS.Timestamp).Sub(w.begin).Minutes())
		for _, d := range line.AWS.CloudWatchMetrics {
			for _, names := range d.Dimensions {
				var dimensions []string
				for _, name := range names {
					dimensions = append(dimensions, name+"="+values[name].(string))
				}
				slices.Sort(dimensions)
				for _, m := range d.Metrics {
					w.add(metric{d.Namespace, m.Name, strings.Join(dimensions, ",")}, minute, values[m.Name].(float64))
				}
			}
		}
	}
}

// alarm is an alarm of the template.
type alarm struct {
	metric
	statistic, comparison, missing string
	// query has the parts of a query of Metrics Insights, which takes the place of the metric.
	query []string
	// period is in minutes.
	period, periods, enough int
	threshold               float64
}

// alarmsOf returns the alarms of a template by name. An alarm that uses what is not evaluated here fails the test.
func alarmsOf(t *testing.T, of template) map[string]alarm {
	t.Helper()
	all := map[string]alarm{}
	for id, r := range of.all("AWS::CloudWatch::Alarm") {
		p := r.Properties
		number := func(from any) int { n, _ := from.(float64); return int(n) }
		word := func(name string) string { s, _ := p[name].(string); return s }
		a := alarm{
			metric: metric{namespace: word("Namespace"), name: word("MetricName")}, statistic: word("Statistic"),
			comparison: word("ComparisonOperator"), missing: word("TreatMissingData"), periods: number(p["EvaluationPeriods"]),
			enough: number(p["DatapointsToAlarm"]), period: number(p["Period"]) / 60,
		}
		a.threshold, _ = p["Threshold"].(float64)
		if p["Dimensions"] != nil {
			var dimensions []string
			for _, d := range list(p["Dimensions"]) {
				dimensions = append(dimensions, at(d, "Name").(string)+"="+of.resolved(at(d, "Value")))
			}
			slices.Sort(dimensions)
			a.dimensions = strings.Join(dimensions, ",")
		}
		if p["Metrics"] != nil {
			expression, _ := at(p, "Metrics", 0, "Expression").(string)
			if a.query = queries.FindStringSubmatch(expression); a.query == nil {
				t.Fatalf("alarm %s: the test does not understand the query %s", id, expression)
			}
			a.statistic, a.period = "Maximum", number(at(p, "Metrics", 0, "Period"))/60
		}
		if a.enough == 0 {
			a.enough = a.periods
		}
		for property := range p {
			if !slices.Contains([]string{"AlarmActions", "AlarmDescription", "ComparisonOperator", "DatapointsToAlarm", "Dimensions",
				"EvaluationPeriods", "MetricName", "Metrics", "Namespace", "Period", "Statistic", "Threshold", "TreatMissingData"}, property) {
				t.Fatalf("alarm %s: the test does not know what %s means", id, property)
			}
		}
		if a.period == 0 || a.periods == 0 || len(list(p["Metrics"])) > 1 {
			t.Fatalf("alarm %s: the test cannot evaluate it: %s", id, text(p))
		}
		all[id[:len(id)-8]] = a
	}
	return all
}

// inAlarm reports whether an alarm is in the state ALARM after a minute. CloudWatch looks at some periods more than the
// alarm has, does not say at how many, and lets earlier values stand in for missing ones as far as there are any; only then
// it treats data as missing. further is the number of these periods.
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarms-and-missing-data.html
func (w *cloudWatch) inAlarm(a alarm, minute, further int) bool {
	found, breaching := 0, 0
	for i := 0; i < a.periods+further && found < a.periods; i++ {
		to := minute - i*a.period
		if value, is := w.aggregate(a, to-a.period+1, to); is {
			found++
			if w.breaches(a, value) {
				breaching++
			}
		}
	}
	switch a.missing {
	case "breaching":
		breaching += a.periods - found
	case "notBreaching":
	default:
		w.Fatalf("the test cannot treat missing data as %s", a.missing)
	}
	return breaching >= a.enough
}

func (w *cloudWatch) breaches(a alarm, value float64) bool {
	switch a.comparison {
	case "GreaterThanOrEqualToThreshold":
		return value >= a.threshold
	case "LessThanThreshold":
		return value < a.threshold
	}
	w.Fatalf("the test cannot compare: %s", a.comparison)
	return false
}

// queries are the queries of Metrics Insights that the test understands.
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch-metrics-insights-querylanguage.html
var queries = regexp.MustCompile(`^SELECT MAX\((\w+)\) FROM SCHEMA\("([^"]+)", (\w+)\) WHERE tag\."([^"]+)" = '([^']*)'$`)

// aggregate returns the value of an alarm's metric over some minutes, and whether there is one.
func (w *cloudWatch) aggregate(a alarm, from, to int) (result float64, is bool) {
	for _, m := range w.read(a) {
		for minute := from; minute <= to; minute++ {
			for _, value := range w.values[m][minute] {
				switch a.statistic {
				case "Sum":
					result += value
				case "SampleCount":
					result++
				case "Maximum":
					result = max(result, value)
				default:
					w.Fatalf("the test does not know the statistic %s", a.statistic)
				}
				is = true
			}
		}
	}
	return result, is
}

// read returns the metrics that an alarm reads.
func (w *cloudWatch) read(a alarm) (all []metric) {
	if a.query == nil {
		return []metric{a.metric}
	}
	for m := range w.values {
		dimension, _, _ := strings.Cut(m.dimensions, "=")
		if m.namespace == a.query[2] && m.name == a.query[1] && dimension == a.query[3] && w.tags[m.dimensions][a.query[4]] == a.query[5] {
			all = append(all, m)
		}
	}
	return all
}
