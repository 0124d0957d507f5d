package validate

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/canonical"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

// upgraded replaces the rack's plan by the one that an earlier release, with other defaults, would have made: nodes would be
// replaced if it were not kept.
func (s *scene) upgraded() {
	s.Helper()
	for _, step := range s.saveUpgraded().Steps {
		s.must(s.store.NoteApplied(s.Context(), "demo", step, nil))
	}
}

// saveUpgraded is upgraded, of a plan that was not applied.
func (s *scene) saveUpgraded() plan.Plan {
	s.Helper()
	p, err := s.store.Plan(s.Context(), "demo")
	s.must(err)
	text := strings.ReplaceAll(string(canonical.JSON(p)), `"httpPutResponseHopLimit":1`, `"httpPutResponseHopLimit":2`)
	var earlier plan.Plan
	s.must(json.Unmarshal([]byte(text), &earlier))
	earlier.SetFingerprints()
	s.must(s.store.SavePlan(s.Context(), &earlier))
	return earlier
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

// What keeps a pool is what was applied of it. It does so after a pass that was stopped between its two saves, after a version of
// Karpenter that failed before the pools, and after a change of the pool that was taken back before it was applied.
func TestAnUpgradeKeepsThePoolsThatWereApplied(t *testing.T) {
	for what, happens := range map[string]func(s *scene){
		"a pass that is stopped between its saves": func(s *scene) {
			s.write("node_policy_arns=arn:aws:iam::aws:policy/A")
			s.stopped("DynamoDB.PutItem plan#demo plan")
		},
		"a version that fails": func(s *scene) {
			s.put("1.12.1")
			s.applied(s.tries("1.12.1"), true)
		},
		"a change that is taken back": func(s *scene) {
			s.write("karpenter_node_disk=50")
			s.validated(false)
			s.write("karpenter_node_disk")
		},
		"a change that is taken back after two passes": func(s *scene) {
			s.write("karpenter_node_disk=50")
			s.validated(false)
			s.write("high_availability=false")
			s.validated(false)
			s.write("karpenter_node_disk=20")
		},
	} {
		s := running(t)
		s.upgraded()
		happens(s)
		if s.validated(false); !s.kept() {
			t.Errorf("%s: the pools are not kept", what)
		}
		found, err := s.store.Run(t.Context(), "demo", int64(s.requests)-1, int64(s.requests))
		if s.must(err); len(found.Effects) > 0 || !slices.ContainsFunc(found.Warnings, func(w params.Problem) bool {
			return strings.Contains(w.Message, "stays as it was applied")
		}) {
			t.Errorf("%s: effects %v, warnings %v", what, found.Effects, found.Warnings)
		}
	}
}

// A version that fails while the parameters are refused comes back with the pools that it had.
func TestAVersionThatFailedComesBackWithItsPools(t *testing.T) {
	s := running(t)
	s.upgraded()
	s.put("1.12.1")
	s.applied(s.tries("1.12.1"), true)
	s.write(bad)
	answer := s.validated(false)
	if version, _ := s.planned(); version != "1.10.0" || answer.Outcome != outcome.PassRejected || !s.kept() {
		t.Errorf("%s: a plan for %s, kept %t", answer.Outcome, version, s.kept())
	}
}

// stopped runs a pass in which a call fails.
func (s *scene) stopped(call string) {
	s.Helper()
	s.lease("me", false)
	s.cloud.Before = func(is string) error {
		if is == call {
			return awsfake.Throttling
		}
		return nil
	}
	if _, err := s.validate.Run(s.Context(), Event{Rack: "demo", Execution: "me"}); err == nil {
		s.Fatalf("no call of %s", call)
	}
	s.cloud.Before = nil
}

// What a request with force has accepted, or what an earlier release has, stays too if it was not applied yet.
func TestWhatWasAcceptedStays(t *testing.T) {
	s := begin(t, auth, on)
	s.pass(false)
	s.upgraded()
	s.forced(false, events.ForceNewDefaults)
	for _, write := range []string{"", "high_availability=false"} {
		if write != "" {
			s.write(write)
		}
		if s.validated(false); s.kept() {
			t.Errorf("%q: the pools are back at what a request by force has replaced", write)
		}
	}

	s = begin(t, auth, on)
	s.pass(false)
	s.write("karpenter_node_disk=50")
	s.validated(false)
	s.saveUpgraded()
	s.write("high_availability=false")
	if s.validated(false); !s.kept() {
		t.Error("the pools are not kept as they were accepted")
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
