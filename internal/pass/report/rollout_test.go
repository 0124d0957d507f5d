package report

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

// applied has a pass with Karpenter that has run its steps.
func applied(t *testing.T) scene {
	t.Helper()
	s := begin(t, store.Run{Outcome: "Planned", Goal: "karpenter"}, done)
	s.must(s.store.SaveRecords(t.Context(), "demo", plan.Records{Goal: plan.GoalKarpenter, WasOn: true}))
	pool := func(kind, name string) plan.Object {
		return plan.Object{"kind": kind, "metadata": map[string]any{"name": name}}
	}
	s.must(s.store.SavePlan(t.Context(), &plan.Plan{
		Format: plan.Format, Rack: "demo", Goal: plan.GoalKarpenter, Cluster: plan.Cluster{Name: "east"},
		NodePools: plan.NodePools{Objects: []plan.Object{pool("EC2NodeClass", "workload"), pool("NodePool", "workload"), pool("NodePool", "a")}},
	}))
	s.cloud.Forget()
	return s
}

func (s scene) rollout() *store.Rollout {
	s.Helper()
	rollout, err := s.store.Rollout(s.Context(), "demo")
	s.must(err)
	return rollout
}

// again has another pass report, with another generation.
func (s scene) again(generation int64, run store.Run, e Event, steps ...store.StepRecord) {
	s.Helper()
	s.run(s.next(generation, run, e, steps...))
}

// next writes what another pass has recorded, and returns the event with which it reports.
func (s scene) next(generation int64, run store.Run, e Event, steps ...store.StepRecord) Event {
	s.Helper()
	run.Rack, run.Generation, run.Execution, run.Started = "demo", generation, "me too", s.cloud.Now()
	s.must(s.store.SaveRun(s.Context(), run))
	for _, step := range steps {
		s.must(s.store.NoteStep(s.Context(), "demo", generation, s.cloud.Now(), step))
	}
	s.cloud.Table.Items["rack#demo lease"]["owner"] = &types.AttributeValueMemberS{Value: "me too"}
	e.Generation, e.Execution = generation, "me too"
	return e
}

func TestTheNodesFollowAPass(t *testing.T) {
	s := applied(t)
	s.run(event("Planned"))
	got := s.rollout()
	if got == nil || got.Generation != 7 || got.Execution != "me" || !got.Started.Equal(event("").Started) || !got.Ended.IsZero() ||
		got.Cluster.Name != "east" || !slices.Equal(got.Names, []string{"a", "workload"}) || s.cloud.Now().Sub(got.Applied) > time.Minute {
		t.Fatalf("%+v", got)
	}
	if status := s.status(); status.Rollout == nil || status.Rollout.Generation != 7 || status.Rollout.Ended != "" {
		t.Errorf("%+v", status.Rollout)
	}
	// A look has found a degraded pool since, and that the nodes have followed.
	got.Ended, got.Pools = s.cloud.Now(), store.Pools{{Pool: "workload", Nodes: 2, Reason: "r"}}
	s.must(s.store.SaveRollout(t.Context(), *got))
	s.again(8, store.Run{Outcome: "Planned", Goal: "karpenter"}, event("Planned"), done)
	got = s.rollout()
	if got.Generation != 8 || got.Execution != "me too" || !got.Ended.IsZero() || len(got.Pools) != 1 {
		t.Errorf("%+v", got)
	}
	if status := s.status(); status.State != outcome.StateDegraded || len(status.Pools) != 1 || status.Rollout.Generation != 8 {
		t.Errorf("%+v", status)
	}
	reported, err := s.store.Reported(t.Context(), "demo")
	s.must(err)
	record, err := reported.Status()
	if err != nil || record.State != outcome.StateReconciled || record.Pools != nil || record.Rollout != nil {
		t.Errorf("the record of the pass has what the nodes do: %+v, %v", record, err)
	}
}

// The nodes do not follow a pass that did not end well. What was known of them stays in the status.
func TestThePoolsOfAPassThatEndsOtherwise(t *testing.T) {
	failed := event("Failed")
	failed.Error, failed.Step = "StepFailed", "queue"
	for state, e := range map[outcome.State]Event{
		outcome.StateFailed: failed, outcome.StateRejected: event("Rejected"), outcome.StatePaused: event("Paused"),
	} {
		s := applied(t)
		s.run(event("Planned"))
		known := s.rollout()
		known.Pools = store.Pools{{Pool: "workload", Reason: "r"}}
		s.must(s.store.SaveRollout(t.Context(), *known))
		s.again(8, store.Run{Outcome: e.Outcome, Goal: "karpenter", Problems: problem}, e)
		if got := s.rollout(); got.Generation != 7 {
			t.Errorf("%s: %+v", state, got)
		}
		if status := s.status(); status.State != state || len(status.Pools) != 1 || status.Rollout.Generation != 7 {
			t.Errorf("%s: %+v", state, status)
		}
	}
}

// A pass removes a pool and fails in a later step: the schedule does not miss the pool. One that fails while it removes pools may not
// have removed it.
func TestAPoolThatAPassHasRemovedWhichThenFails(t *testing.T) {
	for _, c := range []struct {
		failed  string
		planned int // objects of the plan: those of the pool workload, or none if Karpenter is to be off
		want    []string
	}{{"infrastructure", 2, []string{"workload"}}, {"nodepools", 2, []string{"a", "workload"}}, {"queue", 0, nil}} {
		s := applied(t)
		s.run(event("Planned"))
		known := s.rollout()
		known.Pools = store.Pools{{Pool: "a", Ready: true}, {Pool: "workload", Ready: true}}
		s.must(s.store.SaveRollout(t.Context(), *known))
		p, err := s.store.Plan(t.Context(), "demo")
		s.must(err)
		p.NodePools.Objects = p.NodePools.Objects[:c.planned]
		s.must(s.store.SavePlan(t.Context(), p))
		e := event("Failed")
		e.Error, e.Step = "StepFailed", c.failed
		s.again(8, store.Run{Outcome: "Failed", Goal: "karpenter"}, e,
			store.StepRecord{Step: "nodepools", Changes: []outcome.Change{{Action: "deleted", Subject: "NodePool/a"}}})
		if got := s.rollout(); !slices.Equal(got.Names, c.want) || len(got.Pools) != len(c.want) || got.Generation != 7 ||
			got.Ended.IsZero() != (len(c.want) > 0) { // otherwise the schedule would say that all nodes have followed
			t.Errorf("%s fails: %+v", c.failed, got)
		}
	}
}

// Turning off that is refused in a pass that has changed pools before takes none of those away that the pass has left.
func TestPoolsWhileTurningOffIsRefused(t *testing.T) {
	for _, begun := range []bool{false, true} {
		s := applied(t)
		s.run(event("Planned"))
		last, err := s.store.Plan(t.Context(), "demo")
		s.must(err)
		last.Goal, last.Steps = plan.GoalKarpenter, []plan.Step{{Name: "nodepools", Fingerprint: "1"}}
		last.NodePools.Objects = last.NodePools.Objects[:2] // without the pool a, which the pass took away before
		s.must(s.store.SavePlan(t.Context(), &plan.Plan{Format: plan.Format, Rack: "demo", Goal: plan.GoalAccess, Last: last,
			Steps: []plan.Step{{Name: plan.FitStep, Fingerprint: "2"}, {Name: "nodepools", Fingerprint: "3"}}}))
		if begun {
			s.must(s.store.Checkpoints().RecordOnce(t.Context(), "demo", outcome.CheckpointOff, nil))
		}
		s.again(8, store.Run{Outcome: "Rejected", Goal: "access"}, event("Rejected"),
			store.StepRecord{Step: "nodepools", Changes: []outcome.Change{{Action: "changed", Subject: "NodePool/a"}}})
		want := map[bool][]string{false: {"workload"}, true: nil}[begun]
		if got := s.rollout(); !slices.Equal(got.Names, want) || got.Ended.IsZero() == begun {
			t.Errorf("begun %v: %+v", begun, got)
		}
	}
}

// The schedule looks at the nodes of a rack whose first pass made the pools and failed later, and the next pass that ends well begins the
// rollout. A pass that did not come to the pools is followed by nothing.
func TestThePoolsOfAFirstPassThatFails(t *testing.T) {
	failed := event("Failed")
	failed.Error, failed.Step, failed.Steps = "StepFailed", "autoscaler", []string{"access", "nodepools", "proof", "autoscaler"}
	early := failed
	early.Step = "access"
	for _, c := range []struct {
		event Event
		steps []store.StepRecord
		looks bool
	}{
		{failed, []store.StepRecord{{Step: "nodepools", Changes: []outcome.Change{{Action: "created", Subject: "NodePool/workload"}}}}, true},
		{early, nil, false},
	} {
		s := applied(t)
		p, err := s.store.Plan(t.Context(), "demo")
		s.must(err)
		p.Nodegroups.Migration.Groups = []string{"apps"}
		s.must(s.store.SavePlan(t.Context(), p))
		s.again(8, store.Run{Outcome: "Failed", Goal: "karpenter"}, c.event, c.steps...)
		got := s.rollout()
		if (got != nil) != c.looks {
			t.Fatalf("%s: %+v", c.event.Step, got)
		}
		if !c.looks {
			continue
		}
		if len(got.Names) == 0 || got.Cluster.Name != "east" || got.Ended.IsZero() || len(got.Migration.Groups) > 0 {
			t.Errorf("%+v", got)
		}
		s.again(9, store.Run{Outcome: "Planned", Goal: "karpenter"}, event("Planned"))
		if got := s.rollout(); got.Generation != 9 || !got.Ended.IsZero() || len(got.Migration.Groups) == 0 {
			t.Errorf("%+v", got)
		}
	}
}

// A pass that has applied the pools has waited until they were Ready. That nodes do not register, it does not know.
func TestThePoolsAreReadyAfterTheirStep(t *testing.T) {
	for step, want := range map[string]store.Pools{
		"queue": {{Pool: "b", Reason: "r", Since: "s"}, {Pool: "c", Ready: true, Unregistered: 1, Reason: "r", Since: "s"},
			{Pool: "d", Ready: true, Reason: "its launches fail", Since: "s"}, {Pool: "a", Outdated: 1, Since: "s"}},
		"nodepools": {{Pool: "c", Ready: true, Unregistered: 1, Reason: "r", Since: "s"},
			{Pool: "d", Ready: true, Reason: "its launches fail", Since: "s"}, {Pool: "a", Ready: true, Outdated: 1, Since: "s"},
			{Pool: "b", Ready: true}},
	} {
		s := applied(t)
		s.run(event("Planned"))
		known := s.rollout()
		known.Pools = store.Pools{{Pool: "a", Outdated: 1, Since: "s"}, {Pool: "b", Since: "s", Reason: "r"},
			{Pool: "c", Ready: true, Unregistered: 1, Since: "s", Reason: "r"},
			{Pool: "d", Ready: true, Since: "s", Reason: "its launches fail"}}
		s.must(s.store.SaveRollout(t.Context(), *known))
		e := event("Planned")
		e.Steps = []string{step}
		s.again(8, store.Run{Outcome: "Planned", Goal: "karpenter"}, e, done)
		if got := s.status().Pools; !slices.Equal(got, want) {
			t.Errorf("%s: %+v", step, got)
		}
	}
}

// A pass that has nothing new to tell begins no rollout, unless there is none.
func TestARolloutBeginsWithNewsOnly(t *testing.T) {
	s := applied(t)
	s.run(event("Planned"))
	s.again(8, store.Run{Outcome: "Unchanged", Goal: "karpenter"}, event("Unchanged"), store.StepRecord{Step: "queue", Warnings: warning})
	if got := s.rollout(); got.Generation != 7 {
		t.Errorf("%+v", got)
	}
	s.must(s.store.EndRollout(t.Context(), "demo"))
	s.again(9, store.Run{Outcome: "Unchanged", Goal: "karpenter"}, event("Unchanged"), store.StepRecord{Step: "queue", Warnings: warning})
	if got := s.rollout(); got == nil || got.Generation != 9 {
		t.Errorf("%+v", got)
	}
}

func TestKarpenterOffEndsTheRollout(t *testing.T) {
	s := applied(t)
	s.run(event("Planned"))
	s.must(s.store.SavePlan(t.Context(), &plan.Plan{Format: plan.Format, Rack: "demo", Goal: plan.GoalAccess}))
	s.again(8, store.Run{Outcome: "Planned", Goal: "access"}, event("Planned"), done)
	if status := s.status(); s.rollout() != nil || status.Rollout != nil || len(status.Pools) > 0 || status.State != outcome.StateReconciled {
		t.Errorf("%+v, %+v", s.rollout(), status)
	}
}

// recovered returns the events of racks that have recovered.
func (s scene) recovered() (all []events.Recovered) {
	s.Helper()
	for _, sent := range s.cloud.Events.Sent {
		if *sent.DetailType == events.TypeRecovered {
			var one events.Recovered
			s.must(json.Unmarshal([]byte(*sent.Detail), &one))
			all = append(all, one)
		}
	}
	return all
}

// A rack that is degraded while Karpenter is turned off, or while it is forgotten, recovers once, and one that is not does not.
func TestADegradedRackThatIsTurnedOffRecovers(t *testing.T) {
	for what, c := range map[string]struct {
		outcome  outcome.Outcome
		degraded bool
		want     int
	}{
		"off": {"Planned", true, 1}, "off, not degraded": {"Planned", false, 0}, "forgotten": {"Forgotten", true, 1},
	} {
		s := applied(t)
		s.run(event("Planned"))
		known := s.rollout()
		if c.degraded {
			known.Degraded = s.cloud.Now().Add(-time.Hour)
		}
		s.must(s.store.SaveRollout(t.Context(), *known))
		s.must(s.store.SavePlan(t.Context(), &plan.Plan{Format: plan.Format, Rack: "demo", Goal: plan.GoalAccess}))
		e := s.next(8, store.Run{Outcome: c.outcome, Goal: "access"}, event(c.outcome), done)
		s.run(e)
		if c.outcome == "Planned" {
			s.run(e) // repeated
		}
		all := s.recovered()
		if len(all) != c.want {
			t.Errorf("%s: %+v", what, all)
			continue
		}
		for _, one := range all {
			if one.Rack != "demo" || one.Generation != 8 || one.Execution != "me too" || one.DurationSeconds < 3600 || one.DurationSeconds > 3660 {
				t.Errorf("%s: %+v", what, one)
			}
		}
	}
}

// stoppedAt has a report stopped at its n-th call, and repeats it. It returns false if the report has fewer calls.
func (s scene) stoppedAt(n int, e Event, between func()) bool {
	s.Helper()
	s.cloud.Forget()
	s.cloud.FailAt(n, awsfake.Throttling)
	_, err := s.report.Run(s.Context(), e)
	if !s.cloud.Failed() {
		if n < 10 {
			s.Errorf("only %d calls", n)
		}
		return false
	}
	if err == nil {
		s.Errorf("call %d failed and the report did not", n)
	}
	s.cloud.FailAt(0, nil)
	between()
	s.run(e)
	return true
}

// A report that ends the rollout may be stopped anywhere: the rollout of a rack without Karpenter would be looked at for
// ever, and one that was degraded would never recover.
func TestAReportThatEndsARolloutMayBeStopped(t *testing.T) {
	for n := 1; ; n++ {
		s := applied(t)
		s.run(event("Planned"))
		known := s.rollout()
		known.Degraded = s.cloud.Now()
		s.must(s.store.SaveRollout(t.Context(), *known))
		s.must(s.store.SavePlan(t.Context(), &plan.Plan{Format: plan.Format, Rack: "demo", Goal: plan.GoalAccess}))
		e := s.next(8, store.Run{Outcome: "Planned", Goal: "access"}, event("Planned"), done)
		if !s.stoppedAt(n, e, func() {}) {
			return
		}
		if s.rollout() != nil || len(s.recovered()) == 0 {
			t.Errorf("call %d: %+v, %+v", n, s.rollout(), s.recovered())
		}
	}
}

// A report that is stopped anywhere and repeated begins one rollout, and does not begin it again.
func TestAReportThatBeginsARolloutMayBeStopped(t *testing.T) {
	for n := 1; ; n++ {
		s := applied(t)
		var began *store.Rollout
		if !s.stoppedAt(n, event("Planned"), func() {
			began = s.rollout()
			s.cloud.Pass(time.Minute)
		}) {
			return
		}
		if got := s.rollout(); got.Generation != 7 || began != nil && !got.Applied.Equal(began.Applied) {
			t.Errorf("call %d: %+v, before %+v", n, got, began)
		}
	}
}
