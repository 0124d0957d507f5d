package prometheus

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// ofTarget are labels that Prometheus adds to the series of a target, and those of a histogram's buckets.
var ofTarget = []string{"instance", "job", "rack", "le"}

// lines returns the lines of a file in observability/metrics.
func lines(t *testing.T, file string) (all []string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for scanner := bufio.NewScanner(f); scanner.Scan(); {
		all = append(all, scanner.Text())
	}
	return all
}

// versions returns the metrics with their labels that the controller of each version registers: what the script Metrics has
// read there (make e2e NAME=Metrics).
func versions(t *testing.T) map[string]map[string][]string {
	t.Helper()
	catalogue, err := filepath.Glob("../../internal/karpenter/catalogue/[0-9]*")
	if err != nil || len(catalogue) == 0 {
		t.Fatal(catalogue, err)
	}
	all := map[string]map[string][]string{}
	for _, version := range catalogue {
		metrics := map[string][]string{}
		for _, line := range lines(t, folder+"metrics/"+filepath.Base(version)+".txt") {
			name, labels, _ := strings.Cut(strings.TrimSuffix(line, "}"), "{")
			metrics[name] = strings.Split(labels, ",")
		}
		all[filepath.Base(version)] = metrics
	}
	return all
}

// expressions returns all expressions of rules and dashboards, by where they are.
func expressions(t *testing.T) map[string]parser.Expr {
	t.Helper()
	all := map[string]parser.Expr{}
	add := func(where, text string) {
		e, err := promQL.ParseExpr(text)
		if err != nil {
			t.Fatalf("%s: %v", where, err)
		}
		all[where] = e
	}
	for name, rule := range alerts(t) {
		add(name, rule.Expr)
	}
	for file, board := range boards(t) {
		for title, texts := range queries(t, board) {
			for i, text := range texts {
				add(fmt.Sprintf("%s: %s, %d", file, title, i+1), text)
			}
		}
	}
	return all
}

// selectors calls f with each selector of metrics of an expression, but for those of Prometheus itself.
func selectors(e parser.Expr, f func(*parser.VectorSelector)) {
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		if s, ok := n.(*parser.VectorSelector); ok && s.Name != "ALERTS" {
			f(s)
		}
		return nil
	})
}

// base is a metric's registered name: a histogram has three.
var base = regexp.MustCompile(`_(bucket|sum|count)$`)

// labelsOf returns the labels of a metric.
func labelsOf(metrics map[string][]string, name string) ([]string, bool) {
	all, known := metrics[name]
	if !known {
		all, known = metrics[base.ReplaceAllString(name, "")]
	}
	return append(slices.Clone(all), ofTarget...), known
}

// Every metric that a rule or a panel uses, with every label that it selects or groups by, is one of each version's controller.
func TestMetricsOfEachVersion(t *testing.T) {
	for version, metrics := range versions(t) {
		for where, e := range expressions(t) {
			var known []string
			selectors(e, func(s *parser.VectorSelector) {
				labels, ok := labelsOf(metrics, s.Name)
				if !ok {
					t.Errorf("%s: Karpenter %s has no %s", where, version, s.Name)
				}
				known = append(known, labels...)
				for _, m := range s.LabelMatchers {
					if m.Name != "__name__" && !slices.Contains(labels, m.Name) {
						t.Errorf("%s: %s of Karpenter %s has no label %s", where, s.Name, version, m.Name)
					}
				}
			})
			parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
				if a, ok := n.(*parser.AggregateExpr); ok && len(known) > 0 {
					for _, label := range a.Grouping {
						if !slices.Contains(known, label) {
							t.Errorf("%s: no metric of it has the label %s in Karpenter %s", where, label, version)
						}
					}
				}
				return nil
			})
		}
	}
}

// The series of the rules' tests have the names and labels that the default version's controller gives them.
func TestSeriesOfTests(t *testing.T) {
	metrics := versions(t)["1.10.0"]
	for _, test := range unitTestsOf(t).Tests {
		for _, s := range test.InputSeries {
			series, err := promQL.ParseMetric(s.Series)
			if err != nil {
				t.Fatal(err)
			}
			want, known := labelsOf(metrics, series.Get("__name__"))
			var more, missing []string
			series.Range(func(l labels.Label) {
				if l.Name != "__name__" && !slices.Contains(want, l.Name) {
					more = append(more, l.Name)
				}
			})
			for _, label := range want {
				if label != "" && label != "le" && !strings.Contains(s.Series, label+"=") { // the parser leaves out what is empty
					missing = append(missing, label)
				}
			}
			if !known || len(more) > 0 || len(missing) > 0 {
				t.Errorf("%s: %s: known %t, too many labels %q, missing %q", test.Name, s.Series, known, more, missing)
			}
		}
	}
}

// rare is what the script does not bring a controller to count: a replacement that fails.
const rare = "karpenter_voluntary_disruption_queue_failures_total"

// Every selector of a rule finds a series that the real controller of the default version has had in the sandbox, where nothing
// was wrong but an interruption and a launch that was refused. What says that something is wrong is not asked for.
func TestSelectorsFindRealSeries(t *testing.T) {
	var all []labels.Labels
	for _, line := range lines(t, folder+"metrics/series.txt") {
		series, err := promQL.ParseMetric(line[:strings.LastIndex(line, " ")])
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, series)
	}
	for name, rule := range alerts(t) {
		e, err := promQL.ParseExpr(rule.Expr)
		if err != nil {
			t.Fatal(err)
		}
		selectors(e, func(s *parser.VectorSelector) {
			if !slices.ContainsFunc(all, func(series labels.Labels) bool { return finds(s, series) }) && s.Name != rare {
				t.Errorf("%s: %s finds none of the %d series", name, s, len(all))
			}
		})
	}
}

// finds says whether a selector finds a series, whatever the status of a condition is.
func finds(s *parser.VectorSelector, series labels.Labels) bool {
	drifted := slices.ContainsFunc(s.LabelMatchers, func(m *labels.Matcher) bool { return m.Value == "Drifted" })
	for _, m := range s.LabelMatchers {
		if m.Name != "status" && !(drifted && m.Name == "type") && !m.Matches(series.Get(m.Name)) {
			return false
		}
	}
	return true
}

// No alert fires on what the real controller has had in the sandbox, if it stays like that for two hours.
func TestRealSeriesAreHealthy(t *testing.T) {
	healthy := unitTest{Interval: model.Duration(time.Minute)}
	for _, line := range lines(t, folder+"metrics/series.txt") {
		at := strings.LastIndex(line, " ")
		healthy.InputSeries = append(healthy.InputSeries, series{line[:at], line[at+1:] + "x120"})
	}
	for name := range alerts(t) {
		healthy.AlertRuleTest = append(healthy.AlertRuleTest, alertTest{EvalTime: model.Duration(2 * time.Hour), Alertname: name})
	}
	healthy.run(t, time.Minute)
}
