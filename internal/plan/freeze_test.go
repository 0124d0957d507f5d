package plan_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// budgetsOf returns the budgets of the NodePools of a plan, as they are applied.
func budgetsOf(t *testing.T, p *plan.Plan) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, object := range p.NodePools.Manifests() {
		spec, _ := object["spec"].(map[string]any)
		disruption, _ := spec["disruption"].(map[string]any)
		text, err := json.Marshal(disruption["budgets"])
		if err != nil {
			t.Fatal(err)
		}
		if object["kind"] == "NodePool" {
			all[object["metadata"].(map[string]any)["name"].(string)] = string(text)
		}
	}
	return all
}

// stored returns a plan as it is after storing and reading it.
func stored(t *testing.T, p plan.Plan) *plan.Plan {
	t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	read, err := plan.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// poolsOfAllKinds are parameters with the three kinds of pools. The workload pool has budgets of its own, and the build
// pool has none.
var poolsOfAllKinds = with(builds,
	"additional_karpenter_nodepools_config", `[{"name":"gpu","instance_families":"g5"}]`,
	"karpenter_config", `{"nodePool":{"disruption":{"budgets":[{"nodes":"5","reasons":["Drifted"]}]}}}`)

// The freeze is one more budget of every pool, after the pool's own, and it is gone without a trace. It is the same whether
// a plan is made with it, or it is laid over a plan that is in force.
func TestFreeze(t *testing.T) {
	free := map[string]string{"workload": `[{"nodes":"5","reasons":["Drifted"]}]`, "build": `null`, "gpu": `[{"nodes":"10%"}]`}
	frozen := map[string]string{
		"workload": `[{"nodes":"5","reasons":["Drifted"]},{"nodes":"0"}]`, "build": `[{"nodes":"10%"},{"nodes":"0"}]`,
		"gpu": `[{"nodes":"10%"},{"nodes":"0"}]`,
	}
	made := map[bool]*plan.Plan{}
	for freeze, want := range map[bool]map[string]string{false: free, true: frozen} {
		made[freeze] = stored(t, build(t, with(poolsOfAllKinds, "karpenter_freeze", fmt.Sprint(freeze)), running("1.10.0")).Plan)
		if got := budgetsOf(t, made[freeze]); !maps.Equal(got, want) {
			t.Errorf("freeze %v: budgets %v, want %v", freeze, got, want)
		}
	}
	applied := func(p *plan.Plan) map[string]string {
		all := map[string]string{}
		for _, s := range p.Steps {
			all[s.Name] = s.Fingerprint
		}
		return all
	}
	laid := stored(t, *made[false])
	for _, freeze := range []bool{true, false, true} {
		was := applied(laid)
		if !laid.Freeze(freeze) || laid.Freeze(freeze) {
			t.Errorf("freeze %v: it must change the plan, once", freeze)
		}
		if got, want := budgetsOf(t, laid), budgetsOf(t, made[freeze]); !maps.Equal(got, want) {
			t.Errorf("freeze %v: budgets %v, want %v", freeze, got, want)
		}
		if due := namesOf(laid.Due(was)); due != plan.FreezeStep+" nodepools" {
			t.Errorf("freeze %v: due %q", freeze, due)
		}
		if due := namesOf(made[freeze].Due(applied(laid))); due != "" {
			t.Errorf("freeze %v: a plan that is made with it has %q to do", freeze, due)
		}
		if first := namesOf(laid.Steps[:2]); first != "access "+plan.FreezeStep {
			t.Errorf("the first steps are %q", first)
		}
	}
	if !reflect.DeepEqual(laid, made[true]) {
		t.Errorf("laid over a plan: %+v\nmade with it: %+v", laid, made[true])
	}
	if off := build(t, with(on, "karpenter_enabled", "false"), running("1.10.0")).Plan; off.Freeze(true) || off.NodePools.Frozen {
		t.Error("a plan without NodePools is frozen")
	}
}

func namesOf(steps []plan.Step) string {
	var names []string
	for _, s := range steps {
		names = append(names, s.Name)
	}
	return strings.Join(names, " ")
}

// Karpenter's CRD allows 50 budgets, and a pool that has them all must still be frozen.
func TestFreezeOfAPoolWithTheMostBudgets(t *testing.T) {
	full := `{"nodePool":{"disruption":{"budgets":[` + strings.Repeat(`{"nodes":"1"},`, 49) + `{"nodes":"2"}]}}}`
	p := build(t, with(on, "karpenter_config", full, "karpenter_freeze", "true"), running("1.10.0")).Plan
	budgets := budgetsOf(t, &p)["workload"]
	if count := strings.Count(budgets, "nodes"); count != 50 || !strings.HasSuffix(budgets, `,{"nodes":"0"}]`) {
		t.Errorf("%d budgets: %s", count, budgets)
	}
	if p.Freeze(false); !strings.HasSuffix(budgetsOf(t, &p)["workload"], `,{"nodes":"2"}]`) {
		t.Error("after the freeze its budgets are not what they were")
	}
}

// What is said of the freeze comes from what was applied.
func TestFreezeAdvice(t *testing.T) {
	p := build(t, with(on, "karpenter_freeze", "true"), running("1.10.0")).Plan
	i := slices.IndexFunc(p.Steps, func(s plan.Step) bool { return s.Name == plan.FreezeStep })
	applied := map[string]string{plan.FreezeStep: p.Steps[i].Fingerprint}
	p.Freeze(false)
	takenOff := map[string]string{plan.FreezeStep: p.Steps[i].Fingerprint}
	yes, no := new(true), new(false)
	on := func(applied map[string]string, paused bool) plan.Records {
		return plan.Records{Goal: plan.GoalKarpenter, WasOn: true, Applied: applied, Paused: paused}
	}
	for _, c := range []struct {
		what    string
		records plan.Records
		wanted  *bool
		brakes  string
		says    string
	}{
		{"none", on(nil, false), no, "", ""},
		{"Karpenter was never on", plan.Records{}, yes, "", ""},
		{"in force", on(applied, false), yes, "karpenter_freeze", "the freeze is in force: Karpenter consolidates no nodes"},
		{"in force, and its parameter is refused", on(applied, false), nil, "karpenter_freeze", "the freeze is in force: "},
		{"its step has not been done", on(nil, false), yes, "",
			"karpenter_freeze is true, and the freeze is not in force, because no pass has done the step nodepools/freeze"},
		{"taken off before", on(takenOff, false), yes, "", "and the freeze is not in force"},
		{"taken off", on(takenOff, false), no, "", ""},
		{"paused before it", on(nil, true), yes, "paused", "and the freeze is not in force, because the rack is paused"},
		{"paused before its end", on(applied, true), no, "karpenter_freeze paused",
			"karpenter_freeze is not true, and the freeze is still in force, because the rack is paused"},
		{"Karpenter is being turned off", plan.Records{Goal: plan.GoalAccess, WasOn: true, Applied: applied}, yes, "karpenter_freeze",
			"the freeze is in force: "},
		{"Karpenter is off", plan.Records{Goal: plan.GoalAccess, Applied: applied}, yes, "", ""},
	} {
		var says string
		for _, warning := range c.records.FreezeAdvice(c.wanted) {
			says += warning.Parameter + ": " + warning.Message
		}
		if brakes := strings.Join(c.records.Brakes(), " "); brakes != c.brakes ||
			!strings.Contains(says, c.says) || (says == "") != (c.says == "") {
			t.Errorf("%s: brakes %q, %q; want %q, %q", c.what, brakes, says, c.brakes, c.says)
		}
	}
}
