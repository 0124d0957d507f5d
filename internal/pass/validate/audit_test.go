package validate

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

// audited returns a rack that is on and in order, whose Validate is that of the function audit.
func audited(t *testing.T, written ...string) *scene {
	t.Helper()
	s := begin(t, append([]string{auth, on}, written...)...)
	s.all = true
	s.pass(false)
	s.must(s.store.NoteOutputs(t.Context(), "demo", map[string]string{"karpenter_version": "1.10.0", "gone": ""}))
	s.reported(outcome.StateReconciled)
	return s
}

// looked returns the names of what a look finds. The look must write nothing.
func (s *scene) looked() string {
	s.Helper()
	s.cloud.Forget()
	due, err := s.validate.Audit(s.Context(), "demo", int64(s.requests)+1)
	s.must(err)
	s.wrote()
	return strings.Join(slices.Sorted(maps.Keys(due)), " ")
}

// A full pass runs the steps whose plan has changed and those that are not as they should be, with their prechecks.
func TestAFullPassTakesWhatIsDue(t *testing.T) {
	s := audited(t)
	s.wants(s.pass(true), outcome.PassUnchanged, false, "")
	s.wrote(leaseItem)
	if want := strings.Fields(enable); !slices.Equal(slices.Sorted(slices.Values(s.audited)), slices.Sorted(slices.Values(want))) {
		t.Errorf("audited %v, want %v", s.audited, want)
	}
	for wrong, want := range map[string]string{
		"network": "network", "queue": "queue", "infrastructure": "access/conflicts infrastructure",
		"access/conflicts": "access/conflicts", // it would reject
	} {
		s.wrong = map[string]string{wrong: "somebody has changed it"}
		s.wants(s.pass(true), outcome.PassPlanned, true, want)
	}
	s.wrong = map[string]string{"autoscaler": "somebody has changed it"}
	s.write("karpenter_cpu_limit=200")
	s.wants(s.pass(true), outcome.PassPlanned, true, "nodepools proof autoscaler")
}

// A pass that is not full audits only the queue's step.
func TestOtherPassesLookAtTheQueueOnly(t *testing.T) {
	s := audited(t)
	s.audited = nil
	s.wrong = map[string]string{"network": "somebody has changed it"}
	s.wants(s.pass(false), outcome.PassUnchanged, false, "")
	if !slices.Equal(s.audited, []string{"queue"}) {
		t.Errorf("looked at %v", s.audited)
	}
}

// What a parameter has changed is said by its place in the step's part of the plan, and what no pass has done yet as that.
func TestWhyAStepIsDue(t *testing.T) {
	s := audited(t)
	s.write("karpenter_cpu_limit=200")
	due, err := s.validate.Audit(s.Context(), "demo", int64(s.requests)+1)
	s.must(err)
	const place = "in 1 places: objects[NodePool/workload].spec.limits.cpu: \"100\" → \"200\""
	if why := due["nodepools"]; !strings.HasSuffix(why, place) {
		t.Errorf("%q", why)
	}
	s.validated(false) // and the pass is stopped before its first step
	due, err = s.validate.Audit(s.Context(), "demo", int64(s.requests)+1)
	s.must(err)
	if why := due["nodepools"]; why != "it has not been done for this plan" {
		t.Errorf("stopped: %q", why)
	}
}

// The full pass repairs everything that a look finds, so the next look finds nothing.
func TestWhatALookFinds(t *testing.T) {
	for what, c := range map[string]struct {
		harm func(s *scene)
		due  string
	}{
		"a step":                  {func(s *scene) { s.wrong = map[string]string{"network": "somebody has changed it"} }, "network"},
		"a parameter with a step": {func(s *scene) { s.write("karpenter_cpu_limit=200") }, "nodepools"},
		"a parameter without one": {func(s *scene) { s.write("karpenter_build_cpu_limit=200") }, "plan status"},
		"a warning":               {func(s *scene) { s.write("karpenter_disruption_budget_nodes=0") }, "nodepools"},
		"no status":               {func(s *scene) { delete(s.cloud.SSM.Values, "/sawhorse/racks/demo/status") }, "status"},
		"another status": {func(s *scene) {
			s.cloud.SSM.Values["/sawhorse/racks/demo/status"] = `{"rack":"demo","state":"Failed"}`
		}, "status"},
		"a status that is no JSON": {func(s *scene) { s.cloud.SSM.Values["/sawhorse/racks/demo/status"] = "x" }, "status"},
		"another output": {func(s *scene) {
			s.cloud.SSM.Values["/sawhorse/racks/demo/outputs"] = `{"baseline_nodes":"m6i.large=2","karpenter_version":"1.9.0"}`
		}, "status"},
		"an output that was to go": {func(s *scene) {
			s.cloud.SSM.Values["/sawhorse/racks/demo/outputs"] = `{"baseline_nodes":"m6i.large=2","gone":"x","karpenter_version":"1.10.0"}`
		}, "status"},
		"no outputs":                       {func(s *scene) { delete(s.cloud.SSM.Values, "/sawhorse/racks/demo/outputs") }, "status"},
		"a plan of another format":         {func(s *scene) { delete(s.cloud.Table.Items, "plan#demo plan") }, "plan"},
		"no claim":                         {func(s *scene) { delete(s.cloud.Table.Items, "cluster#"+awsfake.ClusterARN+" claim") }, "plan"},
		"a pass that waits, and has ended": {func(s *scene) { s.must(s.store.NoteRunning(s.Context(), "demo", "other")) }, "status"},
		"a failure": {func(s *scene) {
			s.must(s.store.SaveStatus(s.Context(), store.Status{Rack: "demo"}, "Failed", store.Reported{}))
		}, "status"},
		"a warning that nothing gives any more": {func(s *scene) {
			s.tells(func(status *store.Status) { status.Warnings = append(status.Warnings, putBack) })
		}, "status"},
		"what the last pass did to the pools": {func(s *scene) {
			s.tells(func(status *store.Status) { status.Effects = []string{"pool workload is changed: it has no nodes"} })
		}, ""},
		"an incident of the last pass": {func(s *scene) {
			s.tells(func(status *store.Status) {
				status.Warnings, status.Incidents = append(status.Warnings, putBack), []params.Problem{putBack}
			})
		}, ""},
		"an incident that is a warning too": {func(s *scene) {
			s.tells(func(status *store.Status) {
				status.Warnings, status.Incidents = append(status.Warnings, putBack, putBack), []params.Problem{putBack}
			})
		}, "status"},
	} {
		t.Run(what, func(t *testing.T) {
			s := audited(t)
			if got := s.looked(); got != "" {
				t.Fatalf("before: %s", got)
			}
			c.harm(s)
			if got := s.looked(); got != c.due {
				t.Errorf("found %q, want %q", got, c.due)
			}
			answer := s.pass(true)
			s.wrong = nil
			if answer.Report {
				s.reported(outcome.StateReconciled)
			}
			if got := s.looked(); got != "" {
				t.Errorf("after a full pass (%s, report %v): %s", answer.Outcome, answer.Report, got)
			}
			s.wants(s.pass(true), outcome.PassUnchanged, false, "")
		})
	}
}

// putBack is what a step says of a setting that somebody has changed.
var putBack = params.Problem{Parameter: "rack", Message: "it was put back"}

// tells changes the status of the last report, in its record and in the parameter.
func (s *scene) tells(change func(*store.Status)) {
	s.Helper()
	status := s.status()
	change(status)
	text, err := status.Text()
	s.must(err)
	s.cloud.SSM.Values["/sawhorse/racks/demo/status"] = text
	digest := store.Digest(outcome.StateReconciled, s.last(), nil)
	s.must(s.store.SaveStatus(s.Context(), *status, digest, store.Reported{Values: s.last().Values}.Wrote(*status, text)))
}

// last returns the record of the last iteration.
func (s *scene) last() store.Run {
	s.Helper()
	run, err := s.store.Run(s.Context(), "demo", 0, int64(s.requests))
	s.must(err)
	return run
}

func TestALookAtARejectedRack(t *testing.T) {
	s := audited(t)
	s.write("karpenter_cpu_limit=many")
	if got := s.looked(); got != "status" {
		t.Errorf("before it is reported: %s", got)
	}
	s.pass(false)
	s.reported(outcome.StateRejected)
	if got := s.looked(); got != "" {
		t.Errorf("reported: %s", got)
	}
	s.wants(s.pass(true), outcome.PassRejected, false, "")
	s.wrong = map[string]string{"autoscaler": "somebody has changed it"}
	if got := s.looked(); got != "autoscaler proof" {
		t.Errorf("what is in force is changed: %s", got)
	}
	s.wants(s.pass(true), outcome.PassRejected, true, "proof autoscaler")
}

func TestALookAtAPausedRack(t *testing.T) {
	s := audited(t, "paused=true")
	s.wrong = map[string]string{"autoscaler": "somebody has changed it"}
	s.reported(outcome.StatePaused)
	if got := s.looked(); got != "" {
		t.Errorf("%s", got)
	}
	s.write(off)
	if got := s.looked(); got != "status" {
		t.Errorf("what a pass would do has changed: %s", got)
	}
}

// A look at a rack that stays rejected or paused writes its metrics, because no pass runs that would. Those of a reconciled
// rack are the passes' own.
func TestTheMetricsOfALook(t *testing.T) {
	for _, c := range []struct {
		write string
		state outcome.State
		want  []outcome.State
	}{
		{"node_disk=30", outcome.StateReconciled, nil},
		{"karpenter_cpu_limit=many", outcome.StateRejected, []outcome.State{outcome.StateRejected}},
		{"paused=true", outcome.StatePaused, []outcome.State{outcome.StatePaused}},
	} {
		s := audited(t, c.write)
		s.reported(c.state)
		s.quiet = nil
		if got := s.looked(); got != "" || !slices.Equal(s.quiet, c.want) {
			t.Errorf("%s: found %q, metrics of %v, want %v", c.state, got, s.quiet, c.want)
		}
	}
}

func TestALookAtRacksWithoutAPlan(t *testing.T) {
	s := begin(t)
	s.all = true
	if got := s.looked(); got != "" {
		t.Errorf("a rack that there is not: %s", got)
	}
	s.must(s.store.Enlist(t.Context(), "demo", false))
	if got := s.looked(); got != "rack" {
		t.Errorf("one that is on the list and has no parameters: %s", got)
	}
	s.write("node_disk=30")
	if got := s.looked(); got != "" {
		t.Errorf("one that asks for nothing: %s", got)
	}
	s.change(`{"set":{"node_disk":"40"}}`)
	if got := s.looked(); got != "change" {
		t.Errorf("a change whose event was lost: %s", got)
	}
	if got := s.changes(); got != "" {
		t.Errorf("the audit has recorded %s", got)
	}
}

func TestALookThatCannotRead(t *testing.T) {
	s := audited(t)
	s.cloud.Forget()
	_, err := s.validate.Audit(t.Context(), "demo", 9)
	s.must(err)
	for n := 1; ; n++ {
		s.cloud.Forget()
		s.cloud.FailAt(n, awsfake.Throttling)
		_, err := s.validate.Audit(t.Context(), "demo", 9)
		if !s.cloud.Failed() {
			return
		}
		if err == nil {
			t.Errorf("call %d, %s: its failure is not reported", n, s.cloud.Made()[n-1])
		}
	}
}
