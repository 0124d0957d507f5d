package handler

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
	"github.com/sawhorse-io/sawhorse/statemachine"
)

var step = plan.Step{Name: "nodegroups/placement", Function: "nodegroups", Part: "placement", Fingerprint: "f1"}

// begin is a rack whose pass "me" has a plan of generation 7 under way.
func begin(t *testing.T, requested string, do outcome.StepFunc) (*awsfake.Cloud, stepper) {
	t.Helper()
	cloud := awsfake.New()
	records := &store.Store{DB: cloud.Table, Name: "sawhorse"}
	cloud.Table.Items["rack#demo lease"] = awsfake.Item{
		"pk": &types.AttributeValueMemberS{Value: "rack#demo"}, "sk": &types.AttributeValueMemberS{Value: "lease"},
		"owner": &types.AttributeValueMemberS{Value: "me"}, "requested": &types.AttributeValueMemberN{Value: requested},
	}
	for _, err := range []error{
		records.SavePlan(t.Context(), &plan.Plan{Format: plan.Format, Rack: "demo", Generation: 7}),
		records.SaveRecords(t.Context(), "demo", plan.Records{}),
		records.SaveRun(t.Context(), store.Run{Rack: "demo", Generation: 7, Started: cloud.Now()}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	cloud.Forget()
	env := Env{Function: "nodegroups", Store: records, Log: slog.New(slog.NewJSONHandler(io.Discard, nil)), Now: cloud.Now}
	return cloud, stepper{env, do}
}

func (s stepper) call(t *testing.T) (statemachine.StepAnswer, error) {
	t.Helper()
	return s.callOf(t, step)
}

func (s stepper) callOf(t *testing.T, step plan.Step) (statemachine.StepAnswer, error) {
	t.Helper()
	return s.serve(t.Context(), statemachine.StepCall{Rack: "demo", Generation: 7, Execution: "me", Step: step})
}

func always(progress outcome.Progress, err error) outcome.StepFunc {
	return func(context.Context, *plan.Plan, string) (outcome.Progress, error) { return progress, err }
}

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		what      string
		progress  outcome.Progress
		requested string
		want      statemachine.StepAnswer
		applied   string // the step's fingerprint in the records
	}{
		{"done", outcome.Progress{Note: "n"}, "7", statemachine.StepAnswer{Status: "done", Note: "n"}, "f1"},
		{"done although the rack has been written to", outcome.Progress{}, "8", statemachine.StepAnswer{Status: "done"}, "f1"},
		{"a later pass does the rest", outcome.Progress{Unfinished: true, Note: "builds run"}, "7",
			statemachine.StepAnswer{Status: "done", Note: "builds run"}, ""},
		{"not yet", outcome.Progress{Wait: 3 * time.Second, Note: "n"}, "7",
			statemachine.StepAnswer{Status: "wait", WaitSeconds: 3, Note: "n"}, ""},
		{"not yet, a moment", outcome.Progress{Wait: time.Millisecond}, "7", statemachine.StepAnswer{Status: "wait", WaitSeconds: 1}, ""},
		{"a write during a wait", outcome.Progress{Wait: 3 * time.Second}, "8",
			statemachine.StepAnswer{Status: "superseded", WaitSeconds: 3}, ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			_, s := begin(t, c.requested, always(c.progress, nil))
			got, err := s.call(t)
			if c.want.Step = step.Name; err != nil || got != c.want {
				t.Errorf("%+v, %v; want %+v", got, err, c.want)
			}
			records, err := s.Store.Records(t.Context(), "demo")
			if err != nil || records.Applied[step.Name] != c.applied {
				t.Errorf("applied %v, %v; want %q", records.Applied, err, c.applied)
			}
		})
	}
}

// A step without changes and warnings writes only the lease and that it is applied.
func TestAStepWithoutChangesLeavesNoRecord(t *testing.T) {
	cloud, s := begin(t, "7", always(outcome.Progress{Note: "all well"}, nil))
	if _, err := s.call(t); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(cloud.Writes()), "[DynamoDB.UpdateItem rack#demo lease DynamoDB.UpdateItem rack#demo records]"; got != want {
		t.Errorf("writes %s, want %s", got, want)
	}
}

// The writes of the step change count as requests of the rack. If they superseded the step, it would never be done. Where it only
// waits for its next attempt, it holds up no write to the rack.
func TestAStepThatIsWholeIsNotSuperseded(t *testing.T) {
	_, s := begin(t, "12", always(outcome.Progress{Wait: time.Second}, nil))
	if got, err := s.callOf(t, plan.ChangeStep); err != nil || got.Status != statemachine.Wait || got.WaitSeconds != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := s.callOf(t, plan.ChangeAgainStep); err != nil || got.Status != statemachine.Superseded {
		t.Errorf("%+v, %v", got, err)
	}
}

// A change may be a rack's first request. Then there are no plan and no records yet.
func TestTheStepOfAChangeNeedsNoPlan(t *testing.T) {
	var rackOfPlan string
	cloud, s := begin(t, "7", func(_ context.Context, p *plan.Plan, _ string) (outcome.Progress, error) {
		rackOfPlan = p.Rack
		return outcome.Progress{}, nil
	})
	delete(cloud.Table.Items, "plan#demo plan")
	delete(cloud.Table.Items, "rack#demo records")
	if got, err := s.callOf(t, plan.ChangeStep); err != nil || got.Status != statemachine.Done || rackOfPlan != "demo" {
		t.Errorf("%+v, %v, rack %q", got, err, rackOfPlan)
	}
	if writes := cloud.Writes(); len(writes) > 1 || len(cloud.Table.Items["rack#demo records"]) > 0 {
		t.Errorf("writes %v, records %v", writes, cloud.Table.Items["rack#demo records"])
	}
}

func TestARefusedChangeIsNamedInTheRun(t *testing.T) {
	refusal := &outcome.Rejected{Change: 4, Problems: []params.Problem{{Parameter: "karpenter_cpu_limit", Message: "no"}}}
	_, s := begin(t, "7", always(outcome.Progress{}, refusal))
	if _, err := s.callOf(t, plan.ChangeStep); reflect.TypeOf(edge(t.Context(), err)).Name() != "Rejected" {
		t.Fatal(err)
	}
	run, err := s.Store.Run(t.Context(), "demo", 0, 7)
	want := []store.StepRecord{{Step: "change", Problems: refusal.Problems, Refused: 4}}
	if err != nil || !reflect.DeepEqual(run.Steps, want) {
		t.Errorf("%+v, %v", run.Steps, err)
	}
}

func TestWhatAStepDidIsInTheRun(t *testing.T) {
	warning := []params.Problem{{Parameter: "karpenter_enabled", Message: "w"}}
	_, s := begin(t, "7", func(_ context.Context, p *plan.Plan, part string) (outcome.Progress, error) {
		var progress outcome.Progress
		progress.Changed("created", "%s of plan %d", part, p.Generation)
		progress.Warnings, progress.Outputs = warning, map[string]string{"a": "b"}
		return progress, nil
	})
	if _, err := s.call(t); err != nil {
		t.Fatal(err)
	}
	run, err := s.Store.Run(t.Context(), "demo", 0, 7)
	want := []store.StepRecord{{
		Step: step.Name, Changes: []outcome.Change{{Subject: "placement of plan 7", Action: "created"}}, Warnings: warning,
	}}
	if err != nil || !reflect.DeepEqual(run.Steps, want) {
		t.Errorf("%+v, %v", run.Steps, err)
	}
	if outputs, err := s.Store.Outputs(t.Context(), "demo"); err != nil || !reflect.DeepEqual(outputs, map[string]string{"a": "b"}) {
		t.Errorf("%v, %v", outputs, err)
	}
}

// Incidents of all calls are reported, but the warnings of the last call only.
func TestWarningsOfCallsThatWait(t *testing.T) {
	says := func(what string) []params.Problem {
		return []params.Problem{{Parameter: "karpenter_enabled", Message: what}}
	}
	calls := []outcome.Progress{
		{Wait: time.Second, Warnings: says("not ready yet"), Incidents: says("set back")},
		{Wait: time.Second, Incidents: says("ended")},
		{Warnings: says("one replica")},
	}
	_, s := begin(t, "7", func(context.Context, *plan.Plan, string) (outcome.Progress, error) {
		progress := calls[0]
		calls = calls[1:]
		return progress, nil
	})
	for range 3 {
		if _, err := s.call(t); err != nil {
			t.Fatal(err)
		}
	}
	run, err := s.Store.Run(t.Context(), "demo", 0, 7)
	want := []store.StepRecord{{Step: step.Name, Warnings: says("one replica"), Incidents: append(says("set back"), says("ended")...)}}
	if err != nil || !reflect.DeepEqual(run.Steps, want) {
		t.Errorf("%+v, %v", run.Steps, err)
	}
	if records, err := s.Store.Records(t.Context(), "demo"); err != nil ||
		!reflect.DeepEqual(records.Warnings[step.Name], says("one replica")) {
		t.Errorf("%v, %v", records.Warnings, err)
	}
}

// Texts from a cluster can be of any length. Step Functions ends an execution whose state exceeds 256 KB.
func TestLongTextsAreCut(t *testing.T) {
	endless := strings.Repeat("é", 1<<20)
	progress := outcome.Progress{Wait: time.Second, Note: endless}
	progress.Happened("karpenter_enabled", "%s", endless)
	_, s := begin(t, "7", always(progress, nil))
	answer, err := s.call(t)
	if err != nil || len(answer.Note) > outcome.Longest+len("…") || !strings.HasSuffix(answer.Note, "é…") {
		t.Errorf("%d bytes, %v", len(answer.Note), err)
	}
	run, err := s.Store.Run(t.Context(), "demo", 0, 7)
	if err != nil || len(run.Steps[0].Incidents[0].Message) > outcome.Longest+len("…") {
		t.Errorf("%d bytes, %v", len(run.Steps[0].Incidents[0].Message), err)
	}
	if err := edge(t.Context(), errors.New(endless)); len(err.Error()) > outcome.Longest+len("…") {
		t.Errorf("%d bytes", len(err.Error()))
	}
}

// The record of a failed call has its changes and its problems.
func TestAFailedCallIsInTheRun(t *testing.T) {
	var progress outcome.Progress
	progress.Changed("created", "role")
	_, s := begin(t, "7", always(progress, outcome.Reject("rack", "no")))
	if _, err := s.call(t); reflect.TypeOf(edge(t.Context(), err)).Name() != "Rejected" {
		t.Fatal(err)
	}
	run, err := s.Store.Run(t.Context(), "demo", 0, 7)
	want := []store.StepRecord{{Step: step.Name, Changes: progress.Changes, Problems: []params.Problem{{Parameter: "rack", Message: "no"}}}}
	if err != nil || !reflect.DeepEqual(run.Steps, want) {
		t.Errorf("%+v, %v", run.Steps, err)
	}
	if records, _ := s.Store.Records(t.Context(), "demo"); len(records.Applied) > 0 {
		t.Errorf("applied %v", records.Applied)
	}
}

// If the problems of a rejection cannot be recorded, the call is repeated: the report would not have them.
func TestARejectionThatIsNotRecordedIsNoRejection(t *testing.T) {
	cloud, s := begin(t, "7", always(outcome.Progress{}, outcome.Reject("rack", "no")))
	cloud.FailAt(4, awsfake.Throttling) // lease, plan, run, and then its writing
	_, err := s.call(t)
	if name := reflect.TypeOf(edge(t.Context(), err)).Name(); name != "Throttled" || !strings.Contains(err.Error(), "rack: no") {
		t.Errorf("%s: %v", name, err)
	}
}

// A pass that has lost its lease changes nothing more.
func TestWithoutTheLeaseNothingIsDone(t *testing.T) {
	called := false
	cloud, s := begin(t, "7", func(context.Context, *plan.Plan, string) (outcome.Progress, error) {
		called = true
		return outcome.Progress{}, nil
	})
	cloud.Table.Items["rack#demo lease"]["owner"] = &types.AttributeValueMemberS{Value: "another pass"}
	if _, err := s.call(t); reflect.TypeOf(edge(t.Context(), err)).Name() != "LeaseLost" || called || len(cloud.Writes()) > 1 {
		t.Errorf("%v, step called: %v, writes %v", err, called, cloud.Writes())
	}
}

func TestAPlanOfAnotherFormatIsRefused(t *testing.T) {
	_, s := begin(t, "7", always(outcome.Progress{}, nil))
	if err := s.Store.SavePlan(t.Context(), &plan.Plan{Format: plan.Format + 1, Rack: "demo"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.call(t); err == nil || !strings.Contains(err.Error(), "step nodegroups/placement") ||
		!strings.Contains(err.Error(), "the next pass makes a new one") {
		t.Errorf("%v", err)
	}
}

// Any AWS call may fail. The next call of the step does the rest.
func TestACallThatFailsOnTheWay(t *testing.T) {
	var progress outcome.Progress
	progress.Changed("created", "role")
	for n := 1; n <= 5; n++ {
		cloud, s := begin(t, "7", always(progress, nil))
		cloud.FailAt(n, awsfake.Throttling)
		if _, err := s.call(t); !errors.Is(err, awsfake.Throttling) || strings.Contains(err.Error(), "nil") {
			t.Errorf("call %d failed and the answer is %v", n, err)
		}
		if answer, err := s.call(t); err != nil || answer.Status != statemachine.Done {
			t.Errorf("after call %d failed: %+v, %v", n, answer, err)
		}
		if records, err := s.Store.Records(t.Context(), "demo"); err != nil || records.Applied[step.Name] != "f1" {
			t.Errorf("after call %d failed: applied %v, %v", n, records.Applied, err)
		}
	}
}

// A hold stops a pass at the next call of a step, also where it would not wait, or takes no newer write; only what writes a
// change request goes on. A hold that an earlier iteration was interrupted for stops nothing more.
func TestAHoldStopsTheNextCall(t *testing.T) {
	long, change := step, plan.ChangeStep
	long.Uninterruptible = true
	for _, c := range []struct {
		heldAt string
		step   plan.Step
		want   string
	}{
		{"8", step, statemachine.Superseded},
		{"8", long, statemachine.Superseded},
		{"8", change, statemachine.Done},
		{"7", step, statemachine.Done},
	} {
		called := false
		cloud, s := begin(t, "8", func(context.Context, *plan.Plan, string) (outcome.Progress, error) {
			called = true
			return outcome.Progress{}, nil
		})
		cloud.Table.Items["rack#demo lease"]["heldAt"] = &types.AttributeValueMemberN{Value: c.heldAt}
		answer, err := s.callOf(t, c.step)
		if err != nil || answer.Status != c.want || called != (c.want == statemachine.Done) {
			t.Errorf("held at %s, %s: %+v, %v, step called: %v", c.heldAt, c.step.Name, answer, err, called)
		}
	}
}
