package validate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

const auth, on, off = "karpenter_auth_mode=true", "karpenter_enabled=true", "karpenter_enabled=false"

func TestFromNothingToKarpenterAndBack(t *testing.T) {
	s := begin(t, "karpenter_cpu_limit=50")
	t.Log("a rack that asks for nothing is left alone, and says nothing")
	s.wants(s.pass(true), outcome.PassUnchanged, false, "")
	s.wrote(leaseItem, listItem) // the schedule audits it from now on
	s.wants(s.pass(true), outcome.PassUnchanged, false, "")
	s.wrote(leaseItem)

	t.Log("access")
	s.write(auth)
	s.wants(s.pass(false), outcome.PassPlanned, true, prepare)
	if r := s.records(); r.Goal != plan.GoalAccess || r.WasOn || r.Credentials != "" || r.Params["karpenter_auth_mode"] != "true" {
		t.Errorf("%+v", r)
	}

	t.Log("Karpenter: what is applied already is not done again")
	s.write(on)
	s.wants(s.pass(false), outcome.PassPlanned, true, turnOn)
	if r := s.records(); r.Goal != plan.GoalKarpenter || !r.WasOn || r.Credentials != "podidentity" {
		t.Errorf("%+v", r)
	}
	if len(s.begun) != 2 || stepNames(s.begun[1]) != turnOn {
		t.Errorf("begun: %v", s.begun)
	}

	t.Log("one limit, one step")
	s.write("karpenter_cpu_limit=200")
	s.wants(s.pass(false), outcome.PassPlanned, true, "nodepools")

	t.Log("a full pass looks at everything")
	s.wants(s.pass(true), outcome.PassPlanned, true, enable)

	t.Log("deleting is no command")
	s.write("karpenter_enabled", "karpenter_auth_mode")
	s.wants(s.pass(false), outcome.PassUnchanged, true, "")
	s.write(auth)

	t.Log("off")
	s.write(off)
	s.wants(s.pass(false), outcome.PassPlanned, true,
		"proof nodegroups/fit nodegroups/build nodegroups/capacity autoscaler controller/serve nodepools controller/release queue "+
			"infrastructure nodegroups/placement")
	if r := s.records(); r.Goal != plan.GoalAccess || !r.WasOn || r.Credentials != "podidentity" {
		t.Errorf("%+v", r)
	}
}

// A pass that finds nothing to do calls one function, and writes only its own record.
func TestUnchangedWritesNothing(t *testing.T) {
	s := begin(t, auth, on)
	s.pass(false)
	s.reported(outcome.StateReconciled)
	s.wants(s.pass(false), outcome.PassUnchanged, false, "")
	s.wrote(leaseItem)
	if len(s.begun) != 1 || !slices.Equal(s.quiet, []outcome.State{outcome.StateReconciled}) {
		t.Errorf("%d passes were announced, quiet ones left the rack %v", len(s.begun), s.quiet)
	}
}

// A pass that was stopped while it waited leaves that in the status, and so does an iteration that a write ended. The next one
// reports, also of a rack that had no status before.
func TestAWaitDoesNotStayInTheStatus(t *testing.T) {
	for what, written := range map[string][]string{"with Karpenter": {auth, on}, "that asks for nothing": {"node_disk=30"}} {
		s := begin(t, written...)
		s.pass(false)
		if what == "with Karpenter" {
			s.reported(outcome.StateReconciled)
		}
		s.must(s.store.NoteRunning(t.Context(), "demo", "me"))
		if answer := s.pass(false); answer.Outcome != outcome.PassUnchanged || !answer.Report {
			t.Errorf("a rack %s: %+v", what, answer)
		}
		s.reported(outcome.StateReconciled)
		if answer := s.pass(false); answer.Report {
			t.Errorf("a rack %s reports again: %+v", what, answer)
		}
	}
}

// A dry run says nothing about a pass that waits meanwhile.
func TestADryRunWhileAPassWaits(t *testing.T) {
	s := audited(t)
	s.must(s.store.NoteRunning(t.Context(), "demo", "another pass"))
	s.lease("another pass", false)
	s.cloud.Forget()
	for _, full := range []bool{false, true} {
		answer, err := s.validate.Run(t.Context(), Event{Rack: "demo", Execution: "me", DryRun: true, Full: full})
		s.must(err)
		if len(s.dry)+len(s.differs)+len(answer.Steps) > 0 || answer.Report {
			t.Errorf("full %v: %v, %v, %+v", full, s.dry, s.differs, answer)
		}
	}
	s.wrote()
}

// After a failure the status says Failed. The first pass without problems must correct that, for every rack.
func TestAllWellIsToldAfterAFailure(t *testing.T) {
	for what, written := range map[string][]string{"with Karpenter": {auth, on}, "that asks for nothing": {"node_disk=30"}} {
		s := begin(t, written...)
		s.pass(false)
		failed := store.Status{Rack: "demo", State: outcome.StateFailed}
		s.must(s.store.SaveStatus(t.Context(), failed, string(outcome.StateFailed), store.Reported{}))
		if got := s.pass(false); got.Outcome != outcome.PassUnchanged || !got.Report {
			t.Errorf("a rack %s: %+v", what, got)
		}
	}
}

// Rejected input changes nothing. Its record is written once, until the problems change.
func TestRejected(t *testing.T) {
	s := begin(t, auth, on)
	s.pass(false)
	s.reported(outcome.StateReconciled)
	before := s.records()

	s.write("karpenter_cpu_limit=many")
	s.wants(s.pass(false), outcome.PassRejected, true, "")
	s.wrote(leaseItem, "DynamoDB.PutItem rack#demo run#000000000002")
	run, err := s.store.Run(t.Context(), "demo", 0, 2)
	if err != nil || run.Outcome != "Rejected" || len(run.Problems) != 1 || run.Problems[0].Parameter != "karpenter_cpu_limit" {
		t.Errorf("%+v, %v", run, err)
	}
	s.reported(outcome.StateRejected)
	s.wants(s.pass(false), outcome.PassRejected, false, "")
	s.wrote(leaseItem)
	if !slices.Equal(s.quiet, []outcome.State{outcome.StateRejected}) {
		t.Errorf("the pass that found the same again left the rack %v", s.quiet)
	}

	if s.beganAfter != nil {
		t.Errorf("the first pass began after %+v", s.beganAfter)
	}

	t.Log("another problem is another finding")
	s.write("karpenter_memory_limit_gb=many")
	s.wants(s.pass(false), outcome.PassRejected, true, "")
	if after := s.records(); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("records %+v, before %+v", after, before)
	}

	t.Log("put right, all is as it was")
	s.reported(outcome.StateRejected)
	s.write("karpenter_cpu_limit", "karpenter_memory_limit_gb")
	s.wants(s.pass(false), outcome.PassUnchanged, true, "")

	t.Log("the next change begins with what the status said before it")
	s.reported(outcome.StateReconciled)
	s.write("karpenter_cpu_limit=200")
	s.pass(false)
	if s.beganAfter == nil || s.beganAfter.State != outcome.StateReconciled {
		t.Errorf("it began after %+v", s.beganAfter)
	}
}

// A problem that only AWS knows of rejects the input too, and every problem is reported.
func TestRejectedByThePlan(t *testing.T) {
	s := begin(t, auth, on)
	s.cloud.EC2.Tags["subnet-a"]["karpenter.sh/discovery"] = "other"
	s.cloud.EKS.Groups["system"].CapacityType = "SPOT"
	s.wants(s.pass(false), outcome.PassRejected, true, "")
	run, err := s.store.Run(t.Context(), "demo", 0, 1)
	if err != nil || len(run.Problems) != 2 {
		t.Errorf("%+v, %v", run.Problems, err)
	}
	if claimant, _ := s.store.ClusterLock(t.Context(), awsfake.ClusterARN); claimant != "" {
		t.Errorf("a rejected rack has claimed the cluster")
	}
}

// The last good plan stays in force, and full passes continue to repair towards it.
func TestAFullPassRepairsARejectedRack(t *testing.T) {
	s := begin(t, auth, on)
	s.wants(s.pass(true), outcome.PassPlanned, true, enable)
	s.write("karpenter_cpu_limit=many")
	s.wants(s.pass(true), outcome.PassRejected, true, enable)
	p, err := s.store.Plan(t.Context(), "demo")
	if err != nil || p.Generation != 1 {
		t.Errorf("plan of generation %d, %v", p.Generation, err)
	}
	t.Log("one that never had a plan has none to repair")
	s = begin(t, auth, on, "karpenter_cpu_limit=many")
	s.wants(s.pass(true), outcome.PassRejected, true, "")
}

func TestPaused(t *testing.T) {
	s := begin(t, auth, on, "paused=true")
	answer := s.pass(true)
	s.wants(answer, outcome.PassPaused, true, enable) // what a pass would do; the state machine runs none of it
	s.wrote(leaseItem, listItem, "DynamoDB.PutItem rack#demo records", "DynamoDB.PutItem rack#demo run#000000000001")
	s.reported(outcome.StatePaused)
	s.wants(s.pass(false), outcome.PassPaused, false, enable)
	s.wrote(leaseItem)
	if r := s.records(); r.Goal != "" || len(s.begun) > 0 {
		t.Errorf("records %+v, begun %v", r, s.begun)
	}
	t.Log("another write changes what a pass would do, and the status says so")
	s.write("karpenter_enabled=false")
	s.wants(s.pass(false), outcome.PassPaused, true, prepare)
	s.reported(outcome.StatePaused)
	s.wants(s.pass(true), outcome.PassPaused, false, prepare)
	s.write(on)
	s.write("paused=false")
	s.wants(s.pass(false), outcome.PassPlanned, true, enable)
	t.Log("a rejected rack that is paused is not repaired either")
	s.write("paused=true", "karpenter_cpu_limit=many")
	s.wants(s.pass(true), outcome.PassRejected, true, "")
}

// A dry run takes no lease and leaves nothing behind, even while another pass holds the rack.
func TestDryRun(t *testing.T) {
	for _, c := range []struct {
		written  []string
		steps    string
		problems int
	}{
		{[]string{auth, on}, enable, 0},
		{[]string{auth}, prepare, 0},
		{nil, "", 0},
		{[]string{auth, on, "karpenter_cpu_limit=many"}, "", 1},
		{[]string{auth, on, "cluster_name=none"}, "", 1},
		{[]string{auth, on, "paused=true"}, enable, 0},
	} {
		s := begin(t, c.written...)
		s.lease("another pass", false)
		answer, err := s.validate.Run(t.Context(), Event{Rack: "demo", Execution: "me", DryRun: true, Request: "r-1"})
		s.must(err)
		s.wants(answer, outcome.PassDryRun, false, "")
		s.wants(Answer{Outcome: outcome.PassDryRun, Steps: s.dry}, outcome.PassDryRun, false, c.steps)
		if answer.DryRun == nil || answer.DryRun.Request != "r-1" {
			t.Errorf("%v: the history has %+v", c.written, answer.DryRun)
		}
		if len(s.answered.Problems) != c.problems || s.answered.Request != "r-1" {
			t.Errorf("%v: %+v", c.written, s.answered)
		}
		s.wrote()
	}
}

func TestADryRunOfAFullPass(t *testing.T) {
	s := begin(t, auth, on)
	s.pass(false)
	for full, steps := range map[bool]string{false: "", true: enable} {
		_, err := s.validate.Run(t.Context(), Event{Rack: "demo", Execution: "me", DryRun: true, Full: full})
		s.must(err)
		s.wants(Answer{Outcome: outcome.PassDryRun, Steps: s.dry}, outcome.PassDryRun, false, steps)
		if len(s.differs) > 0 {
			t.Errorf("full %v: the plan is that in force, and differs in %v", full, s.differs)
		}
	}
}

// A dry run names what differs from the plan in force, even if a full pass runs every step.
func TestADryRunNamesWhatDiffers(t *testing.T) {
	s := begin(t, auth, on)
	differs := func(want string) {
		t.Helper()
		for _, full := range []bool{false, true} {
			_, err := s.validate.Run(t.Context(), Event{Rack: "demo", Execution: "me", DryRun: true, Full: full})
			s.must(err)
			if got := strings.Join(s.differs, " "); got != want {
				t.Errorf("full %v: %q, want %q", full, got, want)
			}
		}
	}
	differs(strings.Replace(strings.Join(strings.Fields(enable), " "), " controller/plugin", "", 1)) // the rack asks for no device plugin
	s.pass(false)
	s.write("karpenter_cpu_limit=7", "high_availability=false")
	differs("controller/release nodepools")
	s.write("karpenter_cpu_limit=many")
	differs("")
}

func TestWithoutTheLeaseNothingIsRead(t *testing.T) {
	s := begin(t, auth, on)
	s.lease("another pass", false)
	_, err := s.validate.Run(t.Context(), Event{Rack: "demo", Execution: "me"})
	if !errors.Is(err, store.ErrLeaseLost) || len(s.cloud.Made()) != 1 {
		t.Errorf("%v, calls %v", err, s.cloud.Made())
	}
}

// A write after the requests were counted belongs to another iteration: the lease is read before the tree.
func TestTheRequestIsNotedBeforeTheTreeIsRead(t *testing.T) {
	s := begin(t, auth)
	s.pass(false)
	calls := s.cloud.Made()
	reads := slices.ContainsFunc(calls[1:9], func(call string) bool { return strings.HasPrefix(call, "SSM.GetParametersByPath") })
	if calls[0] != leaseItem || !reads {
		t.Errorf("calls %v", calls[:9])
	}
}

func TestAClusterBelongsToOneRack(t *testing.T) {
	s := begin(t, auth, on)
	if owner, err := s.store.LockCluster(t.Context(), awsfake.ClusterARN, "other"); owner != "other" || err != nil {
		t.Fatal(owner, err)
	}
	s.wants(s.pass(false), outcome.PassRejected, true, "")
	run, err := s.store.Run(t.Context(), "demo", 0, 1)
	if err != nil || len(run.Problems) != 1 || run.Problems[0].Parameter != "cluster_name" ||
		!strings.Contains(run.Problems[0].Message, `"other"`) {
		t.Errorf("%+v, %v", run.Problems, err)
	}
	if p, err := s.store.Plan(t.Context(), "demo"); p != nil || err != nil {
		t.Errorf("a plan was saved: %v, %v", p, err)
	}
}

// The warnings of a step are reported as long as the plan has the step.
func TestWarningsGoWithTheirStep(t *testing.T) {
	s := begin(t, auth, on)
	warned := func(name string, steps []plan.Step) {
		i := slices.IndexFunc(steps, func(step plan.Step) bool { return step.Name == name })
		s.must(s.store.NoteApplied(t.Context(), "demo", steps[i], []params.Problem{{Parameter: "karpenter_enabled", Message: "w"}}))
	}
	warned("autoscaler", s.pass(false).Steps)
	s.write("karpenter_cpu_limit=200")
	s.wants(s.pass(false), outcome.PassPlanned, true, "nodepools")
	if w := s.records().Warnings; len(w) != 1 || len(w["autoscaler"]) != 1 {
		t.Errorf("after a pass without the step: %v", w)
	}
	s.write(off)
	warned("nodegroups/capacity", s.pass(false).Steps)
	s.write(on)
	s.pass(false)
	if w := s.records().Warnings; len(w) != 0 {
		t.Errorf("with a plan that has no step room: %v", w)
	}
}

// Turning off takes several iterations, and an invalid pool parameter delays none of them.
func TestTurningOffIsNeverHeldUp(t *testing.T) {
	s := begin(t, auth, on)
	s.pass(false)
	s.write(off, "karpenter_cpu_limit=many")
	if got := s.validated(false); got.Outcome != outcome.PassPlanned {
		t.Fatalf("the first round: %+v", got)
	}
	if got := s.validated(false); got.Outcome != outcome.PassPlanned {
		t.Errorf("the second round, after the first has died: %+v", got)
	}
}

func TestCredentialsAreChosenOnce(t *testing.T) {
	s := begin(t, auth, on)
	s.pass(false)
	s.cloud.EKS.Addons = nil
	s.wants(s.pass(false), outcome.PassUnchanged, true, "")
	if r := s.records(); r.Credentials != "podidentity" {
		t.Errorf("%+v", r)
	}
	s = begin(t, auth, on)
	s.cloud.EKS.Addons["eks-pod-identity-agent"] = "CREATING"
	s.cloud.IAM.Providers["arn:aws:iam::123456789012:oidc-provider/oidc.example/id/ABC"] = []string{"sts.amazonaws.com"}
	s.pass(false)
	s.cloud.EKS.Addons["eks-pod-identity-agent"] = "ACTIVE"
	s.wants(s.pass(false), outcome.PassUnchanged, true, "")
	if r := s.records(); r.Credentials != "irsa" {
		t.Errorf("%+v", r)
	}
	t.Log("and goes on needing what it needs")
	clear(s.cloud.IAM.Providers)
	s.wants(s.pass(false), outcome.PassRejected, true, "")
}

func TestSecretsAndUnknownNames(t *testing.T) {
	s := begin(t, auth, "karpenter_cpu_limt=5", "node_disk=secret")
	s.cloud.SSM.Secure[folder+"node_disk"] = true
	s.wants(s.pass(false), outcome.PassRejected, true, "")
	run, err := s.store.Run(t.Context(), "demo", 0, 1)
	if err != nil || len(run.Problems) != 2 || run.Problems[0].Parameter != "karpenter_cpu_limt" || run.Problems[1].Parameter != "node_disk" {
		t.Errorf("%+v, %v", run.Problems, err)
	}
}

// If somebody has changed the queue, the next pass runs the queue's step and no other.
func TestTheQueueIsLookedAtOnEveryPass(t *testing.T) {
	s := begin(t, auth, on)
	s.pass(false)
	s.wrong = map[string]string{"queue": "it is gone"}
	s.wants(s.pass(false), outcome.PassPlanned, true, "queue")
	s.wrong = nil
	s.wants(s.pass(false), outcome.PassUnchanged, true, "")
	s.wrong = map[string]string{"queue": "it is gone"}
	s.write(off)
	if got := stepNames(s.pass(false).Steps); strings.Count(got, "queue") != 1 {
		t.Errorf("turning off: %s", got)
	}
	s.wants(s.pass(false), outcome.PassUnchanged, true, "")
}
