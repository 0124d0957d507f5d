package resync

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

func ended(input, execution string) Event {
	var e Event
	text, _ := json.Marshal(map[string]any{"detail-type": "Step Functions Execution Status Change", "detail": map[string]any{
		"executionArn": execution, "status": "ABORTED", "input": input, "error": nil, "cause": nil, "startDate": 1_767_323_045_000,
	}})
	_ = json.Unmarshal(text, &e)
	return e
}

// entered returns the event of a history that a state was entered.
func entered(kind sfntypes.HistoryEventType, state, input string) sfntypes.HistoryEvent {
	return sfntypes.HistoryEvent{Type: kind, StateEnteredEventDetails: &sfntypes.StateEnteredEventDetails{Name: &state, Input: &input}}
}

var (
	calling  = entered(sfntypes.HistoryEventTypeTaskStateEntered, "RunStep", `{"step":"controller","generation":2}`)
	planning = entered(sfntypes.HistoryEventTypeTaskStateEntered, "Validate", `{}`)
	waiting  = entered(sfntypes.HistoryEventTypeWaitStateEntered, "WaitForStep", `{"step":"controller","generation":2}`)
	asking   = entered(sfntypes.HistoryEventTypeTaskStateEntered, "Request", `{"detail":{"rack":"demo"}}`)
	failed   = entered(sfntypes.HistoryEventTypeFailStateEntered, "Failed", `{}`)
	aborting = sfntypes.HistoryEvent{Type: sfntypes.HistoryEventTypeExecutionAborted}
)

const execution = awsfake.ExecutionARN

// ran adds the execution "me", which has ended, with its history, the last event first.
func (s *scene) ran(history ...sfntypes.HistoryEvent) {
	me := &awsfake.Execution{Name: "me", Status: sfntypes.ExecutionStatusAborted}
	for _, event := range slices.Backward(history) {
		me.Add(s.cloud.Now(), event)
	}
	s.cloud.States.Executions = append(s.cloud.States.Executions, me)
}

// lease adds a lease of the rack demo, which has a parameter.
func (s *scene) lease(owner, requested, served string) {
	s.cloud.SSM.Values["/sawhorse/racks/demo/params/paused"] = "false"
	item := awsfake.Item{
		"pk": &types.AttributeValueMemberS{Value: "rack#demo"}, "sk": &types.AttributeValueMemberS{Value: "lease"},
		"requested": &types.AttributeValueMemberN{Value: requested}, "served": &types.AttributeValueMemberN{Value: served},
	}
	if owner != "" {
		item["owner"] = &types.AttributeValueMemberS{Value: owner}
	}
	s.cloud.Table.Items["rack#demo lease"] = item
}

func TestAnExecutionThatEndedFreesItsRack(t *testing.T) {
	write := `{"source":"aws.ssm","detail-type":"Parameter Store Change","detail":{"name":"/sawhorse/racks/demo/params/node_disk"}}`
	request := `{"detail-type":"Rack Reconcile Requested","detail":{"rack":"demo"}}`
	for _, c := range []struct {
		what, input, owner, served string
		after                      string
		started                    int
	}{
		{"stopped in the middle", write, execution + "me", "2", "", 1},
		{"stopped, from another kind of event", request, execution + "me", "2", "", 1},
		{"the notice comes again after it was handled half", write, "", "2", "", 1},
		{"failed and released", write, "", "3", "", 0},
		{"another pass is at it", write, execution + "other", "2", execution + "other", 0},
		{"an input without a rack", `{"detail":{"name":"/other/x"}}`, execution + "me", "2", execution + "me", 0},
		{"an input that is none", `x`, execution + "me", "2", execution + "me", 0},
		{"a rack that is none", `{"detail":{"rack":"../x"}}`, execution + "me", "2", execution + "me", 0},
	} {
		t.Run(c.what, func(t *testing.T) {
			s := begin(t, time.Hour, 1)
			s.lease(c.owner, "3", c.served)
			s.ran(aborting, calling)
			if _, err := s.resync.Run(t.Context(), ended(c.input, execution+"me")); err != nil {
				t.Fatal(err)
			}
			if owner := awsfake.Text(s.cloud.Table.Items["rack#demo lease"], "owner"); owner != c.after || len(s.inputs()) != c.started {
				t.Errorf("owner %q, started %v", owner, s.inputs())
			}
		})
	}
}

// An execution of a rack that does not exist is freed, without an entry in the schedule's list and without a status. The next
// pass erases the lease.
func TestAnExecutionOfAnUnknownRack(t *testing.T) {
	for _, there := range []bool{false, true} {
		s := begin(t, time.Hour, 1)
		s.lease(execution+"me", "3", "2")
		if s.ran(aborting, calling); !there {
			clear(s.cloud.SSM.Values)
		}
		if _, err := s.resync.Run(t.Context(), ended(`{"detail":{"rack":"demo"}}`, execution+"me")); err != nil {
			t.Fatal(err)
		}
		_, status := s.cloud.SSM.Values["/sawhorse/racks/demo/status"]
		if listed, _, err := s.resync.Store.Racks(t.Context()); err != nil || (len(listed) > 0) != there || status != there {
			t.Errorf("there %v: listed %v, status %v, %v", there, listed, status, err)
		}
		if owner := awsfake.Text(s.cloud.Table.Items["rack#demo lease"], "owner"); owner != "" || len(s.inputs()) != 1 {
			t.Errorf("there %v: owner %q, started %v", there, owner, s.inputs())
		}
	}
}

// EventBridge delivers at least once, and a call may fail between its two effects. One pass follows.
func TestTheSameNoticeTwiceStartsOnePass(t *testing.T) {
	s := begin(t, time.Hour, 1)
	s.lease(execution+"me", "3", "2")
	notice := ended(`{"detail":{"rack":"demo"}}`, execution+"me")
	s.ran(aborting, calling)
	s.cloud.Fail("StepFunctions.StartExecution", awsfake.Throttling)
	if _, err := s.resync.Run(t.Context(), notice); err == nil {
		t.Fatal("a pass that could not be started is no success")
	}
	s.cloud.Before = nil
	for range 2 {
		if _, err := s.resync.Run(t.Context(), notice); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.started(); !slices.Equal(got, []string{"demo false"}) {
		t.Errorf("started %v", got)
	}
}

// Whoever stops an execution may give any cause. What is no failure of the state machine's says nothing of the place.
func TestACauseOfSomebodyElse(t *testing.T) {
	s := begin(t, time.Hour, 1)
	s.lease(execution+"me", "3", "2")
	notice := ended(`{"detail-type":"Rack Reconcile Requested","detail":{"rack":"demo"}}`, execution+"me")
	notice.Detail.Cause = `{"ticket":"OPS-1"}`
	if _, err := s.resync.Run(t.Context(), notice); err != nil {
		t.Fatal(err)
	}
	if made := fmt.Sprint(s.cloud.Made()); !strings.Contains(made, "GetExecutionHistory") {
		t.Errorf("the history was not read: %s", made)
	}
}

// The cause of an execution that ended in the state Failed says where, at which step and why it failed. Then resync does not
// read the history, which has a small quota.
func TestAnExecutionThatFailedTellsWhereByItsCause(t *testing.T) {
	for _, c := range []struct {
		what, cause string
		owner       string
		started     int
		step        string
	}{
		{"reported and released", `{"cause":"x","state":"Ended","step":"queue","generation":3}`, "", 0, ""},
		{"the rack could not be released", `{"cause":"no table","state":"Release","step":"queue","generation":2}`, execution + "me", 1, "queue"},
		{"not even counted", `{"cause":"no table","state":"Request","step":"","generation":0}`, "", 1, ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			s := begin(t, time.Hour, 1)
			served := "3"
			if c.owner != "" {
				served = "2"
			}
			s.lease(c.owner, "3", served)
			notice := ended(`{"detail-type":"Rack Reconcile Requested","detail":{"rack":"demo"}}`, execution+"me")
			notice.Detail.Status, notice.Detail.Error, notice.Detail.Cause = "FAILED", "DynamoDB.X", c.cause
			if _, err := s.resync.Run(t.Context(), notice); err != nil {
				t.Fatal(err)
			}
			if made := fmt.Sprint(s.cloud.Made()); strings.Contains(made, "GetExecutionHistory") || len(s.inputs()) != c.started {
				t.Errorf("calls %s, started %v", made, s.inputs())
			}
			var status store.Status
			if text := s.cloud.SSM.Values["/sawhorse/racks/demo/status"]; c.step == "" && text != "" {
				t.Errorf("status %s", text)
			} else if c.step != "" {
				if err := json.Unmarshal([]byte(text), &status); err != nil ||
					status.Failure.Step != c.step || status.Failure.Reason != "no table" || status.Generation != 2 {
					t.Errorf("status %s, %v", text, err)
				}
			}
			if racks, _, err := s.resync.Store.Racks(t.Context()); err != nil || !slices.Equal(racks, []string{"demo"}) {
				t.Errorf("the schedule visits %v, %v", racks, err)
			}
		})
	}
}

// A throttled read of the history is repeated. If the place counted as unknown, the event would be handled twice, and the
// next pass would wait for a call that has ended.
func TestAThrottledReadIsRepeated(t *testing.T) {
	s := begin(t, time.Hour, 1)
	s.lease(execution+"me", "3", "2")
	notice := ended(`{"detail":{"rack":"demo"}}`, execution+"me")
	s.cloud.Fail("StepFunctions.GetExecutionHistory", awsfake.Throttling)
	if _, err := s.resync.Run(t.Context(), notice); err == nil || len(s.inputs()) > 0 || len(s.cloud.SSM.Values) > 1 {
		t.Fatalf("%v, started %v, parameters %v", err, s.inputs(), s.cloud.SSM.Values)
	}
	s.cloud.Before = nil
	s.ran(aborting, waiting, calling)
	if _, err := s.resync.Run(t.Context(), notice); err != nil || s.quiet() != 0 || len(s.inputs()) != 1 {
		t.Errorf("%v, quiet until %d, started %v", err, s.quiet(), s.inputs())
	}
}

// The status of an execution that could not report itself has the step, the reason and what happens next.
func TestAnExecutionThatEndedIsReported(t *testing.T) {
	for _, c := range []struct {
		what          string
		status, error string
		history       []sfntypes.HistoryEvent
		step, named   string
		quiet         time.Duration
	}{
		{"stopped in a call", "ABORTED", "", []sfntypes.HistoryEvent{aborting, calling}, "controller", "ABORTED", time.Minute},
		{"stopped while it waited", "ABORTED", "", []sfntypes.HistoryEvent{aborting, waiting, calling}, "controller", "ABORTED", 0},
		{"out of time", "TIMED_OUT", "", []sfntypes.HistoryEvent{calling}, "controller", "TIMED_OUT", time.Minute},
		{"failed by itself: its call has ended", "FAILED", "States.QueryEvaluationError", []sfntypes.HistoryEvent{failed, calling},
			"controller", "States.QueryEvaluationError", 0},
		{"stopped while it planned", "ABORTED", "", []sfntypes.HistoryEvent{aborting, planning}, "validate", "ABORTED", time.Minute},
		{"nobody knows where", "ABORTED", "", nil, "", "ABORTED", time.Minute},
	} {
		t.Run(c.what, func(t *testing.T) {
			s := begin(t, time.Hour, 1)
			s.lease(execution+"me", "3", "2")
			if c.history != nil {
				s.ran(c.history...)
			}
			notice := ended(`{"detail-type":"Rack Reconcile Requested","detail":{"rack":"demo"}}`, execution+"me")
			notice.Detail.Status, notice.Detail.Error = c.status, c.error
			before := s.cloud.Now()
			if _, err := s.resync.Run(t.Context(), notice); err != nil {
				t.Fatal(err)
			}
			var status store.Status
			if err := json.Unmarshal([]byte(s.cloud.SSM.Values["/sawhorse/racks/demo/status"]), &status); err != nil {
				t.Fatal(err)
			}
			if f := status.Failure; status.State != outcome.StateFailed || f.Step != c.step || f.Error != c.named ||
				f.Reason == "" || f.Remedy == "" || status.Execution != execution+"me" {
				t.Errorf("%+v: %+v", status, f)
			}
			if sent := s.cloud.Events.Sent; len(sent) != 1 || *sent[0].DetailType != events.TypeReconcileFailed {
				t.Errorf("events %v", sent)
			}
			// The fake's clock goes on by a second with each call.
			if late := s.quiet() - before.Add(c.quiet).Unix(); c.quiet > 0 && (late < 0 || late > 20) || c.quiet == 0 && s.quiet() != 0 {
				t.Errorf("quiet is %d s off", late)
			}
			if got := s.started(); !slices.Equal(got, []string{"demo false"}) {
				t.Errorf("started %v", got)
			}
		})
	}
}

// quiet returns the time until which the lease says that a call may run, or 0.
func (s *scene) quiet() int64 {
	s.Helper()
	text := awsfake.Text(s.cloud.Table.Items["rack#demo lease"], "quiet")
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		s.Fatal(err)
	}
	return n
}

// If it is unknown where an execution ended, its event may not have been counted. The next one starts with the same event.
func TestAnEventThatMayNotHaveBeenCounted(t *testing.T) {
	s := begin(t, time.Hour, 1)
	s.lease("", "3", "3")
	input := `{"detail-type":"Rack Reconcile Requested","detail":{"rack":"demo","full":true}}`
	if _, err := s.resync.Run(t.Context(), ended(input, execution+"me")); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.inputs(), []string{input}) {
		t.Errorf("started %v", s.inputs())
	}
}

// If the report fails, the rack is freed nevertheless, and the call returns the error.
func TestAReportThatFailsFreesTheRackAllTheSame(t *testing.T) {
	s := begin(t, time.Hour, 1)
	s.lease(execution+"me", "3", "2")
	s.cloud.Events.Refuse = "bus full"
	if _, err := s.resync.Run(t.Context(), ended(`{"detail":{"rack":"demo"}}`, execution+"me")); err == nil ||
		!strings.Contains(err.Error(), "bus full") {
		t.Errorf("error %v", err)
	}
	if owner := awsfake.Text(s.cloud.Table.Items["rack#demo lease"], "owner"); owner != "" || len(s.inputs()) != 1 {
		t.Errorf("owner %q, started %v", owner, s.inputs())
	}
}

// An execution that did not count its event has left nothing in the table. The next one starts with the same event and its
// flags.
func TestAnEventThatWasNotCountedIsTakenUpAgain(t *testing.T) {
	for _, history := range [][]sfntypes.HistoryEvent{{aborting, asking}, {failed, asking}} {
		s := begin(t, time.Hour, 1)
		s.lease("", "3", "3")
		s.ran(history...)
		input := `{"detail-type":"Rack Reconcile Requested","detail":{"rack":"demo","force":["room"]}}`
		for range 2 {
			if _, err := s.resync.Run(t.Context(), ended(input, execution+"me")); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(s.inputs(), []string{input}) || len(s.cloud.Events.Sent) > 0 {
			t.Errorf("started %v, events %v", s.inputs(), s.cloud.Events.Sent)
		}
	}
}

// Executions that end early do not start others endlessly. The next event begins a new row.
func TestARowOfDeathsEnds(t *testing.T) {
	s := begin(t, time.Hour, 1)
	for row, name := range []string{strings.Repeat("e", 73), "after-words"} { // the first is as long as the names that EventBridge gives
		for range 10 {
			s.lease(execution+name, "3", "2")
			answer, err := s.resync.Run(t.Context(), ended(`{"detail":{"rack":"demo"}}`, execution+name))
			if err != nil {
				t.Fatal(err)
			}
			if len(answer.Racks) == 0 {
				break
			}
			name = s.cloud.States.Executions[len(s.cloud.States.Executions)-1].Name
		}
		if len(s.inputs()) != (row+1)*followers {
			t.Fatalf("%d passes followed, not %d", len(s.inputs()), (row+1)*followers)
		}
	}
}
