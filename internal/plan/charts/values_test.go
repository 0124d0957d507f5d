package charts_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/karpenter"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/plan/charts"
)

// every returns another value of the same kind for each single value of a chart.
func every(standing map[string]any) map[string]any {
	all := map[string]any{}
	for name, value := range standing {
		switch v := value.(type) {
		case map[string]any:
			if len(v) > 0 {
				all[name] = every(v)
			}
		case bool:
			all[name] = !v
		case string:
			all[name] = "7"
		case float64:
			all[name] = v + 1
		}
	}
	return all
}

// The chart of every version renders with all single values that a pass accepts, so that none of them makes the step fail.
// What the pass refuses is left out.
func TestEveryAcceptedValueRenders(t *testing.T) {
	for _, release := range karpenter.All() {
		standing, err := release.Values()
		if err != nil {
			t.Fatal(err)
		}
		values := every(standing)
		refused := 0
		for {
			text, err := json.Marshal(values)
			if err != nil {
				t.Fatal(err)
			}
			parsed := params.Parse(params.Input{Rack: "demo", Params: map[string]string{
				"karpenter_auth_mode": "true", "karpenter_enabled": "true", "karpenter_version": release.Version,
				"karpenter_controller_config": string(text),
			}})
			made := plan.Build(parsed.Config, plan.Facts{Offline: true}, nil)
			problems := append(parsed.Problems, made.Problems...)
			if len(problems) > 0 {
				for _, p := range problems {
					if p.Parameter != "karpenter_controller_config" {
						t.Fatalf("%s: %v", release.Version, p)
					}
					remove(values, p.Path)
					refused++
				}
				continue
			}
			if !strings.Contains(string(text), `"reservedENIs":"7"`) || !strings.Contains(string(text), `"spotToSpotConsolidation":true`) {
				t.Errorf("%s: accepted was only %s", release.Version, text)
			}
			made.Plan.Controller.Release.Values = stored(t, made.Plan.Controller.Release.Values)
			err = charts.Add(&made.Plan, plan.Facts{})
			variables := variables(onlyDeployment(t, made.Plan.Controller.Release.Objects))
			if err != nil || !strings.Contains(variables["FEATURE_GATES"], "SpotToSpotConsolidation=true") ||
				variables["INTERRUPTION_QUEUE"] != "demo-karpenter" {
				t.Errorf("%s: %v\n%v", release.Version, err, variables)
			}
			break
		}
		if refused == 0 {
			t.Errorf("%s: nothing was refused, not even the cluster's name", release.Version)
		}
	}
}

// remove removes what a path of plain names leads to.
func remove(values map[string]any, path string) {
	name, rest, more := strings.Cut(path, ".")
	if !more {
		delete(values, name)
		return
	}
	if fields, is := values[name].(map[string]any); is {
		remove(fields, rest)
	}
}

// stored returns values as a step reads them in a stored plan.
func stored(t *testing.T, values map[string]any) (read map[string]any) {
	t.Helper()
	text, err := json.Marshal(maps.Clone(values))
	if err == nil {
		err = json.Unmarshal(text, &read)
	}
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// The API server takes no Deployment of the type Recreate with the parameters of RollingUpdate, which every chart has.
func TestRecreate(t *testing.T) {
	for _, release := range karpenter.All() {
		parsed := params.Parse(params.Input{Rack: "demo", Params: map[string]string{
			"karpenter_auth_mode": "true", "karpenter_enabled": "true", "karpenter_version": release.Version,
			"karpenter_controller_config": `{"strategy":{"type":"Recreate"}}`,
		}})
		made := plan.Build(parsed.Config, plan.Facts{Offline: true}, nil)
		made.Plan.Controller.Release.Values = stored(t, made.Plan.Controller.Release.Values)
		if err := charts.Add(&made.Plan, plan.Facts{}); err != nil {
			t.Fatal(err)
		}
		for _, object := range made.Plan.Controller.Release.Objects {
			strategy := at(map[string]any(object), "spec", "strategy")
			if object["kind"] == "Deployment" && !same(strategy, map[string]any{"type": "Recreate"}) {
				t.Errorf("%s: %v", release.Version, strategy)
			}
		}
	}
}
