package plan_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	catalogue "github.com/sawhorse-io/sawhorse/internal/karpenter"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// configured returns the values of the release of a rack with karpenter_controller_config, as they are stored.
func configured(t *testing.T, version, config string, f plan.Facts) (release, previous map[string]any) {
	t.Helper()
	got := build(t, with(choosing(version), "karpenter_controller_config", config), f)
	if len(got.Problems) > 0 {
		t.Fatal(got.Problems)
	}
	decode := func(values map[string]any) (stored map[string]any) {
		if err := json.Unmarshal(text(t, values), &stored); err != nil {
			t.Fatal(err)
		}
		return stored
	}
	if p := got.Plan.Controller.Previous; p != nil {
		previous = decode(p.Values)
	}
	return decode(got.Plan.Controller.Release.Values), previous
}

// The rack's values stand over what Sawhorse recommends, and beside what it sets itself.
func TestValuesOfTheRack(t *testing.T) {
	values, _ := configured(t, "1.10.0", `{"logLevel":"debug","controller":{"resources":{"requests":{"cpu":"1"},"limits":{"memory":"1Gi"}}},`+
		`"settings":{"reservedENIs":"1"},"podAnnotations":{"a":"b"},"podLabels":{"c":"d"}}`, facts())
	plain, _ := configured(t, "1.10.0", `{}`, facts())
	type object = map[string]any
	for path, want := range map[string]any{
		"logLevel":             "debug",
		"controller.resources": object{"requests": object{"cpu": "1", "memory": "256Mi"}, "limits": object{"memory": "1Gi"}},
		"settings":             object{"clusterName": "demo", "interruptionQueue": "demo-karpenter", "reservedENIs": "1"},
		"podAnnotations":       object{"a": "b", "karpenter.sh/do-not-disrupt": "true"},
		"podLabels":            object{"c": "d"},
		"additionalLabels":     plain["additionalLabels"],
		"nodeSelector":         plain["nodeSelector"],
		"serviceAccount":       plain["serviceAccount"],
		"controller.image":     plain["controller"].(object)["image"],
	} {
		if got := valueAt(values, path); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
	want := object{"requests": object{"cpu": "200m", "memory": "256Mi"}}
	if got := valueAt(plain, "controller.resources"); !reflect.DeepEqual(got, want) {
		t.Errorf("without the parameter: resources %v", got)
	}
}

// The version that comes back if another one fails gets only the values that it has.
func TestValuesOfTheVersionBefore(t *testing.T) {
	values, previous := configured(t, "1.12.1", `{"logLevel":"debug","settings":{"enableZonalShift":true,"reservedENIs":"1"},`+
		`"affinity":{"podAffinity":{}}}`, running("1.10.0"))
	for path, want := range map[string][2]any{
		"logLevel":                  {"debug", "debug"},
		"settings.enableZonalShift": {true, nil},
		"settings.reservedENIs":     {"1", "1"},
		"settings.clusterName":      {"demo", "demo"},
		"affinity.podAffinity":      {map[string]any{}, map[string]any{}},
	} {
		if got := [2]any{valueAt(values, path), valueAt(previous, path)}; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
}

// The charts of all versions are decoded once, and not for each value that none of them has.
func TestUnknownValuesTakeLittleWork(t *testing.T) {
	const unknown = 100
	var names []string
	for n := range unknown {
		names = append(names, fmt.Sprintf(`"unknown%d":1`, n))
	}
	written := with(on, "karpenter_controller_config", "{"+strings.Join(names, ",")+"}")
	f, problems := facts(), 0
	allocated := testing.AllocsPerRun(1, func() { problems = len(build(t, written, f).Problems) })
	if problems != unknown {
		t.Fatalf("%d problems", problems)
	}
	if most := 1000.0 * unknown; allocated > most {
		t.Errorf("%.0f allocations for %d unknown values", allocated, unknown)
	}
}

// What is allowed of a number depends on the chart's own value: a fraction only where that one is a fraction.
func TestNumbersOfTheChart(t *testing.T) {
	for config, want := range map[string]string{
		`{"settings":{"vmMemoryOverheadPercent":0.5}}`:  "",
		`{"settings":{"vmMemoryOverheadPercent":0}}`:    "",
		`{"settings":{"vmMemoryOverheadPercent":-0.5}}`: "-0.5; allowed is a number that is not negative; write, for example, 0.075",
		`{"settings":{"vmMemoryOverheadPercent":-1}}`:   "-1; allowed is a number that is not negative; write, for example, 0.075",
		`{"controller":{"metrics":{"port":1.5}}}`:       "1.5; allowed is a whole number that is not negative; write, for example, 8080",
		`{"controller":{"metrics":{"port":"1"}}}`:       `"1"; allowed is a number, without quotes; write, for example, 8080`,
	} {
		got := build(t, with(on, "karpenter_controller_config", config), facts()).Problems
		if (len(got) == 0) != (want == "") || want != "" && !strings.HasSuffix(got[0].Message, " is "+want) {
			t.Errorf("%s: %v, want %q", config, got, want)
		}
	}
}

// Every value of every chart is one that a parameter may set, or one that it may not, with the reason. A value that a
// new chart brings is neither: the test is red until somebody has judged it, and until then nobody sets it.
func TestEveryValueOfEveryChartIsJudged(t *testing.T) {
	found := map[string]bool{}
	for _, release := range catalogue.All() {
		values, err := release.Values()
		if err != nil {
			t.Fatal(err)
		}
		leaves(nil, values, func(path []string, standing any) {
			value, judged := params.FindChartValue(path)
			found[value.Path] = true
			switch {
			case !judged:
				t.Errorf("the chart of %s has %s: may a writer of parameters set it? Write it into params.ChartValues", release.Version,
					strings.Join(path, "."))
			case value.Refused == "" && standing == nil && value.Like == nil:
				t.Errorf("%s: %s is null in the chart: of which kind is it?", release.Version, value.Path)
			}
			parsed := params.Parse(params.Input{Rack: "demo", Params: with(choosing(release.Version),
				"karpenter_controller_config", string(text(t, nested(path, standing))))})
			got := append(parsed.Problems, plan.Build(parsed.Config, facts(), nil).Problems...)
			switch reason := "is protected: " + value.Refused + "; leave it out"; {
			case value.Refused == "" && len(got) != 0:
				t.Errorf("%s: the chart's own %s is refused: %v", release.Version, value.Path, got)
			case value.Refused != "" && (len(got) != 1 || !strings.Contains(got[0].Message, reason)):
				t.Errorf("%s: %s is not refused: %v", release.Version, value.Path, got)
			}
		})
	}
	for _, value := range params.ChartValues {
		if !found[value.Path] {
			t.Errorf("no chart has %s", value.Path)
		}
	}
	if !slices.IsSortedFunc(params.ChartValues, func(a, b params.ChartValue) int { return strings.Compare(a.Path, b.Path) }) {
		t.Error("the values are not sorted")
	}
}

// leaves visits the values of a chart: those that are judged as a whole, and else those that are no objects with fields.
func leaves(path []string, values map[string]any, visit func(path []string, standing any)) {
	for name, standing := range values {
		at := append(slices.Clone(path), name)
		_, judged := params.FindChartValue(at)
		if inner, _ := standing.(map[string]any); len(inner) > 0 && !judged {
			leaves(at, inner, visit)
		} else {
			visit(at, standing)
		}
	}
}

// nested returns an object with one value.
func nested(path []string, value any) any {
	for _, name := range slices.Backward(path) {
		value = map[string]any{name: value}
	}
	return value
}

// valueAt returns a value by the path of its names, or nil.
func valueAt(values map[string]any, path string) any {
	value := any(values)
	for name := range strings.SplitSeq(path, ".") {
		fields, _ := value.(map[string]any)
		value = fields[name]
	}
	return value
}
