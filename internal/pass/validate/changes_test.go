package validate

import (
	"slices"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

func (s *scene) changes() string {
	s.Helper()
	changes, err := s.store.Changes(s.Context(), "demo")
	s.must(err)
	var all []string
	for _, c := range changes {
		all = append(all, c.ID+" "+string(c.State))
	}
	return strings.Join(all, ", ")
}

// A valid change takes effect as a whole before any of it is in Parameter Store. Writing it is the first step.
func TestAChangeCountsAsAWhole(t *testing.T) {
	s := begin(t, "node_disk=20")
	s.request("a", `{"rack":"demo","set":{"karpenter_auth_mode":"true","karpenter_enabled":"true","karpenter_cpu_limit":"7"}}`)
	answer := s.pass(false)
	s.wants(answer, outcome.PassPlanned, true, "change "+enable)
	if p := s.records().Params; p["karpenter_cpu_limit"] != "7" || s.changes() != "a accepted" {
		t.Errorf("in force %v, changes %s", p, s.changes())
	}
	t.Log("until it is written, each pass lays it over the tree")
	s.wants(s.pass(false), outcome.PassPlanned, true, "change")
	t.Log("a dry run counts it too")
	s.cloud.Forget()
	if _, err := s.validate.Run(s.Context(), Event{Rack: "demo", DryRun: true}); err != nil || stepNames(s.dry) != "change" {
		t.Errorf("%v: %s", err, stepNames(s.dry))
	}
	s.wrote()
	t.Log("when it is written, nothing is left to do")
	s.write("karpenter_auth_mode=true", "karpenter_enabled=true", "karpenter_cpu_limit=7")
	s.must(s.store.Finish(s.Context(), "demo", "a"))
	s.wants(s.pass(false), outcome.PassUnchanged, true, "")
}

// An invalid change is refused as a whole, is reported, and leaves the rack as it was. The changes before and after it
// take effect.
func TestABadChangeIsRefused(t *testing.T) {
	s := begin(t, auth, on)
	s.pass(false)
	s.request("a", `{"set":{"karpenter_cpu_limit":"7"}}`)
	s.request("b", `{"set":{"karpenter_cpu_limit":"8","karpenter_auth_mode":"false"}}`)
	s.request("c", `{"set":{"node_disk":"x","karpenter_memory_limit_gb":"9"}}`)
	s.request("d", `{"set":[]}`)
	s.request("e", `{"set":{"karpenter_memory_limit_gb":"10"},"unset":["karpenter_enabled"]}`)
	s.wants(s.pass(false), outcome.PassPlanned, true, "change nodepools")
	if want := []string{"b: karpenter_auth_mode", "c: node_disk", "d: rack"}; !slices.Equal(s.refused, want) {
		t.Errorf("refused %v, want %v", s.refused, want)
	}
	if p := s.records().Params; p["karpenter_cpu_limit"] != "7" || p["karpenter_memory_limit_gb"] != "10" ||
		s.changes() != "a accepted, e accepted" {
		t.Errorf("in force %v, changes %s", p, s.changes())
	}
}

// A dry run neither accepts nor refuses.
func TestADryRunJudgesNoChange(t *testing.T) {
	s := begin(t, auth)
	s.request("a", `{"set":{"node_disk":"x"}}`)
	s.cloud.Forget()
	if _, err := s.validate.Run(s.Context(), Event{Rack: "demo", DryRun: true}); err != nil ||
		len(s.refused) > 0 || s.changes() != "a requested" {
		t.Errorf("%v: refused %v, changes %s", err, s.refused, s.changes())
	}
	s.wrote()
}

// For a rack that never asked for a change, Sawhorse writes change requests and does nothing else.
func TestAChangeOfARackThatAsksForNothing(t *testing.T) {
	s := begin(t, "node_disk=20")
	s.request("a", `{"set":{"karpenter_cpu_limit":"7"}}`)
	s.wants(s.validated(false), outcome.PassPlanned, true, "change")
	claimant, err := s.store.ClusterLock(t.Context(), "arn:aws:eks:eu-central-1:123456789012:cluster/demo")
	if err != nil || claimant != "" || s.records().Goal != "" {
		t.Errorf("%v: claimed by %q, %+v", err, claimant, s.records())
	}
}

// An accepted change is written completely, even if the rack's parameters have become invalid since.
func TestAnAcceptedChangeIsWrittenToItsEnd(t *testing.T) {
	s := begin(t, auth, on)
	s.pass(false)
	s.request("a", `{"set":{"karpenter_cpu_limit":"7"}}`)
	s.validated(false)
	s.write("node_disk=x")
	s.wants(s.validated(false), outcome.PassRejected, true, "change")
	if full := s.validated(true); full.Outcome != outcome.PassRejected || full.Steps[0].Name != "change" ||
		len(full.Steps) != 1+len(strings.Fields(enable)) {
		t.Errorf("a full pass: %s, %s", full.Outcome, stepNames(full.Steps))
	}
}

// For a paused rack, Sawhorse writes change requests and does nothing else. After that, a later write takes effect.
func TestAChangeOfAPausedRackIsWritten(t *testing.T) {
	s := begin(t, auth, on)
	s.pass(false)
	s.request("a", `{"set":{"paused":"true","karpenter_cpu_limit":"7"}}`)
	for _, full := range []bool{false, true} {
		s.wants(s.validated(full), outcome.PassPaused, true, "change")
	}
	s.reported(outcome.StatePaused)
	s.write("paused=true", "karpenter_cpu_limit=7")
	s.must(s.store.Finish(s.Context(), "demo", "a"))
	s.wants(s.pass(false), outcome.PassPaused, true, "nodepools")
	s.write("paused=false")
	s.wants(s.pass(false), outcome.PassPlanned, true, "nodepools")
}

// If any call fails, the repeated pass has the same result.
func TestChangesSurviveFailures(t *testing.T) {
	for n := 1; n < 60; n++ {
		s := begin(t, auth)
		s.pass(false)
		s.request("a", `{"set":{"karpenter_enabled":"true"}}`)
		s.request("b", `{"set":{"node_disk":"x"}}`)
		s.lease("me", false)
		s.cloud.FailAt(n, awsfake.Throttling)
		_, err := s.validate.Run(s.Context(), Event{Rack: "demo", Execution: "me"})
		if !s.cloud.Failed() {
			if err != nil || n < 10 {
				t.Fatalf("call %d: %v", n, err)
			}
			return
		}
		if err == nil {
			t.Errorf("call %d failed, and nobody says so", n)
		}
		answer := s.validated(false)
		if answer.Outcome != outcome.PassPlanned || answer.Steps[0].Name != plan.ChangeStep.Name ||
			s.changes() != "a "+string(store.ChangeAccepted) {
			t.Errorf("after call %d: %s %s, changes %s", n, answer.Outcome, stepNames(answer.Steps), s.changes())
		}
	}
	t.Error("no end")
}
