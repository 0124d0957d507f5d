package validate

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

// The steps that are due count as not applied from here on, so the next pass runs them whatever happens to this one.
func TestADueStepIsDueUntilItIsDone(t *testing.T) {
	s := begin(t, auth, on)
	s.pass(false)
	s.write("karpenter_cpu_limit=200")
	s.wants(s.validated(false), outcome.PassPlanned, true, "nodepools") // and then the pass is stopped
	s.write("karpenter_cpu_limit")                                      // back to what was applied before
	s.wants(s.validated(false), outcome.PassPlanned, true, "nodepools")
	t.Log("a full pass that dies leaves everything due")
	s.wants(s.validated(true), outcome.PassPlanned, true, enable)
	s.wants(s.validated(false), outcome.PassPlanned, true, enable)
}

// If any call fails, nothing is half accepted, and the next iteration ends as if nothing had happened.
func TestAnyCallMayFail(t *testing.T) {
	want := begin(t, auth, on)
	want.pass(false)
	calls := len(want.cloud.Made()) // including what the steps record, so more than validate makes
	for n := 1; n <= calls; n++ {
		s := begin(t, auth, on)
		s.lease("me", false)
		s.cloud.Forget()
		s.cloud.FailAt(n, awsfake.Throttling)
		_, err := s.validate.Run(t.Context(), Event{Rack: "demo", Execution: "me"})
		if !s.cloud.Failed() {
			break
		}
		if !errors.Is(err, awsfake.Throttling) {
			t.Errorf("call %d failed and validate said %v", n, err)
		}
		s.wants(s.pass(false), outcome.PassPlanned, true, enable)
		if got := s.records(); !maps.Equal(got.Applied, want.records().Applied) || got.Goal != plan.GoalKarpenter || !got.WasOn {
			t.Errorf("call %d failed, and the records are %+v", n, got)
		}
	}
}

// A later pass does not repair towards a plan that was never in force.
func TestAPlanThatNeverCameIntoForce(t *testing.T) {
	for n := 1; ; n++ {
		s := begin(t, auth, on)
		s.pass(false)
		s.write("karpenter_cpu_limit=200")
		s.lease("me", false)
		s.cloud.FailAt(n, awsfake.Throttling)
		_, _ = s.validate.Run(t.Context(), Event{Rack: "demo", Execution: "me"})
		if !s.cloud.Failed() {
			break
		}
		s.cloud.FailAt(0, nil)
		s.write("karpenter_cpu_limit") // reverted before the next try
		s.pass(false)
		p, err := s.store.Plan(t.Context(), "demo")
		s.must(err)
		if text := fmt.Sprint(p.NodePools.Objects); strings.Contains(text, "cpu:200") || !strings.Contains(text, "cpu:100") {
			t.Errorf("call %d failed, and the plan has %s", n, text)
		}
	}
}

// Another rack claims the cluster after validate has looked at the claim and before it makes its own.
func TestTwoRacksClaimInTheSameMoment(t *testing.T) {
	s := begin(t, auth, on)
	s.cloud.Before = func(call string) error {
		if !strings.HasPrefix(call, "DynamoDB.PutItem") || !strings.HasSuffix(call, " claim") {
			return nil
		}
		s.cloud.Before = nil
		_, err := s.store.LockCluster(t.Context(), awsfake.ClusterARN, "other")
		return err
	}
	s.lease("me", false)
	_, err := s.validate.Run(t.Context(), Event{Rack: "demo", Execution: "me"})
	if err == nil || !strings.Contains(err.Error(), "rack other has just locked it; the next pass reports what to do") {
		t.Errorf("%v", err)
	}
	if p, _ := s.store.Plan(t.Context(), "demo"); p != nil || len(s.begun) > 0 {
		t.Error("the plan is in force")
	}
}
