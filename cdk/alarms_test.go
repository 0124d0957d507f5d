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
