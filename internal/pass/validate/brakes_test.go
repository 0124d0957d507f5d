package validate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

const frozen, free, bad = "karpenter_freeze=true", "karpenter_freeze=false", "karpenter_cpu_limit=many"

// reconciled returns a rack that is on, in order and reported.
func reconciled(t *testing.T, written ...string) *scene {
	t.Helper()
	s := begin(t, append([]string{auth, on}, written...)...)
	s.all = true
	s.applied(s.validated(false), false)
	s.reported(outcome.StateReconciled)
	return s
}

// wantsFreeze checks the freeze of the plan in force, whether its step has been done, and what the status says is in force.
func (s *scene) wantsFreeze(planned, done bool) {
	s.Helper()
	p, err := s.store.Plan(s.Context(), "demo")
	s.must(err)
	records := s.records()
	step := slices.IndexFunc(p.Due(records.Applied), func(step plan.Step) bool { return step.Name == plan.FreezeStep })
	if p.NodePools.Frozen != planned || (step < 0) != done || records.Frozen() != (planned && done) {
		s.Errorf("planned %v, done %v, in force %v; want %v, %v", p.NodePools.Frozen, step < 0, records.Frozen(), planned, done)
	}
}

// saysOfBrakes reports the last iteration and returns the brakes that the status names, and what it says of the freeze.
func (s *scene) saysOfBrakes(state outcome.State) string {
	s.Helper()
	s.reported(state)
	status := s.status()
	text := string(status.State) + " " + strings.Join(status.Brakes, " ")
	for _, w := range status.Warnings {
		if w.Parameter == params.ParamFreeze {
			text += ": " + w.Message
		}
	}
	return text
}

func (s *scene) brakes(state outcome.State, want string) {
	s.Helper()
	got := s.saysOfBrakes(state)
	if !strings.HasPrefix(got, want) || strings.Contains(got, "freeze") && !strings.Contains(want, "freeze") {
		s.Errorf("the status says %q, want %q", got, want)
	}
}

// The freeze is laid over the last good plan within one pass, whatever is wrong elsewhere, and taken off in the same way.
// Nothing else of the rejected parameters is applied.
func TestAFreezeOfARejectedRack(t *testing.T) {
	s := reconciled(t)
	s.write(bad, "karpenter_memory_limit_gb=7")
	s.wants(s.pass(false), outcome.PassRejected, true, "")
	s.brakes(outcome.StateRejected, "Rejected ")

	s.write(frozen)
	s.wants(s.pass(false), outcome.PassRejected, true, plan.FreezeStep)
	s.wantsFreeze(true, true)
	s.brakes(outcome.StateRejected, "Rejected karpenter_freeze: the freeze is in force")
	if found := s.found(); len(found.Problems) != 1 || found.Problems[0].Parameter != "karpenter_cpu_limit" {
		t.Errorf("problems %v", found.Problems)
	}
	p, err := s.store.Plan(t.Context(), "demo")
	s.must(err)
	if text := fmt.Sprint(p.NodePools.Objects); strings.Contains(text, "memory:7Gi") || !strings.Contains(text, "memory:400Gi") {
		t.Errorf("the plan in force has %s", text)
	}
	s.wants(s.pass(false), outcome.PassRejected, false, "")
	s.wrote(leaseItem)

	s.write("karpenter_freeze")
	s.wants(s.pass(false), outcome.PassRejected, true, plan.FreezeStep)
	s.wantsFreeze(false, true)
	s.brakes(outcome.StateRejected, "Rejected ")
	s.wants(s.pass(false), outcome.PassRejected, false, "")

	t.Log("the parameters are put right while the freeze is in force: it stays")
	s.write(frozen)
	s.pass(false)
	s.reported(outcome.StateRejected)
	s.write("karpenter_cpu_limit", "karpenter_memory_limit_gb")
	s.wants(s.pass(false), outcome.PassPlanned, true, "nodepools")
	s.wantsFreeze(true, true)
	s.brakes(outcome.StateReconciled, "Reconciled karpenter_freeze: the freeze is in force")
	s.write(free)
	s.wants(s.pass(false), outcome.PassPlanned, true, plan.FreezeStep+" nodepools")
	s.wantsFreeze(false, true)
	s.brakes(outcome.StateReconciled, "Reconciled ")
	s.wants(s.pass(true), outcome.PassUnchanged, false, "")
}

// A freeze of the last good plan is taken off too while other parameters are wrong. A full pass repairs besides.
func TestAFreezeIsTakenOffARejectedRack(t *testing.T) {
	s := reconciled(t, frozen)
	s.brakes(outcome.StateReconciled, "Reconciled karpenter_freeze: the freeze is in force")
	s.write(bad)
	s.wants(s.pass(false), outcome.PassRejected, true, "")
	s.brakes(outcome.StateRejected, "Rejected karpenter_freeze: the freeze is in force")
	s.write(free)
	s.wrong = map[string]string{"network": "somebody has changed it"}
	s.wants(s.pass(true), outcome.PassRejected, true, plan.FreezeStep+" network nodepools")
	s.wantsFreeze(false, true)
	s.brakes(outcome.StateRejected, "Rejected ")
}

// A pass that stops before it has done the step says nothing of a freeze in force, and the next one does the step, whatever
// was written meanwhile.
func TestAFreezeThatDidNotArrive(t *testing.T) {
	s := reconciled(t)
	s.write(bad, frozen)
	s.wants(s.validated(false), outcome.PassRejected, true, plan.FreezeStep)
	s.wantsFreeze(true, false)
	s.brakes(outcome.StateRejected, "Rejected : karpenter_freeze is true, and the freeze is not in force, because no pass has done")
	s.wants(s.validated(false), outcome.PassRejected, true, plan.FreezeStep)

	t.Log("taken back before it was there: it may lie over some of the NodePools")
	s.write(free)
	s.wants(s.validated(false), outcome.PassRejected, true, plan.FreezeStep)
	s.wantsFreeze(false, false)
	s.wants(s.pass(false), outcome.PassRejected, true, plan.FreezeStep)
	s.wantsFreeze(false, true)

	t.Log("or taken back together with the bad value")
	s.write(frozen)
	s.validated(false)
	s.write("karpenter_freeze", "karpenter_cpu_limit")
	if answer := s.validated(false); answer.Outcome != outcome.PassPlanned || !slices.Contains(s.steps, "nodepools") {
		t.Errorf("%s, steps %v", answer.Outcome, s.steps)
	}
}

// If any call fails, the freeze is either in force or its step is due, and the next pass ends as if nothing had happened.
func TestAFreezeSurvivesFailures(t *testing.T) {
	for _, then := range []string{frozen, free} {
		for n := 1; ; n++ {
			s := reconciled(t)
			s.write(bad, frozen)
			if !s.failsAt(n) {
				break
			}
			s.write(then)
			s.pass(false)
			s.wantsFreeze(then == frozen, true)
		}
	}
}

// A brake whose own value is refused, or not read, stays as it is.
func TestABrakeWithABadValueStaysAsItIs(t *testing.T) {
	crowd := func(s *scene) {
		for i := range params.MostNames + 1 {
			s.write(fmt.Sprintf("a%03d=x", i))
		}
	}
	for what, spoil := range map[string]func(s *scene){
		"no bool": func(s *scene) { s.write("karpenter_freeze=yes", "paused=yes") },
		"a SecureString": func(s *scene) {
			s.write(free, "paused=false")
			s.cloud.SSM.Secure[folder+"karpenter_freeze"], s.cloud.SSM.Secure[folder+"paused"] = true, true
		},
		"too many names": func(s *scene) { s.write("karpenter_freeze", "paused"); crowd(s) },
	} {
		for _, was := range []bool{true, false} {
			s := reconciled(t, "karpenter_freeze="+fmt.Sprint(was))
			s.write("paused=" + fmt.Sprint(was))
			s.pass(false)
			s.wrong = map[string]string{"network": "somebody has changed it"}
			spoil(s)
			repairs := map[bool]string{true: "", false: "network"}[was]
			s.wants(s.pass(true), outcome.PassRejected, true, repairs)
			if s.records().Paused != was || s.records().Frozen() != was {
				t.Errorf("%s, was %v: paused %v, frozen %v", what, was, s.records().Paused, s.records().Frozen())
			}
			s.brakes(outcome.StateRejected, map[bool]string{
				true: "Rejected karpenter_freeze paused: the freeze is in force", false: "Rejected ",
			}[was])
		}
	}
}

// A rejected rack that is paused is not repaired, and its status says so. Nothing is changed, and so no freeze is laid over
// it or taken off, and the status says that too.
func TestARejectedRackIsPaused(t *testing.T) {
	s := reconciled(t)
	s.write(bad)
	s.pass(false)
	s.reported(outcome.StateRejected)
	s.wrong = map[string]string{"network": "somebody has changed it"}
	s.write("paused=true")
	s.wants(s.pass(true), outcome.PassRejected, true, "")
	s.brakes(outcome.StateRejected, "Rejected paused")
	s.wants(s.pass(true), outcome.PassRejected, false, "")
	if due, err := s.validate.Audit(t.Context(), "demo", 99); err != nil || len(due) > 0 {
		t.Errorf("an audit finds %v, %v", due, err)
	}
	s.write(frozen)
	s.wants(s.pass(true), outcome.PassRejected, true, "")
	s.wantsFreeze(false, true)
	s.brakes(outcome.StateRejected, "Rejected paused: karpenter_freeze is true, and the freeze is not in force, because the rack is paused")

	s.write("paused=false")
	s.wants(s.pass(false), outcome.PassRejected, true, plan.FreezeStep)
	s.brakes(outcome.StateRejected, "Rejected karpenter_freeze: the freeze is in force")
	s.wants(s.pass(true), outcome.PassRejected, true, "network nodepools")
	s.write("paused=true", free)
	s.wants(s.pass(false), outcome.PassRejected, true, "")
	s.brakes(outcome.StateRejected, "Rejected karpenter_freeze paused: "+
		"karpenter_freeze is not true, and the freeze is still in force, because")
	t.Log("a rack that is paused and not rejected: the same")
	s.write("karpenter_cpu_limit")
	s.wants(s.pass(false), outcome.PassPaused, true, plan.FreezeStep+" nodepools")
	s.brakes(outcome.StatePaused, "Paused karpenter_freeze paused: karpenter_freeze is not true, and the freeze is still in force, because")
	s.write("paused=false")
	s.wants(s.pass(false), outcome.PassPlanned, true, plan.FreezeStep+" nodepools")
	s.brakes(outcome.StateReconciled, "Reconciled ")
}

// The schedule's audit finds a freeze that no pass has brought.
func TestALookFindsAFreezeThatIsDue(t *testing.T) {
	s := audited(t)
	s.write(bad)
	s.pass(false)
	s.reported(outcome.StateRejected)
	s.write(frozen)
	if got := s.looked(); got != "nodepools "+plan.FreezeStep+" status" {
		t.Errorf("found %q", got)
	}
	s.pass(true)
	s.reported(outcome.StateRejected)
	if got := s.looked(); got != "" {
		t.Errorf("after a full pass: %q", got)
	}
}

// Where there is no NodePool, there is nothing to lay a freeze over, and none is said to be in force.
func TestAFreezeWithoutNodePools(t *testing.T) {
	s := begin(t, auth, bad, frozen)
	s.wants(s.pass(false), outcome.PassRejected, true, "")
	s.brakes(outcome.StateRejected, "Rejected ")
	s.write("karpenter_cpu_limit")
	s.wants(s.pass(false), outcome.PassPlanned, true, prepare)
	s.brakes(outcome.StateReconciled, "Reconciled ")
	s.write(on)
	s.pass(false)
	s.wantsFreeze(true, true)
	s.brakes(outcome.StateReconciled, "Reconciled karpenter_freeze: the freeze is in force")

	t.Log("while Karpenter is turned off")
	s.write(off)
	s.pass(false)
	s.brakes(outcome.StateReconciled, "Reconciled karpenter_freeze: the freeze is in force")
	s.must(s.store.Checkpoints().RecordOnce(t.Context(), "demo", outcome.CheckpointOff, []byte("{}")))
	s.write("high_availability=x", free)
	s.wants(s.validated(false), outcome.PassRejected, true, "")
	t.Log("and when it is off")
	records := s.records()
	records.WasOn = false
	s.must(s.store.SaveRecords(t.Context(), "demo", records))
	s.write("high_availability", frozen)
	s.pass(false)
	s.brakes(outcome.StateReconciled, "Reconciled ")
}

// Turning off that is rejected for another parameter leaves the last good plan in force, so the freeze is laid over that.
func TestAFreezeWhileTurningOffIsRejected(t *testing.T) {
	s := reconciled(t)
	s.write(off, "high_availability=x", frozen)
	s.wants(s.pass(false), outcome.PassRejected, true, plan.FreezeStep)
	s.wantsFreeze(true, true)
	s.brakes(outcome.StateRejected, "Rejected karpenter_freeze: the freeze is in force")
}

// A mistake in the cluster's name is a mistake like any other: the freeze reaches the cluster of the last good plan. If that
// cluster is gone, there is nothing to freeze.
func TestAFreezeBesideAnotherClusterName(t *testing.T) {
	s := reconciled(t)
	s.write("cluster_name=dmeo", frozen)
	s.wants(s.pass(false), outcome.PassRejected, true, plan.FreezeStep)
	s.wantsFreeze(true, true)
	s.brakes(outcome.StateRejected, "Rejected karpenter_freeze: the freeze is in force")
	s.write("cluster_name=demo", free)
	s.cloud.EKS.Cluster = nil
	s.wants(s.pass(true), outcome.PassRejected, true, "")
}

// During a change of Karpenter's version, a freeze comes before the controller, also if the write that asks for it is
// rejected.
func TestAFreezeDuringAChangeOfVersion(t *testing.T) {
	s := running(t)
	s.put("1.12.1")
	s.tries("1.12.1")
	s.write(bad, frozen)
	answer := s.validated(false)
	if answer.Outcome != outcome.PassRejected || s.steps[0] != plan.FreezeStep || !slices.Contains(s.steps, "controller/release") {
		t.Fatalf("%s, steps %v", answer.Outcome, s.steps)
	}
	if got, previous := s.planned(); got != "1.12.1" || previous == nil {
		t.Errorf("a plan for %s, previous %v", got, previous)
	}
	s.applied(answer, true) // the version fails, and the one before comes back
	s.wantsFreeze(true, true)
	s.applied(s.validated(false), false)
	s.write(free)
	s.wants(s.pass(false), outcome.PassRejected, true, plan.FreezeStep)
	s.wantsFreeze(false, true)
}

// A freeze does not wait for a change to be written, and one that comes with a refused change is none. What is wrong elsewhere
// refuses no change that has no part in it.
func TestAFreezeAndChanges(t *testing.T) {
	s := reconciled(t)
	s.change(`{"set":{"karpenter_freeze":"true","karpenter_memory_limit_gb":"500"}}`)
	s.wants(s.validated(false), outcome.PassPlanned, true, plan.FreezeStep+" change nodepools")
	s.write(bad)
	s.wants(s.validated(false), outcome.PassRejected, true, plan.FreezeStep+" change")
	s.applied(Answer{Steps: []plan.Step{s.step(plan.FreezeStep)}}, false)
	s.wantsFreeze(true, true)

	s = reconciled(t)
	s.change(`{"set":{"karpenter_freeze":"true","karpenter_memory_limit_gb":"x"}}`)
	s.wants(s.validated(false), outcome.PassUnchanged, true, "")
	s.wantsFreeze(false, true)
	s.write(bad)
	s.change(`{"set":{"karpenter_freeze":"true"}}`)
	s.wants(s.validated(false), outcome.PassRejected, true, plan.FreezeStep+" change")
	if !slices.Equal(s.refused, []string{"1: karpenter_memory_limit_gb"}) {
		t.Errorf("refused %v", s.refused)
	}
}

// step returns a step of the plan in force.
func (s *scene) step(name string) plan.Step {
	s.Helper()
	p, err := s.store.Plan(s.Context(), "demo")
	s.must(err)
	return p.Steps[slices.IndexFunc(p.Steps, func(step plan.Step) bool { return step.Name == name })]
}

// Deleting all parameters leaves the rack as it is, with a freeze that was laid over it while it was rejected.
func TestTheWholeTreeIsDeletedDuringAFreeze(t *testing.T) {
	s := reconciled(t)
	s.write(bad, frozen)
	s.pass(false)
	clear(s.cloud.SSM.Values)
	s.pass(false)
	s.wantsFreeze(true, true)
	if !maps.Equal(s.records().Params, map[string]string{
		"karpenter_auth_mode": "true", "karpenter_enabled": "true", "karpenter_freeze": "true", "cluster_name": "demo",
	}) {
		t.Errorf("in force %v", s.records().Params)
	}
}
