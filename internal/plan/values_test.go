package plan_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	catalogue "github.com/sawhorse-io/sawhorse/internal/karpenter"
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
		`"settings":{"reservedENIs":"1"},"podAnnotations":{"a":"b"},"additionalLabels":{"c":"d"}}`, facts())
	plain, _ := configured(t, "1.10.0", `{}`, facts())
	type object = map[string]any
	for path, want := range map[string]any{
		"logLevel":             "debug",
		"controller.resources": object{"requests": object{"cpu": "1", "memory": "256Mi"}, "limits": object{"memory": "1Gi"}},
		"settings":             object{"clusterName": "demo", "interruptionQueue": "demo-karpenter", "reservedENIs": "1"},
		"podAnnotations":       object{"a": "b", "karpenter.sh/do-not-disrupt": "true"},
		"additionalLabels":     object{"c": "d", "sawhorse.dev/rack": "demo"},
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

// The variables that the chart sets are found in its template.
func TestEnvironmentOfTheChart(t *testing.T) {
	for _, release := range catalogue.All() {
		names, err := release.Environment()
		if err != nil {
			t.Fatal(err)
		}
		known := map[string]bool{}
		for _, name := range names {
			if known[name] {
				t.Errorf("%s: %s twice", release.Version, name)
			}
			known[name] = true
		}
		for _, name := range []string{"KARPENTER_SERVICE", "CLUSTER_NAME", "INTERRUPTION_QUEUE", "FEATURE_GATES", "SYSTEM_NAMESPACE"} {
			if !known[name] {
				t.Errorf("%s: %s was not found in %v", release.Version, name, names)
			}
		}
	}
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
