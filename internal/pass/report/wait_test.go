package report

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
	"github.com/sawhorse-io/sawhorse/statemachine"
)

// waiting is the call that says what the pass of an event waits for.
func waiting(of Event, note string) Event {
	return Event{
		Rack: of.Rack, Execution: of.Execution, Generation: of.Generation, Started: of.Started,
		Wait: &statemachine.StepWait{Step: "controller", Since: of.Started.Add(3 * time.Second), Note: note},
	}
}

// What a pass waits for is in the status parameter only, beside the last outcome and what is known of the nodes. The report of
// its end removes it, and finds no news in it.
func TestWhatAPassWaitsFor(t *testing.T) {
	s := applied(t)
	s.run(event("Planned"))
	before := s.status()
	warned := store.StepRecord{Step: "queue", Warnings: warning}
	end := s.next(8, store.Run{Outcome: "Planned", Goal: "karpenter"}, event("Planned"), warned)
	s.cloud.Events.Sent = nil
	s.measured.Reset()
	for _, note := range []string{"0 of 2 pods ready", "1 of 2 pods ready"} {
		s.run(waiting(end, note))
		status := s.status()
		want := store.Running{
			Execution: "me too", Started: end.Started, Step: "controller", Since: end.Started.Add(3 * time.Second), Note: note,
		}
		if status.Running == nil || *status.Running != want {
			t.Errorf("%+v, want %+v", status.Running, want)
		}
		if status.State != before.State || status.Generation != 7 || status.Execution != "me" ||
			!slices.Equal(status.Changed, before.Changed) || *status.Rollout != *before.Rollout {
			t.Errorf("the last outcome was %+v, and is %+v", before, status)
		}
	}
	reported, err := s.store.Reported(t.Context(), "demo")
	s.must(err)
	if record, err := reported.Status(); err != nil || record.Running != nil || !reported.Running {
		t.Errorf("the record of the last report has %+v, %v", record, err)
	}
	if len(s.cloud.Events.Sent) > 0 || s.measured.Len() > 0 {
		t.Errorf("sent %v, measured %s", s.cloud.Events.Sent, s.measured)
	}
	s.run(end)
	if status := s.status(); status.Running != nil || status.State != outcome.StateReconciled {
		t.Errorf("after the end: %+v", status)
	}
	if got := s.rollout(); got.Generation != 7 {
		t.Errorf("the nodes follow a pass that changed nothing: %+v", got)
	}
	after := s.next(9, store.Run{Outcome: "Planned", Goal: "karpenter"}, event("Planned"), warned)
	s.cloud.Forget()
	s.run(after)
	if slices.Contains(s.cloud.Made(), "SSM.PutParameter /sawhorse/racks/demo/status") {
		t.Error("the next pass, which is quick and finds nothing new, writes the status")
	}
}

// However a pass ends, its report removes what it waited for, or the one of the next pass if it was stopped. Parameter Store may
// still show the status from before the wait.
func TestEveryEndRemovesWhatAPassWaitsFor(t *testing.T) {
	failed := event("Failed")
	failed.Error, failed.Step = "StepFailed", "queue"
	for what, end := range map[string]Event{
		"reconciled": event("Planned"), "failed": failed, "rejected": event("Rejected"), "paused": event("Paused"),
		"nothing to do": event("Unchanged"),
	} {
		for _, other := range []bool{false, true} {
			s := begin(t, store.Run{Outcome: "Planned", Goal: "karpenter"}, done)
			s.run(event("Planned"))
			s.cloud.Lag.Parameters = time.Hour
			s.run(waiting(event("Planned"), "pods"))
			e := end
			if other {
				e = s.next(8, store.Run{Outcome: end.Outcome, Goal: "karpenter"}, end, store.StepRecord{Step: "queue", Warnings: warning})
			}
			s.run(e)
			if status := s.status(); status.Running != nil {
				t.Errorf("%s, another pass %v: %+v", what, other, status.Running)
			}
		}
	}
}

// Before the first report, the parameter has nothing but what the pass waits for.
func TestWhatTheFirstPassWaitsFor(t *testing.T) {
	s := begin(t, store.Run{Outcome: "Planned", Goal: "karpenter"}, done)
	s.run(waiting(event("Planned"), "EKS changes the access mode"))
	if status := s.status(); status.Running == nil || status.State != "" || status.Rack != "demo" {
		t.Errorf("%+v", status)
	}
	s.run(event("Planned"))
	if status := s.status(); status.Running != nil || status.State != outcome.StateReconciled {
		t.Errorf("%+v", status)
	}
	s.measures(`"Changes":1`, `"state":"Reconciled"`)
}

// A pass answers a change at its beginning, and the status says so while the pass waits: whoever wrote it need not wait for the end.
func TestAChangeIsAnsweredWhileThePassWaits(t *testing.T) {
	s := applied(t)
	s.run(event("Planned"))
	end := s.next(8, store.Run{Outcome: "Planned", Goal: "karpenter"}, event("Planned"))
	answered := store.Changes{Version: 3, Last: &store.ChangeStatus{Version: 3, Outcome: store.ChangeWritten}}
	s.must(s.store.SaveChanges(t.Context(), "demo", &answered, s.cloud.Now()))
	s.run(waiting(end, "0 of 2 pods ready"))
	if got := s.status().Change; got == nil || got.Version != 3 || got.Outcome != store.ChangeWritten {
		t.Errorf("%+v", got)
	}
}

// Both calls may be stopped anywhere, and run again or not: in the end the status has no pass that waits.
func TestAWaitThatIsInterrupted(t *testing.T) {
	for n := 1; ; n++ {
		for _, again := range []bool{false, true} {
			s := begin(t, store.Run{Outcome: "Planned", Goal: "karpenter"}, done)
			s.run(event("Planned"))
			end := s.next(8, store.Run{Outcome: "Planned", Goal: "karpenter"}, event("Planned"))
			s.cloud.FailAt(n, awsfake.Throttling)
			for _, call := range []Event{waiting(end, "pods"), end} {
				if _, err := s.report.Run(t.Context(), call); err != nil && again {
					s.run(call)
				}
			}
			if !s.cloud.Failed() {
				return // there are fewer calls
			}
			s.run(end)
			if status := s.status(); status.Running != nil || status.State != outcome.StateReconciled {
				t.Errorf("call %d, again %v: %+v", n, again, status)
			}
		}
	}
}

func TestWithoutTheLeaseNoWaitIsTold(t *testing.T) {
	s := begin(t, store.Run{})
	s.cloud.Table.Items["rack#demo lease"]["owner"] = &types.AttributeValueMemberS{Value: "another pass"}
	_, err := s.report.Run(t.Context(), waiting(event("Planned"), "pods"))
	if !errors.Is(err, store.ErrLeaseLost) || len(s.cloud.SSM.Values) > 0 || s.cloud.Table.Items["rack#demo status"] != nil {
		t.Errorf("%v, %v", err, s.cloud.SSM.Values)
	}
}

// timed is Parameter Store for a test that asks how long a write may take.
type timed struct {
	store.ParameterWriter
	left time.Duration
}

func (p *timed) PutParameter(ctx context.Context, in *ssm.PutParameterInput, o ...func(*ssm.Options)) (*ssm.PutParameterOutput, error) {
	if end, limited := ctx.Deadline(); limited {
		p.left = time.Until(end)
	}
	return p.ParameterWriter.PutParameter(ctx, in, o...)
}

// The pass goes on only when the call has ended. Throttled for a minute, the call would hold it up.
func TestAWaitIsToldInSeconds(t *testing.T) {
	s := begin(t, store.Run{})
	writes := &timed{ParameterWriter: s.cloud.SSM}
	s.report.Outputs.SSM = writes
	s.run(waiting(event("Planned"), "pods"))
	if writes.left <= 0 || writes.left > brief {
		t.Errorf("the write of the status may take %s", writes.left)
	}
}

// A long note is cut to the room that the status leaves, and what runs takes that of a few changes.
func TestWhatAPassWaitsForPushesLittleOut(t *testing.T) {
	var many []outcome.Change
	for range 400 {
		many = append(many, outcome.Change{Subject: "queue demo", Action: "created"})
	}
	s := begin(t, store.Run{Outcome: "Planned", Goal: "karpenter"}, store.StepRecord{Step: "queue", Changes: many})
	s.run(event("Planned"))
	before := s.status()
	s.run(waiting(event("Planned"), strings.Repeat("pods ", 500)))
	status := s.status()
	if status.Running == nil || len(status.Changed) < len(before.Changed)-10 || len(status.Changed)+status.Omitted != 400 {
		t.Errorf("%d changes, %d more, and before %d, %d more", len(status.Changed), status.Omitted, len(before.Changed), before.Omitted)
	}
}
