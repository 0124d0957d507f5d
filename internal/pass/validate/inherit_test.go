package validate

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/canonical"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// upgraded replaces the rack's plan by the one that an earlier release, with other defaults, would have made: nodes would be
// replaced if it were not kept.
func (s *scene) upgraded() {
	s.Helper()
	p, err := s.store.Plan(s.Context(), "demo")
	s.must(err)
	text := strings.ReplaceAll(string(canonical.JSON(p)), `"httpPutResponseHopLimit":1`, `"httpPutResponseHopLimit":2`)
	var earlier plan.Plan
	s.must(json.Unmarshal([]byte(text), &earlier))
	earlier.SetFingerprints()
	s.must(s.store.SavePlan(s.Context(), &earlier))
	for _, step := range earlier.Steps {
		s.must(s.store.NoteApplied(s.Context(), "demo", step, nil))
	}
}

// kept reports whether the plan in force has the pools of the earlier release.
func (s *scene) kept() bool {
	s.Helper()
	p, err := s.store.Plan(s.Context(), "demo")
	s.must(err)
	return strings.Contains(string(canonical.JSON(p.NodePools)), `"httpPutResponseHopLimit":2`)
}

// After an upgrade of Sawhorse passes keep the pools, whatever else changes, until a parameter of the pool does.
func TestAnUpgradeKeepsThePools(t *testing.T) {
	s := begin(t, "karpenter_auth_mode=true", "karpenter_enabled=true")
	s.all = true
	s.pass(false)
	s.upgraded()
	for what, write := range map[string]string{
		"nothing": "", "of the node role": "node_policy_arns=arn:aws:iam::aws:policy/A", "of the controller": "high_availability=false",
	} {
		if write != "" {
			s.write(write)
		}
		s.pass(true)
		if !s.kept() || slices.Contains(s.steps, "nodepools") {
			t.Errorf("%s: kept %t, steps %v", what, s.kept(), s.steps)
		}
	}
	s.write("karpenter_node_disk=50")
	if s.pass(false); s.kept() || !slices.Contains(s.steps, "nodepools") {
		t.Errorf("a parameter of the pool: kept %t, steps %v", s.kept(), s.steps)
	}
}

// A freeze of a rejected rack is laid over the plan in force, and leaves known what that was made from.
func TestAnUpgradeKeepsThePoolsAfterAFreeze(t *testing.T) {
	s := begin(t, "karpenter_auth_mode=true", "karpenter_enabled=true")
	s.all = true
	s.pass(false)
	s.write(bad)
	s.pass(false)
	s.write(frozen)
	s.wants(s.pass(false), outcome.PassRejected, true, plan.FreezeStep)
	s.upgraded()
	s.write("karpenter_cpu_limit")
	if s.pass(false); !s.kept() {
		t.Errorf("steps %v", s.steps)
	}
}

// A dry run is asked with the words that a pass would have.
func TestADryRunWithForce(t *testing.T) {
	s := begin(t, "karpenter_auth_mode=true", "karpenter_enabled=true")
	s.all = true
	s.pass(false)
	s.upgraded()
	for _, force := range []events.Force{nil, {events.ForceNewDefaults}} {
		_, err := s.validate.Run(t.Context(), Event{Rack: "demo", DryRun: true, Force: force})
		s.must(err)
		if got := strings.Contains(stepNames(s.dry), "nodepools"); got != (len(force) > 0) {
			t.Errorf("force %v: steps %s", force, stepNames(s.dry))
		}
	}
}

// The text behind a parameter changes, and the parameter does not.
func TestAnUpgradeKeepsNoPoolWhoseObjectHasChanged(t *testing.T) {
	const uri = "s3://config/racks/pool.json"
	object := func(s *scene, iops string) {
		s.cloud.S3.Objects[strings.TrimPrefix(uri, "s3://")] = `{"nodePool":{"template":{"metadata":{"labels":{"iops":"` + iops + `"}}}}}`
	}
	for _, iops := range []string{"1", "2"} {
		s := begin(t, "karpenter_auth_mode=true", "karpenter_enabled=true", "karpenter_config="+uri)
		object(s, "1")
		s.pass(false)
		s.upgraded()
		object(s, iops)
		if s.pass(false); s.kept() != (iops == "1") {
			t.Errorf("object %s: kept %t", iops, s.kept())
		}
	}
}

// A pass that accepts a change of a pool is stopped after it saved the records, before it saved the plan. The change is not
// mistaken for one of Sawhorse.
func TestAChangeIsNotLostToAStoppedPass(t *testing.T) {
	s := begin(t, "karpenter_auth_mode=true", "karpenter_enabled=true")
	s.pass(false)
	before, err := s.store.Plan(t.Context(), "demo")
	s.must(err)
	s.write("karpenter_node_disk=50")
	s.validated(false)
	s.must(s.store.SavePlan(t.Context(), before))
	s.pass(false)
	after, err := s.store.Plan(t.Context(), "demo")
	s.must(err)
	if text := string(canonical.JSON(after.NodePools)); !strings.Contains(text, `"volumeSize":"50Gi"`) {
		t.Errorf("the change is lost: steps %v, %s", s.steps, text)
	}
}
