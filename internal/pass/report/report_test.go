package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/metrics"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

var (
	problem = []params.Problem{{Parameter: "karpenter_cpu_limit", Message: "p"}}
	warning = []params.Problem{{Parameter: "karpenter_cpu_limit", Message: "w"}}
)

var unreachable = &outcome.Unreachable{Cluster: "demo", Host: "10.0.0.1:443", Cause: errors.New("dial tcp: i/o timeout")}

type scene struct {
	*testing.T
	cloud  *awsfake.Cloud
	report *Report
	store  *store.Store
	// measured has the lines of metrics.
	measured *bytes.Buffer
}

func begin(t *testing.T, run store.Run, done ...store.StepRecord) scene {
	t.Helper()
	cloud := awsfake.New()
	cloud.Table.Items["rack#demo lease"] = awsfake.Item{
		"pk": &types.AttributeValueMemberS{Value: "rack#demo"}, "sk": &types.AttributeValueMemberS{Value: "lease"},
		"owner": &types.AttributeValueMemberS{Value: "me"},
	}
	records := &store.Store{DB: cloud.Table, Name: "sawhorse"}
	measured := new(bytes.Buffer)
	s := scene{t, cloud, &Report{
		Metrics: metrics.Writer{Out: measured, Namespace: "Sawhorse", Now: cloud.Now},
		Store:   records, Outputs: store.Published{SSM: cloud.SSM, Paths: ownership.Paths{Prefix: "/sawhorse"}}, Now: cloud.Now,
		Send: Bus{Events: cloud.Events, Name: "sawhorse"}.Send,
	}, records, measured}
	run.Rack, run.Generation, run.Execution, run.Started = "demo", 7, "me", cloud.Now()
	s.must(records.SaveRun(t.Context(), run))
	for _, r := range done {
		s.must(records.NoteStep(t.Context(), "demo", 7, cloud.Now(), r))
	}
	s.must(records.Enlist(t.Context(), "demo", false)) // as validate does
	cloud.Forget()
	return s
}

func (s scene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func event(result outcome.Outcome) Event {
	return Event{
		Rack: "demo", Execution: "me", Generation: 7, Outcome: result, Started: time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC),
		Steps: []string{"queue"},
	}
}

func (s scene) run(e Event) {
	s.Helper()
	_, err := s.report.Run(s.Context(), e)
	s.must(err)
}

func (s scene) status() store.Status {
	s.Helper()
	var status store.Status
	s.must(json.Unmarshal([]byte(s.cloud.SSM.Values["/sawhorse/racks/demo/status"]), &status))
	return status
}

// sent returns the type and the detail of the only event.
func (s scene) sent() (string, events.ReconcileFailed) {
	s.Helper()
	if len(s.cloud.Events.Sent) != 1 {
		s.Fatalf("events %v", s.cloud.Events.Sent)
	}
	entry := s.cloud.Events.Sent[0]
	if *entry.Source != "sawhorse" || *entry.EventBusName != "sawhorse" {
		s.Errorf("source %s, bus %s", *entry.Source, *entry.EventBusName)
	}
	var detail events.ReconcileFailed // has the fields of all outcomes
	s.must(json.Unmarshal([]byte(*entry.Detail), &detail))
	return *entry.DetailType, detail
}

var done = store.StepRecord{Step: "queue", Changes: []outcome.Change{{Subject: "queue demo", Action: "created"}}, Warnings: warning}

func TestReconciled(t *testing.T) {
	s := begin(t, store.Run{Outcome: "Planned", Goal: "karpenter", Warnings: warning}, done)
	s.cloud.SSM.Values["/sawhorse/racks/demo/outputs"] = `{"old":"x"}`
	s.must(s.store.NoteOutputs(s.Context(), "demo", map[string]string{"url": "u", "old": ""})) // by whichever run
	s.must(s.store.SaveRecords(s.Context(), "demo", plan.Records{WasOn: true, Karpenter: plan.KarpenterRecord{Version: "1.12.1"}}))
	s.run(event("Planned"))
	status := s.status()
	if status.Karpenter != "1.12.1" {
		t.Errorf("Karpenter %q", status.Karpenter)
	}
	if status.State != outcome.StateReconciled || status.Goal != "karpenter" || len(status.Problems) > 0 || len(status.Warnings) != 2 ||
		!slices.Equal(status.Changed, []string{"queue demo created"}) || status.Failure != nil ||
		status.Generation != 7 || status.DurationSeconds <= 0 {
		t.Errorf("%+v", status)
	}
	if kind, detail := s.sent(); kind != "Rack Reconciled" || len(detail.Changed) != 1 ||
		detail.Changed[0] != (events.Change{Step: "queue", Subject: "queue demo", Action: "created"}) ||
		!slices.Equal(detail.Steps, []string{"queue"}) || len(detail.Warnings) != 2 ||
		detail.Generation != 7 || detail.Execution != "me" || detail.DryRun {
		t.Errorf("%s %+v", kind, detail)
	}
	if got := s.cloud.SSM.Values; got["/sawhorse/racks/demo/outputs"] != `{"url":"u"}` || len(got) != 2 {
		t.Errorf("parameters %v", got)
	}
	s.reported(store.Digest(outcome.StateReconciled, store.Run{Goal: "karpenter", Warnings: warning}, nil))
	s.measures(`"Changes":1`, `"Failed":0`, `"OutOfLine":0`, `"Unit":"Seconds"`, `"state":"Reconciled"`)
}

// measures checks that the only line of metrics has these parts.
func (s scene) measures(parts ...string) {
	s.Helper()
	for _, part := range append(parts, `"Rack":"demo"`, `"generation":7`) {
		if strings.Count(s.measured.String(), part) != 1 {
			s.Errorf("want %s once in %q", part, s.measured)
		}
	}
}

// reported checks the digest that the next pass compares its findings with.
func (s scene) reported(want string) {
	s.Helper()
	if got, err := s.store.Reported(s.Context(), "demo"); err != nil || got.Findings != want {
		s.Errorf("digest %q, %v; want %q", got.Findings, err, want)
	}
}

func TestRejected(t *testing.T) {
	s := begin(t, store.Run{Outcome: "Rejected", Problems: problem})
	e := event("Rejected")
	e.Steps = nil
	s.run(e)
	if status := s.status(); status.State != outcome.StateRejected || len(status.Problems) != 1 || status.Failure != nil {
		t.Errorf("%+v", status)
	}
	if kind, detail := s.sent(); kind != "Rack Rejected" || len(detail.Problems) != 1 || detail.Problems[0].Message != "p" {
		t.Errorf("%s %+v", kind, detail)
	}
	s.reported(store.Digest(outcome.StateRejected, store.Run{Problems: problem}, nil))
}

// Events can name any number of racks that do not exist, and Lambda then throttles their passes. Each gets an event and
// leaves nothing behind. A rack that existed before, or that no pass has read yet, gets a status.
func TestAPassOfAnUnknownRackFails(t *testing.T) {
	for _, c := range []struct {
		what              string
		make              func(scene)
		unknown, reported bool
	}{
		{"no rack", func(s scene) { s.cloud.SSM.Values["/sawhorse/racks/demo2/params/paused"] = "true" }, true, false},
		{"it existed before", func(s scene) {
			s.cloud.Table.Items["rack#demo lease"]["served"] = &types.AttributeValueMemberN{Value: "6"}
		}, false, false},
		{"a new rack", func(s scene) { s.cloud.SSM.Values["/sawhorse/racks/demo/params/paused"] = "true" }, false, true},
		{"a rack on the list", func(s scene) { s.must(s.store.Enlist(s.Context(), "demo", false)) }, false, true},
	} {
		t.Run(c.what, func(t *testing.T) {
			s := begin(t, store.Run{})
			s.must(s.store.Delist(t.Context(), "demo"))
			c.make(s)
			s.cloud.Forget()
			e := event("Failed")
			e.Error, e.Cause = "Lambda.TooManyRequestsException", "Rate Exceeded."
			answer, err := s.report.Run(t.Context(), e)
			s.must(err)
			if kind, _ := s.sent(); kind != "Rack Reconcile Failed" || answer.Unknown != c.unknown {
				t.Errorf("%s, %+v", kind, answer)
			}
			_, status := s.cloud.SSM.Values["/sawhorse/racks/demo/status"]
			byRack := strings.Contains(s.measured.String(), `"Dimensions":[["Rack"]]`)
			if record := s.cloud.Table.Items["rack#demo status"]; status != c.reported || byRack != c.reported || (record != nil) != c.reported {
				t.Errorf("status %v, metrics by rack %v, record %v", status, byRack, record)
			}
			s.measures(`"Failed":1`)
		})
	}
}

// The problems of a step that rejects the input are the rack's, and the first pass without problems reports again.
func TestRejectedByAStep(t *testing.T) {
	s := begin(t, store.Run{Outcome: "Planned", Goal: "access"}, store.StepRecord{Step: "access", Problems: problem})
	s.run(event("Rejected"))
	if status := s.status(); status.State != outcome.StateRejected || len(status.Problems) != 1 {
		t.Errorf("%+v", status)
	}
	if kind, detail := s.sent(); kind != "Rack Rejected" || len(detail.Problems) != 1 {
		t.Errorf("%s %+v", kind, detail)
	}
	s.reported(string(outcome.StateFailed))
}

// SSM accepts 3 writes a second in an account, so a status that is published already is not written again. The event is
// sent nevertheless. A status that was deleted or written over is written again, but without metrics by rack.
func TestAStatusThatSaysTheSameIsNotWrittenAgain(t *testing.T) {
	const write = "SSM.PutParameter /sawhorse/racks/demo/status"
	s := begin(t, store.Run{Outcome: "Planned", Goal: "karpenter", Warnings: warning}, done)
	generation := int64(7)
	news := true
	next := func(what string, written bool, run store.Run, result outcome.Outcome, records ...store.StepRecord) {
		s.Helper()
		generation++
		e := event(result) // of a pass of its own
		e.Generation, e.Execution = generation, fmt.Sprint("pass ", generation)
		s.cloud.Table.Items["rack#demo lease"]["owner"] = &types.AttributeValueMemberS{Value: e.Execution}
		run.Rack, run.Generation, run.Execution, run.Started = "demo", generation, e.Execution, s.cloud.Now()
		s.must(s.store.SaveRun(s.Context(), run))
		for _, r := range records {
			s.must(s.store.NoteStep(s.Context(), "demo", generation, s.cloud.Now(), r))
		}
		s.cloud.Forget()
		s.cloud.Events.Sent = nil
		s.measured.Reset()
		s.run(e)
		if slices.Contains(s.cloud.Made(), write) != written || len(s.cloud.Events.Sent) != 1 {
			s.Errorf("%s: calls %v", what, s.cloud.Made())
		}
		status := s.status()
		if (status.Generation == generation) != written {
			s.Errorf("%s: the status is of generation %d, the pass of %d", what, status.Generation, generation)
		}
		byRack := strings.Contains(s.measured.String(), `"Dimensions":[["Rack"]]`)
		if byRack != (news && written || status.State != outcome.StateReconciled) {
			s.Errorf("%s: metrics %s", what, s.measured)
		}
	}
	s.run(event("Planned"))
	well, changed := store.Run{Outcome: "Planned", Goal: "karpenter", Warnings: warning}, done
	warned := store.StepRecord{Step: "queue", Warnings: warning}
	next("nothing changed", false, well, "Planned", warned)
	if status := s.status(); len(status.Changed) != 1 {
		t.Errorf("the last change is not in the status any more: %+v", status)
	}
	next("the same change once more", true, well, "Planned", changed)
	next("a warning has gone", true, store.Run{Outcome: "Planned", Goal: "karpenter"}, "Planned", warned)
	next("rejected", true, store.Run{Outcome: "Rejected", Problems: problem}, "Rejected")
	next("rejected for the same", false, store.Run{Outcome: "Rejected", Problems: problem}, "Rejected")
	next("reconciled again, without a change", true, store.Run{Outcome: "Planned", Goal: "karpenter"}, "Planned", warned)
	next("paused", true, store.Run{Outcome: "Paused", Goal: "karpenter"}, "Paused", warned)
	next("still paused", false, store.Run{Outcome: "Paused", Goal: "karpenter"}, "Paused", warned)
	next("not paused any more", true, store.Run{Outcome: "Planned", Goal: "karpenter"}, "Planned", warned)
	next("nothing", false, store.Run{Outcome: "Planned", Goal: "karpenter"}, "Planned", warned)
	s.cloud.Pass(30 * 24 * time.Hour)
	next("nothing for a month", false, store.Run{Outcome: "Planned", Goal: "karpenter"}, "Planned", warned)
	news = false
	delete(s.cloud.SSM.Values, "/sawhorse/racks/demo/status")
	next("somebody has deleted it", true, store.Run{Outcome: "Planned", Goal: "karpenter"}, "Planned", warned)
	s.cloud.SSM.Values["/sawhorse/racks/demo/status"] = `{"state":"Failed"}`
	next("somebody has written over it", true, store.Run{Outcome: "Planned", Goal: "karpenter"}, "Planned", warned)
}

// If a report is stopped after it has written the parameter and before it has recorded that, the next report must write the
// parameter again.
func TestAStatusThatWasWrittenAndNotNoted(t *testing.T) {
	for n := 1; ; n++ {
		s := begin(t, store.Run{Outcome: "Planned", Goal: "karpenter"})
		s.run(event("Planned"))
		s.must(s.store.SaveRun(t.Context(), store.Run{Rack: "demo", Generation: 8, Outcome: "Rejected", Problems: problem}))
		s.must(s.store.SaveRun(t.Context(), store.Run{Rack: "demo", Generation: 9, Outcome: "Planned", Goal: "karpenter"}))
		rejected, well := event("Rejected"), event("Planned")
		rejected.Generation, well.Generation = 8, 9
		s.cloud.Forget()
		s.cloud.FailAt(n, awsfake.Throttling)
		_, err := s.report.Run(t.Context(), rejected)
		if failed := s.cloud.Failed(); failed != (err != nil) {
			t.Fatalf("call %d: %v", n, err)
		} else if !failed {
			return
		}
		s.cloud.FailAt(0, nil)
		s.run(well)
		if got := s.status().State; got != outcome.StateReconciled {
			t.Errorf("stopped at call %d: the status says %s, and the rack is reconciled", n, got)
		}
	}
}

// change returns the version of the change in the only event.
func (s scene) change() int64 {
	s.Helper()
	if kind, _ := s.sent(); kind != "Rack Rejected" {
		s.Errorf("event %s", kind)
	}
	var detail events.Rejected
	s.must(json.Unmarshal([]byte(*s.cloud.Events.Sent[0].Detail), &detail))
	return detail.Change
}

// Who has written a change finds its version in the event Rack Rejected.
func TestARefusedChangeIsNamed(t *testing.T) {
	s := begin(t, store.Run{Outcome: "Planned"}, store.StepRecord{Step: "change", Problems: problem, Refused: 4}, done)
	s.run(event("Rejected"))
	if got := s.change(); got != 4 {
		t.Errorf("change %d", got)
	}
	s = begin(t, store.Run{Outcome: "Planned"}, store.StepRecord{Step: "queue", Problems: problem})
	s.run(event("Rejected"))
	if got := s.change(); got != 0 {
		t.Errorf("change %d, and none was refused", got)
	}
}

func TestRefused(t *testing.T) {
	s := begin(t, store.Run{})
	run := store.Run{Rack: "demo", Generation: 7, Execution: "me", Warnings: warning}
	s.must(Bus{Events: s.cloud.Events, Name: "sawhorse"}.Refused(t.Context(), run, 4, problem))
	_, detail := s.sent()
	if got := s.change(); got != 4 || len(detail.Problems) != 1 ||
		detail.Problems[0].Parameter != problem[0].Parameter || len(detail.Warnings) > 0 || detail.Generation != 7 {
		t.Errorf("change %d: %+v", got, detail)
	}
}

func TestPaused(t *testing.T) {
	s := begin(t, store.Run{Outcome: "Paused", Goal: "karpenter"})
	s.run(event("Paused"))
	if status := s.status(); status.State != outcome.StatePaused || !slices.Equal(status.Steps, []string{"queue"}) {
		t.Errorf("%+v", status)
	}
	s.reported(store.Digest(outcome.StatePaused, store.Run{Goal: "karpenter"}, []string{"queue"}))
}

func TestFailed(t *testing.T) {
	for _, c := range []struct{ name, cause, reason, remedy string }{
		{"StepFailed", `{"errorMessage":"queue demo: create: AccessDenied: no","errorType":"StepFailed"}`, "queue demo: create: AccessDenied: no",
			"A right is missing"},
		{"StepFailed", `{"errorMessage":"tag: UnauthorizedOperation","errorType":"StepFailed"}`, "tag: UnauthorizedOperation",
			"A right is missing"},
		{"StepFailed", `{"errorMessage":"` + unreachable.Error() + `"}`, unreachable.Error(), "subnetIds and securityGroupIds"},
		{"StepFailed", `{"errorMessage":"Karpenter 1.12.1 failed, ` + outcome.TookBack + ` 1.10.0, which works again: AccessDenied"}`,
			"Karpenter 1.12.1 failed, " + outcome.TookBack + " 1.10.0, which works again: AccessDenied",
			"until then this version is not tried again"},
		{"StepFailed", `{"errorMessage":"` + outcome.TookBack + ` 1.10.0, ` + outcome.NeitherWorks + `"}`,
			outcome.TookBack + " 1.10.0, " + outcome.NeitherWorks, "no node is launched"},
		{"StepFailed", `{"errorMessage":"UnauthorizedOperation; ` + outcome.NotHandedOver + `"}`,
			"UnauthorizedOperation; " + outcome.NotHandedOver, "Cluster Autoscaler and the build groups go on as before"},
		{"StepDeadlineExceeded", "nodepools: not done after 900 s", "nodepools: not done after 900 s", "did not happen in time"},
		{"States.Timeout", "", "the call took longer than its time", "nothing is lost"},
		{"ABORTED", "", "somebody stopped the execution", "goes on from here by itself"},
		{"TIMED_OUT", "", "the execution took longer than a pass may", "goes on from here by itself"},
		{"Unheard.Of", "", "no cause was given", "tries again"},
		{"Throttled", `{"errorMessage":"slow"}`, "slow", "nothing is lost"},
		{"Unavailable", `{"errorMessage":"EOF"}`, "EOF", "did not answer"},
		{"StepFailed", `{"errorMessage":"x"}`, "x", "tries again"},
		{"Lambda.TooManyRequestsException", "Rate Exceeded.", "Rate Exceeded.", "validateConcurrency"},
		{"Lambda.Unknown", `{"truncated`, `{"truncated`, "ran out of time"},
	} {
		s := begin(t, store.Run{Outcome: "Planned", Goal: "karpenter"}, done)
		e := event("Failed")
		e.Error, e.Cause, e.Step = c.name, c.cause, "queue"
		s.run(e)
		status := s.status()
		if status.State != outcome.StateFailed || status.Failure == nil || len(status.Changed) != 1 {
			t.Fatalf("%s: %+v", c.name, status)
		}
		if f := *status.Failure; f.Step != "queue" || f.Error != c.name || f.Reason != c.reason || !strings.Contains(f.Remedy, c.remedy) {
			t.Errorf("%+v, want the reason %q and a remedy with %q", f, c.reason, c.remedy)
		}
		kind, detail := s.sent()
		if f := *status.Failure; kind != "Rack Reconcile Failed" || detail.Step != f.Step ||
			detail.Error != f.Error || detail.Reason != f.Reason || detail.Remedy != f.Remedy || len(detail.Changed) != 1 {
			t.Errorf("%s %+v", kind, detail)
		}
		// No findings have this digest, so the first pass without problems reports again.
		s.reported(string(outcome.StateFailed))
		s.measures(`"Failed":1`, `"OutOfLine":1`, `"Changes":1`)
	}
}

// The time of the status shows that a failure is not over. resync, which also reports failed passes, may not read the status.
func TestARepeatedFailureIsWrittenAgain(t *testing.T) {
	s := begin(t, store.Run{Outcome: "Planned", Goal: "karpenter"})
	e := event("Failed")
	e.Error, e.Step = Aborted, "queue"
	for range 2 {
		s.cloud.Pass(time.Minute)
		s.cloud.Forget()
		s.run(e)
		read := slices.Contains(s.cloud.Made(), "SSM.GetParameter /sawhorse/racks/demo/status")
		if want := s.cloud.Now().Format(time.RFC3339)[:16]; s.status().Time[:16] != want || read {
			t.Errorf("status of %s, want %s; calls %v", s.status().Time, want, s.cloud.Made())
		}
	}
}

// After a rollback, the records may be those of a later version. Nothing is changed, and the status says why.
func TestRecordsOfALaterVersionAreReported(t *testing.T) {
	s := begin(t, store.Run{})
	s.cloud.Table.Items["rack#demo records"] = awsfake.Item{"pk": &types.AttributeValueMemberS{Value: "rack#demo"},
		"sk": &types.AttributeValueMemberS{Value: "records"}, "format": &types.AttributeValueMemberN{Value: "99"}}
	e := event("Failed")
	_, err := s.store.Records(t.Context(), "demo")
	e.Error, e.Cause, e.Step = "errorString", err.Error(), "validate"
	s.run(e)
	if status := s.cloud.SSM.Values["/sawhorse/racks/demo/status"]; !strings.Contains(status, "a later version of Sawhorse wrote them") {
		t.Errorf("status %s", status)
	}
	if _, written := s.cloud.SSM.Values["/sawhorse/racks/demo/outputs"]; written || len(s.cloud.Table.Items["rack#demo records"]) != 3 {
		t.Errorf("it has written %v, %v", s.cloud.SSM.Values, s.cloud.Table.Items["rack#demo records"])
	}
}

func TestWithoutTheLeaseNothingIsReported(t *testing.T) {
	s := begin(t, store.Run{})
	s.cloud.Table.Items["rack#demo lease"]["owner"] = &types.AttributeValueMemberS{Value: "another pass"}
	if _, err := s.report.Run(t.Context(), event("Planned")); !errors.Is(err, store.ErrLeaseLost) ||
		len(s.cloud.SSM.Values)+len(s.cloud.Events.Sent) > 0 {
		t.Errorf("%v, %v, %v", err, s.cloud.SSM.Values, s.cloud.Events.Sent)
	}
	if s.measured.Len() > 0 {
		t.Errorf("measured %s", s.measured)
	}
}

// The records show that Karpenter was on until all steps of its removal are applied.
func TestTheEndOfARemoval(t *testing.T) {
	for _, c := range []struct {
		what    string
		applied map[string]string
		outcome outcome.Outcome
		goal    plan.Goal
		left    bool
	}{
		{"all applied", map[string]string{"queue": "1"}, "Planned", plan.GoalAccess, false},
		{"all applied, found by a later pass", map[string]string{"queue": "1"}, "Unchanged", plan.GoalAccess, false},
		{"a step has more to do", nil, "Planned", plan.GoalAccess, true},
		{"failed", map[string]string{"queue": "1"}, "Failed", plan.GoalAccess, true},
		{"rejected", map[string]string{"queue": "1"}, "Rejected", plan.GoalAccess, true},
		{"Karpenter is on", map[string]string{"queue": "1"}, "Planned", plan.GoalKarpenter, true},
	} {
		s := begin(t, store.Run{Goal: string(c.goal)})
		s.must(s.store.SavePlan(t.Context(), &plan.Plan{
			Format: plan.Format, Rack: "demo", Goal: c.goal, Steps: []plan.Step{{Name: "queue", Fingerprint: "1"}},
		}))
		s.must(s.store.SaveRecords(t.Context(), "demo", plan.Records{
			WasOn: true, Credentials: "irsa", CNIIndependent: true, HadBuildRole: true, Goal: c.goal, Applied: c.applied}))
		e := event(c.outcome)
		if c.outcome == "Failed" {
			e.Error = "StepFailed"
		}
		s.run(e)
		records, err := s.store.Records(t.Context(), "demo")
		s.must(err)
		if records.WasOn != c.left || (records.Credentials == "irsa") != c.left || records.CNIIndependent != c.left ||
			records.HadBuildRole != c.left || len(records.Applied) != len(c.applied) {
			t.Errorf("%s: %+v", c.what, records)
		}
	}
}

// With the end of a removal, neither Karpenter nor a freeze of its pools is in force, also if the cluster is gone, with all records.
func TestWhatIsInForceAfterARemoval(t *testing.T) {
	for _, gone := range []bool{false, true} {
		p, applied := frozenPlan()
		p.Goal, p.Cluster.Gone = plan.GoalAccess, gone
		for _, step := range p.Steps {
			applied[step.Name] = step.Fingerprint
		}
		s := begin(t, store.Run{Goal: string(plan.GoalAccess), Freeze: new(true)})
		s.must(s.store.SavePlan(t.Context(), p))
		records := plan.Records{WasOn: true, Goal: plan.GoalAccess, Applied: applied}
		if gone {
			records.Karpenter.Version = "1.10.0" // no step takes it away
		}
		s.must(s.store.SaveRecords(t.Context(), "demo", records))
		s.run(event("Planned"))
		if status := s.status(); status.Karpenter != "" || len(status.Brakes) > 0 || len(status.Warnings) > 0 {
			t.Errorf("gone %v: Karpenter %q, brakes %v, warnings %v", gone, status.Karpenter, status.Brakes, status.Warnings)
		}
	}
}

// An iteration that another write superseded is reported by the next report, once.
func TestSupersededIterations(t *testing.T) {
	s := begin(t, store.Run{Outcome: "Planned", Goal: "karpenter"}, done)
	overtaken := store.StepRecord{
		Step: "infrastructure", Changes: []outcome.Change{{Subject: "role demo", Action: "created"}}, Incidents: problem,
	}
	for generation := int64(4); generation < 7; generation++ {
		s.must(s.store.NoteStep(s.Context(), "demo", generation, s.cloud.Now(), overtaken))
	}
	s.must(s.store.SaveStatus(s.Context(), store.Status{Rack: "demo", Generation: 5}, "", store.Reported{}))
	s.run(event("Planned"))
	if got := s.status(); !slices.Equal(got.Changed, []string{"role demo created", "queue demo created"}) ||
		!slices.Equal(got.Warnings, slices.Concat(problem, warning)) {
		t.Errorf("%v, warnings %v", got.Changed, got.Warnings)
	}
	t.Log("an iteration that a release has counted as served is not reported again")
	s.must(s.store.SaveStatus(s.Context(), store.Status{Rack: "demo", Generation: 1}, "", store.Reported{}))
	s.cloud.Table.Items["rack#demo lease"]["served"] = &types.AttributeValueMemberN{Value: "6"}
	s.run(event("Planned"))
	if got := s.status(); !slices.Equal(got.Changed, []string{"queue demo created"}) {
		t.Errorf("%v", got.Changed)
	}
}

// A write during a pass starts another iteration, which has a report of its own. That report has the changes of the earlier
// iterations too, and the metrics count each change once. The next pass reports its own changes only.
func TestTheIterationsOfAPassAreReportedTogether(t *testing.T) {
	some := 12
	s := begin(t, store.Run{Outcome: "Planned", Goal: "karpenter", Effects: []plan.Effect{
		{Pool: "workload", Change: events.PoolChanged, Replaces: true, Reasons: []string{"NodePoolDrifted"}, Nodes: &some},
		{Pool: "gpu", Change: events.PoolCreated},
	}}, done)
	s.run(event("Planned"))
	iteration := func(generation int64, execution string, records ...store.StepRecord) {
		t.Helper()
		s.cloud.Table.Items["rack#demo lease"]["owner"] = &types.AttributeValueMemberS{Value: execution}
		s.must(s.store.SaveRun(t.Context(), store.Run{
			Rack: "demo", Generation: generation, Execution: execution, Started: s.cloud.Now(), Outcome: "Planned", Goal: "karpenter",
			Effects: []plan.Effect{{Pool: "gpu", Change: events.PoolChanged}, {Pool: "workload", Change: events.PoolChanged, Nodes: &some}},
		}))
		for _, r := range records {
			s.must(s.store.NoteStep(t.Context(), "demo", generation, s.cloud.Now(), r))
		}
		s.cloud.Events.Sent = nil
		s.measured.Reset()
		e := event("Planned")
		e.Generation, e.Execution = generation, execution
		s.run(e)
	}
	iteration(8, "me", store.StepRecord{Step: "queue", Changes: []outcome.Change{{Subject: "rule demo", Action: "created"}}})
	_, detail := s.sent()
	if got := s.status(); !slices.Equal(got.Changed, []string{"queue demo created", "rule demo created"}) ||
		got.Generation != 8 || len(detail.Changed) != 2 {
		t.Errorf("%v, and the event %v", got.Changed, detail.Changed)
	}
	want := []string{
		"pool gpu is created",
		"pool workload is changed: Karpenter replaces its 12 nodes (NodePoolDrifted), as its disruption budget allows",
	}
	if got := s.status().Effects; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if !strings.Contains(s.measured.String(), `"Changes":1`) {
		t.Errorf("counted %s", s.measured)
	}
	s.cloud.Table.Items["rack#demo lease"]["served"] = &types.AttributeValueMemberN{Value: "8"}
	iteration(9, "the next", store.StepRecord{Step: "queue", Changes: []outcome.Change{{Subject: "queue demo", Action: "repaired"}}})
	if got := s.status(); !slices.Equal(got.Changed, []string{"queue demo repaired"}) ||
		!strings.Contains(s.measured.String(), `"Changes":1`) {
		t.Errorf("%v, counted %s", got.Changed, s.measured)
	}
	t.Log("the next pass does not report the changes of a pass that was stopped after its report")
	s.cloud.Table.Items["rack#demo lease"]["served"] = &types.AttributeValueMemberN{Value: "5"}
	iteration(10, "after that", store.StepRecord{Step: "queue", Changes: []outcome.Change{{Subject: "rule demo", Action: "repaired"}}})
	iteration(11, "after that")
	if got := s.status(); !slices.Equal(got.Changed, []string{"rule demo repaired"}) {
		t.Errorf("%v", got.Changed)
	}
}

// The warnings of a step stay in the status as long as the step is applied, because other passes do not run it.
func TestWarningsOfEarlierPasses(t *testing.T) {
	none := []params.Problem{{Parameter: "cluster_autoscaler", Message: "none was found"}}
	s := begin(t, store.Run{Outcome: "Planned", Goal: "karpenter", Warnings: problem}, done)
	s.must(s.store.SaveRecords(t.Context(), "demo", plan.Records{Goal: plan.GoalKarpenter, Warnings: map[string][]params.Problem{
		"queue": {{Parameter: "rack", Message: "of the pass before, which this one took again"}}, "autoscaler": none,
	}}))
	s.run(event("Planned"))
	want := slices.Concat(problem, warning, none)
	if got := s.status().Warnings; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if _, detail := s.sent(); len(detail.Warnings) != len(want) {
		t.Errorf("%v", detail.Warnings)
	}
}

// A warning that stays is told by the event of the first pass, and counted by those of the next ones. The status shows it all the time, and
// an incident is told each time that it happens.
func TestWarningsAreToldOnce(t *testing.T) {
	incident := []params.Problem{{Parameter: "rack", Message: "i"}}
	s := begin(t, store.Run{})
	more := []params.Problem{{Parameter: "node_disk", Message: "more"}}
	for i, c := range []struct {
		warnings, incidents []params.Problem
		told                []params.Problem
		unchanged           int
	}{
		{warning, incident, slices.Concat(warning, incident), 0},
		{warning, nil, nil, 1},
		{slices.Concat(more, warning), incident, slices.Concat(more, incident), 1},
		{slices.Concat(more, warning), incident, incident, 2},
		{nil, nil, nil, 0},
		{warning, nil, warning, 0},
	} {
		e := event("Planned")
		e.Generation, e.Execution = int64(7+i), fmt.Sprint("pass ", i)
		s.cloud.Table.Items["rack#demo lease"]["owner"] = &types.AttributeValueMemberS{Value: e.Execution}
		s.must(s.store.SaveRun(t.Context(), store.Run{Rack: "demo", Generation: e.Generation, Execution: e.Execution, Started: s.cloud.Now(),
			Outcome: "Planned", Goal: "karpenter", Warnings: c.warnings}))
		s.must(s.store.NoteStep(t.Context(), "demo", e.Generation, s.cloud.Now(), store.StepRecord{Step: "queue", Incidents: c.incidents}))
		s.cloud.Events.Sent = nil
		s.run(e)
		if got := s.status().Warnings; !slices.Equal(got, slices.Concat(c.warnings, c.incidents)) {
			t.Errorf("pass %d: the status has %v", i, got)
		}
		if _, detail := s.sent(); !slices.Equal(detail.Warnings, c.told) || detail.UnchangedWarnings != c.unchanged {
			t.Errorf("pass %d: told %v and %d unchanged ones, want %v and %d", i, detail.Warnings, detail.UnchangedWarnings, c.told, c.unchanged)
		}
	}
}

// A report that is stopped and repeated has the same result. The event may be sent twice. The digest is recorded only after
// the event was sent.
func TestInterrupted(t *testing.T) {
	for n := 1; ; n++ {
		s := begin(t, store.Run{Goal: "karpenter"}, done)
		s.must(s.store.NoteOutputs(t.Context(), "demo", map[string]string{"url": "u"}))
		s.cloud.FailAt(n, awsfake.Throttling)
		_, err := s.report.Run(t.Context(), event("Planned"))
		if !s.cloud.Failed() {
			break // the report has fewer calls
		}
		if !errors.Is(err, awsfake.Throttling) {
			t.Fatalf("call %d failed and the report said %v", n, err)
		}
		if reported, _ := s.store.Reported(t.Context(), "demo"); reported.Findings != "" {
			t.Errorf("call %d failed, and the digest is recorded", n)
		}
		s.run(event("Planned"))
		if len(s.cloud.Events.Sent) == 0 || s.status().State != outcome.StateReconciled ||
			s.cloud.SSM.Values["/sawhorse/racks/demo/outputs"] != `{"url":"u"}` {
			t.Errorf("call %d failed, and in the end: %v, %v", n, s.cloud.Events.Sent, s.cloud.SSM.Values)
		}
	}
}

// A dry run that fails gets an event and changes nothing of the rack.
func TestADryRunThatFailsIsAnswered(t *testing.T) {
	s := begin(t, store.Run{})
	s.run(Event{
		Rack: "demo", Execution: "the dry run", Outcome: "Failed", Error: "StepFailed", Cause: `{"errorMessage":"x"}`,
		DryRun: true, Request: "r-1", Started: s.cloud.Now(),
	})
	if kind, detail := s.sent(); kind != "Rack Reconcile Failed" || !detail.DryRun || detail.Reason != "x" ||
		detail.Remedy == "" || detail.Execution != "the dry run" {
		t.Errorf("%s %+v", kind, detail)
	}
	if writes := s.cloud.Writes(); len(writes) != 1 || len(s.cloud.SSM.Values) > 0 {
		t.Errorf("writes %v", writes)
	}
}

// An execution that was stopped before it read its generation is reported with the generation of the lease.
func TestFailedWithoutAGeneration(t *testing.T) {
	s := begin(t, store.Run{})
	s.cloud.Table.Items["rack#demo lease"]["requested"] = &types.AttributeValueMemberN{Value: "9"}
	s.run(Event{Rack: "demo", Execution: "me", Outcome: "Failed", Error: Aborted, Started: s.cloud.Now()})
	if status := s.status(); status.Generation != 9 || status.State != outcome.StateFailed || status.Failure.Reason == "" {
		t.Errorf("%+v", status)
	}
}

// A rack that is forgotten has no status, outputs, records and claim any more, and gets a last event.
func TestForgotten(t *testing.T) {
	s := begin(t, store.Run{Outcome: "Forgotten"})
	s.must(s.store.SavePlan(t.Context(), &plan.Plan{Format: plan.Format, Rack: "demo", Cluster: plan.Cluster{ARN: "arn"}}))
	if _, err := s.store.LockCluster(t.Context(), "arn", "demo"); err != nil {
		t.Fatal(err)
	}
	s.cloud.SSM.Values["/sawhorse/racks/demo/status"], s.cloud.SSM.Values["/sawhorse/racks/demo/outputs"] = "{}", "{}"
	s.run(event("Forgotten"))
	claimant, _ := s.store.ClusterLock(t.Context(), "arn")
	p, _ := s.store.Plan(t.Context(), "demo")
	if len(s.cloud.SSM.Values) > 0 || claimant != "" || p != nil {
		t.Errorf("left: %v, claim %q, plan %v", s.cloud.SSM.Values, claimant, p)
	}
	if kind, detail := s.sent(); kind != "Rack Reconciled" || len(detail.Changed) != 1 || detail.Changed[0].Action != "forgotten" {
		t.Errorf("%s %+v", kind, detail)
	}
}
