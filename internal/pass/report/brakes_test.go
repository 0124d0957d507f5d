package report

import (
	"slices"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

// frozenPlan returns a plan with the freeze, and what is applied of it when its step is done.
func frozenPlan() (*plan.Plan, map[string]string) {
	p := &plan.Plan{
		Format: plan.Format, Rack: "demo", Goal: plan.GoalKarpenter, Steps: []plan.Step{{Name: "access"}, {Name: "nodepools"}},
		NodePools: plan.NodePools{Objects: []plan.Object{{"kind": "NodePool", "metadata": map[string]any{"name": "workload"}}}},
	}
	p.Freeze(true)
	return p, map[string]string{plan.FreezeStep: p.Steps[1].Fingerprint}
}

// What the status calls in force comes from what was applied when the pass ended, in whatever way it ended.
func TestBrakesInForce(t *testing.T) {
	p, applied := frozenPlan()
	yes := new(true)
	failed := func(step string) Event {
		e := event("Failed")
		e.Error, e.Step, e.Steps = "StepFailed", step, []string{"access", plan.FreezeStep, "nodepools"}
		return e
	}
	for _, c := range []struct {
		what    string
		event   Event
		run     store.Run
		records plan.Records
		brakes  string
		says    string
	}{
		{"done", event("Planned"), store.Run{Freeze: yes}, plan.Records{Applied: applied}, "karpenter_freeze", "the freeze is in force"},
		{"rejected", event("Rejected"), store.Run{Freeze: yes, Problems: problem}, plan.Records{Applied: applied}, "karpenter_freeze",
			"the freeze is in force"},
		{"failed before the step", failed("access"), store.Run{Freeze: yes}, plan.Records{}, "", "and the freeze is not in force"},
		{"failed in the step", failed(plan.FreezeStep), store.Run{Freeze: yes}, plan.Records{}, "", "and the freeze is not in force"},
		{"failed after the step", failed("nodepools"), store.Run{Freeze: yes}, plan.Records{Applied: applied}, "karpenter_freeze",
			"the freeze is in force"},
		{"failed before anything was read", failed("validate"), store.Run{}, plan.Records{Applied: applied, Paused: true},
			"karpenter_freeze paused", "the freeze is in force"},
		{"rejected and paused", event("Rejected"), store.Run{Freeze: yes, Paused: true}, plan.Records{Paused: true}, "paused",
			"and the freeze is not in force, because the rack is paused"},
	} {
		c.run.Goal, c.records.WasOn = string(plan.GoalKarpenter), true
		s := begin(t, c.run)
		s.must(s.store.SavePlan(t.Context(), p))
		s.must(s.store.SaveRecords(t.Context(), "demo", c.records))
		s.run(c.event)
		status := s.status()
		i := slices.IndexFunc(status.Warnings, func(w params.Problem) bool { return w.Parameter == params.ParamFreeze })
		if got := strings.Join(status.Brakes, " "); got != c.brakes || i < 0 || !strings.Contains(status.Warnings[i].Message, c.says) {
			t.Errorf("%s: brakes %q, warnings %v; want %q, %q", c.what, got, status.Warnings, c.brakes, c.says)
		}
	}
}

// The status of a pass that failed before it came to the pools does not say that they are changed.
func TestEffectsOfAFailedPass(t *testing.T) {
	effects := []plan.Effect{{Pool: "workload", Change: events.PoolChanged}}
	touched := store.StepRecord{Step: "nodepools", Changes: []outcome.Change{{Subject: "NodePool/workload", Action: "updated"}}}
	for _, c := range []struct {
		failed string
		done   []store.StepRecord
		told   int
	}{{"queue", nil, 0}, {"nodepools", nil, 1}, {"autoscaler", nil, 1}, {"queue", []store.StepRecord{touched}, 1}, {"validate", nil, 1}} {
		s := begin(t, store.Run{Outcome: "Planned", Goal: "karpenter", Effects: effects}, c.done...)
		e := event("Failed")
		e.Error, e.Step, e.Steps = "StepFailed", c.failed, []string{"queue", "nodepools", "autoscaler"}
		s.run(e)
		_, detail := s.sent()
		if got := s.status().Effects; len(got) != c.told || len(detail.Pools) != c.told {
			t.Errorf("failed in %s after %v: %v, %v", c.failed, c.done, got, detail.Pools)
		}
	}
}

// The status of a pass that a step has refused says what is done to the pools if they had been changed before. Where the parameters were
// refused, only the plan in force was repaired.
func TestEffectsOfARejectedPass(t *testing.T) {
	effects := []plan.Effect{{Pool: "workload", Change: events.PoolChanged}}
	touched := store.StepRecord{Step: "nodepools", Changes: []outcome.Change{{Subject: "NodePool/workload", Action: "updated"}}}
	for _, c := range []struct {
		what     string
		problems []params.Problem
		done     []store.StepRecord
		told     int
	}{
		{"before the pools", nil, []store.StepRecord{{Step: "queue", Problems: problem}}, 0},
		{"after them", nil, []store.StepRecord{touched, {Step: "autoscaler", Problems: problem}}, 1},
		{"by validate, and the pools were repaired", problem, []store.StepRecord{touched}, 0},
	} {
		s := begin(t, store.Run{Outcome: "Planned", Goal: "karpenter", Problems: c.problems, Effects: effects}, c.done...)
		e := event("Rejected")
		e.Steps = []string{"queue", "nodepools", "autoscaler"}
		s.run(e)
		_, detail := s.sent()
		if got := s.status().Effects; len(got) != c.told || len(detail.Pools) != c.told {
			t.Errorf("refused %s: %v, %v", c.what, got, detail.Pools)
		}
	}
}
