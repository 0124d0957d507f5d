// Package prometheus checks what observability/ has for Prometheus and Grafana, with their own parsers and Prometheus' own
// engine. It is a module of its own, so that Sawhorse itself does not depend on either. It has only tests.
package prometheus

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"go.yaml.in/yaml/v2"
)

var update = flag.Bool("update", false, "write what is generated again")

const (
	folder   = "../../observability/"
	ruleFile = folder + "karpenter.rules.yaml"
	testFile = folder + "karpenter.rules.test.yaml"
	resource = folder + "prometheusrule.yaml"
)

var promQL = parser.NewParser(parser.Options{})

// unitTests is promtool's file format, as far as the tests use it. promtool itself is one package with all that Prometheus can
// discover and store; run does what its `test rules` does.
type unitTests struct {
	RuleFiles          []string       `yaml:"rule_files"`
	EvaluationInterval model.Duration `yaml:"evaluation_interval"`
	Tests              []unitTest     `yaml:"tests"`
}

type unitTest struct {
	Name          string         `yaml:"name"`
	Interval      model.Duration `yaml:"interval"`
	InputSeries   []series       `yaml:"input_series"`
	AlertRuleTest []alertTest    `yaml:"alert_rule_test"`
}

type series struct {
	Series string `yaml:"series"`
	Values string `yaml:"values"`
}

type alertTest struct {
	EvalTime  model.Duration `yaml:"eval_time"`
	Alertname string         `yaml:"alertname"`
	ExpAlerts []alert        `yaml:"exp_alerts"`
}

type alert struct {
	Labels      map[string]string `yaml:"exp_labels"`
	Annotations map[string]string `yaml:"exp_annotations"`
}

func unitTestsOf(t *testing.T) (all unitTests) {
	t.Helper()
	text, err := os.ReadFile(testFile)
	if err == nil {
		err = yaml.UnmarshalStrict(text, &all)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// alerts returns the alert rules by name.
func alerts(t *testing.T) map[string]rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.ParseFile(ruleFile, false, model.UTF8Validation, promQL, promslog.NewNopLogger())
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	all := map[string]rulefmt.Rule{}
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			if _, twice := all[rule.Alert]; twice {
				t.Errorf("two rules are named %s", rule.Alert)
			}
			all[rule.Alert] = rule
		}
	}
	return all
}

// Each alert fires in one of promtool's tests, and none on the healthy rack.
func TestRules(t *testing.T) {
	all := unitTestsOf(t)
	fired, quiet := map[string]bool{}, map[string]bool{}
	for _, test := range all.Tests {
		t.Run(test.Name, func(t *testing.T) { test.run(t, time.Duration(all.EvaluationInterval)) })
		for _, a := range test.AlertRuleTest {
			fired[a.Alertname] = fired[a.Alertname] || len(a.ExpAlerts) > 0
			quiet[a.Alertname] = quiet[a.Alertname] || test.Name == "healthy" && len(a.ExpAlerts) == 0
		}
	}
	for name := range alerts(t) {
		if !fired[name] || !quiet[name] {
			t.Errorf("%s fires in a test: %t; is held against the healthy rack: %t", name, fired[name], quiet[name])
		}
	}
}

// run evaluates the rules minute by minute, as promtool does, and compares the alerts that fire.
func (u unitTest) run(t *testing.T, each time.Duration) {
	input := fmt.Sprintf("load %s\n", time.Duration(u.Interval))
	for _, s := range u.InputSeries {
		input += "  " + s.Series + " " + s.Values + "\n"
	}
	loader, err := promqltest.NewLazyLoader(input, promqltest.LazyLoaderOpts{EnableAtModifier: true, EnableNegativeOffset: true})
	if err != nil {
		t.Fatal(err)
	}
	defer loader.Close()
	loader.SubqueryInterval = each
	groups, errs := rules.NewManager(&rules.ManagerOptions{
		QueryFunc: rules.EngineQueryFunc(loader.QueryEngine(), loader.Storage()), Appendable: loader.Storage(), Context: context.Background(),
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {}, Logger: promslog.NewNopLogger(), Parser: promQL,
	}).LoadGroups(each, labels.EmptyLabels(), "", nil, false, ruleFile)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	last := slices.MaxFunc(u.AlertRuleTest, func(a, b alertTest) int { return int(a.EvalTime - b.EvalTime) })
	for at := time.Duration(0); at <= time.Duration(last.EvalTime); at += each {
		var now []*rules.AlertingRule
		loader.WithSamplesTill(time.Unix(0, 0).Add(at), func(err error) {
			if err != nil {
				t.Fatal(err)
			}
			for _, group := range groups {
				group.Eval(loader.Context(), time.Unix(0, 0).Add(at).UTC())
				now = append(now, group.AlertingRules()...)
			}
		})
		for _, a := range u.AlertRuleTest {
			if time.Duration(a.EvalTime) == at {
				a.compare(t, now)
			}
		}
	}
}

func (a alertTest) compare(t *testing.T, all []*rules.AlertingRule) {
	t.Helper()
	var got []alert
	for _, rule := range all {
		if err := rule.LastError(); err != nil {
			t.Errorf("%s: %v", rule.Name(), err)
		}
		for _, active := range rule.ActiveAlerts() {
			if rule.Name() == a.Alertname && active.State == rules.StateFiring {
				got = append(got, alert{active.Labels.Map(), active.Annotations.Map()})
			}
		}
	}
	var want []alert
	for _, w := range a.ExpAlerts {
		w.Labels = maps.Clone(w.Labels)
		w.Labels[labels.AlertName] = a.Alertname
		want = append(want, w)
	}
	byText := func(a, b alert) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }
	slices.SortFunc(got, byText)
	slices.SortFunc(want, byText)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s after %s:\n got %v\nwant %v", a.Alertname, a.EvalTime, got, want)
	}
}

// The Prometheus Operator's resource has the same groups.
func TestResource(t *testing.T) {
	text, err := os.ReadFile(ruleFile)
	if err != nil {
		t.Fatal(err)
	}
	_, groups, _ := strings.Cut(string(text), "groups:\n")
	want := `# Generated from karpenter.rules.yaml: the same rules for the Prometheus Operator.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: karpenter
  namespace: kube-system
spec:
  groups:
` + regexp.MustCompile(`(?m)^(.)`).ReplaceAllString(groups, "  $1")
	if *update {
		if err := os.WriteFile(resource, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(resource); err != nil || string(got) != want {
		t.Errorf("%s is not what karpenter.rules.yaml says (%v); run go test -C tools/prometheus . -run Resource -update", resource, err)
	}
}

// Each alert leads to its section of docs/observability.md, and each section there is of an alert.
func TestRunbooks(t *testing.T) {
	text, err := os.ReadFile("../../docs/observability.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^### (.+)$`).FindAllStringSubmatch(string(text), -1) {
		sections[m[1]] = true
	}
	all := alerts(t)
	for name, rule := range all {
		if want := "docs/observability.md#" + strings.ToLower(name); !sections[name] || rule.Annotations["runbook"] != want {
			t.Errorf("%s: a section: %t; its runbook is %s, want %s", name, sections[name], rule.Annotations["runbook"], want)
		}
	}
	if len(sections) != len(all) {
		t.Errorf("%d sections for %d alerts", len(sections), len(all))
	}
}
