package resync

import (
	"encoding/json"
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

const execution = "arn:aws:states:eu-central-1:123456789012:execution:Sawhorse-reconcile:"

// lease adds a lease of the rack demo, which has a parameter.
func lease(cloud *awsfake.Cloud, owner, requested, served string) {
	cloud.SSM.Values["/sawhorse/racks/demo/params/paused"] = "false"
	item := awsfake.Item{
		"pk": &types.AttributeValueMemberS{Value: "rack#demo"}, "sk": &types.AttributeValueMemberS{Value: "lease"},
		"requested": &types.AttributeValueMemberN{Value: requested}, "served": &types.AttributeValueMemberN{Value: served},
	}
	if owner != "" {
		item["owner"] = &types.AttributeValueMemberS{Value: owner}
	}
	cloud.Table.Items["rack#demo lease"] = item
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
			cloud, m, r := begin(time.Hour, 1)
			lease(cloud, c.owner, "3", c.served)
			m.history = []sfntypes.HistoryEvent{aborting, calling}
			if _, err := r.Run(t.Context(), ended(c.input, execution+"me")); err != nil {
				t.Fatal(err)
			}
			if owner := awsfake.Text(cloud.Table.Items["rack#demo lease"], "owner"); owner != c.after || len(m.inputs) != c.started {
				t.Errorf("owner %q, started %v", owner, m.inputs)
			}
		})
	}
}

// An execution of a rack that does not exist is freed, without an entry in the schedule's list and without a status. The next
// pass erases the lease.
func TestAnExecutionOfAnUnknownRack(t *testing.T) {
	for _, there := range []bool{false, true} {
		cloud, m, r := begin(time.Hour, 1)
		lease(cloud, execution+"me", "3", "2")
		if m.history = []sfntypes.HistoryEvent{aborting, calling}; !there {
			clear(cloud.SSM.Values)
		}
		if _, err := r.Run(t.Context(), ended(`{"detail":{"rack":"demo"}}`, execution+"me")); err != nil {
			t.Fatal(err)
		}
		_, status := cloud.SSM.Values["/sawhorse/racks/demo/status"]
		if listed, err := r.Store.Racks(t.Context()); err != nil || (len(listed) > 0) != there || status != there {
			t.Errorf("there %v: listed %v, status %v, %v", there, listed, status, err)
		}
		if owner := awsfake.Text(cloud.Table.Items["rack#demo lease"], "owner"); owner != "" || len(m.inputs) != 1 {
			t.Errorf("there %v: owner %q, started %v", there, owner, m.inputs)
		}
	}
}

// EventBridge delivers at least once, and a call may fail between its two effects. One pass follows.
func TestTheSameNoticeTwiceStartsOnePass(t *testing.T) {
	cloud, m, r := begin(time.Hour, 1)
	lease(cloud, execution+"me", "3", "2")
	notice := ended(`{"detail":{"rack":"demo"}}`, execution+"me")
	m.history, m.err = []sfntypes.HistoryEvent{aborting, calling}, awsfake.Throttling
	if _, err := r.Run(t.Context(), notice); err == nil {
		t.Fatal("a pass that could not be started is no success")
	}
	m.err = nil
	for range 2 {
		if _, err := r.Run(t.Context(), notice); err != nil {
			t.Fatal(err)
		}
	}
	if got := m.started(t); !slices.Equal(got, []string{"demo false"}) {
		t.Errorf("started %v", got)
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
			cloud, m, r := begin(time.Hour, 1)
			served := "3"
			if c.owner != "" {
				served = "2"
			}
			lease(cloud, c.owner, "3", served)
			notice := ended(`{"detail-type":"Rack Reconcile Requested","detail":{"rack":"demo"}}`, execution+"me")
			notice.Detail.Status, notice.Detail.Error, notice.Detail.Cause = "FAILED", "DynamoDB.X", c.cause
			if _, err := r.Run(t.Context(), notice); err != nil {
				t.Fatal(err)
			}
			if m.looks > 0 || len(m.inputs) != c.started {
				t.Errorf("%d looks at the history, started %v", m.looks, m.inputs)
			}
			var status store.Status
			if text := cloud.SSM.Values["/sawhorse/racks/demo/status"]; c.step == "" && text != "" {
				t.Errorf("status %s", text)
			} else if c.step != "" {
				if err := json.Unmarshal([]byte(text), &status); err != nil ||
					status.Failure.Step != c.step || status.Failure.Reason != "no table" || status.Generation != 2 {
					t.Errorf("status %s, %v", text, err)
				}
			}
			if racks, err := r.Store.Racks(t.Context()); err != nil || !slices.Equal(racks, []string{"demo"}) {
				t.Errorf("the schedule visits %v, %v", racks, err)
			}
		})
	}
}

// A throttled read of the history is repeated. If the place counted as unknown, the event would be handled twice, and the
// next pass would wait for a call that has ended.
func TestAThrottledReadIsRepeated(t *testing.T) {
	cloud, m, r := begin(time.Hour, 1)
	lease(cloud, execution+"me", "3", "2")
	notice := ended(`{"detail":{"rack":"demo"}}`, execution+"me")
	m.unread = awsfake.Throttling
	if _, err := r.Run(t.Context(), notice); err == nil || len(m.inputs) > 0 || len(cloud.SSM.Values) > 1 {
		t.Fatalf("%v, started %v, parameters %v", err, m.inputs, cloud.SSM.Values)
	}
	m.history = []sfntypes.HistoryEvent{aborting, waiting, calling}
	if _, err := r.Run(t.Context(), notice); err != nil || quiet(t, cloud) != 0 || len(m.inputs) != 1 {
		t.Errorf("%v, quiet until %d, started %v", err, quiet(t, cloud), m.inputs)
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
			cloud, m, r := begin(time.Hour, 1)
			lease(cloud, execution+"me", "3", "2")
			m.history = c.history
			notice := ended(`{"detail-type":"Rack Reconcile Requested","detail":{"rack":"demo"}}`, execution+"me")
			notice.Detail.Status, notice.Detail.Error = c.status, c.error
			before := cloud.Now()
			if _, err := r.Run(t.Context(), notice); err != nil {
				t.Fatal(err)
			}
			var status store.Status
			if err := json.Unmarshal([]byte(cloud.SSM.Values["/sawhorse/racks/demo/status"]), &status); err != nil {
				t.Fatal(err)
			}
			if f := status.Failure; status.State != outcome.StateFailed || f.Step != c.step || f.Error != c.named ||
				f.Reason == "" || f.Remedy == "" || status.Execution != execution+"me" {
				t.Errorf("%+v: %+v", status, f)
			}
			if sent := cloud.Events.Sent; len(sent) != 1 || *sent[0].DetailType != events.TypeReconcileFailed {
				t.Errorf("events %v", sent)
			}
			// The fake's clock goes on by a second with each call.
			if late := quiet(t, cloud) - before.Add(c.quiet).Unix(); c.quiet > 0 && (late < 0 || late > 20) || c.quiet == 0 && quiet(t, cloud) != 0 {
				t.Errorf("quiet is %d s off", late)
			}
			if got := m.started(t); !slices.Equal(got, []string{"demo false"}) {
				t.Errorf("started %v", got)
			}
		})
	}
}

// quiet returns the time until which the lease says that a call may run, or 0.
func quiet(t *testing.T, cloud *awsfake.Cloud) int64 {
	t.Helper()
	text := awsfake.Text(cloud.Table.Items["rack#demo lease"], "quiet")
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// If it is unknown where an execution ended, its event may not have been counted. The next one starts with the same event.
func TestAnEventThatMayNotHaveBeenCounted(t *testing.T) {
	cloud, m, r := begin(time.Hour, 1)
	lease(cloud, "", "3", "3")
	input := `{"detail-type":"Rack Parameters Change Requested","detail":{"rack":"demo","set":{"node_disk":"30"}}}`
	if _, err := r.Run(t.Context(), ended(input, execution+"me")); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(m.inputs, []string{input}) {
		t.Errorf("started %v", m.inputs)
	}
}

// If the report fails, the rack is freed nevertheless, and the call returns the error.
func TestAReportThatFailsFreesTheRackAllTheSame(t *testing.T) {
	cloud, m, r := begin(time.Hour, 1)
	lease(cloud, execution+"me", "3", "2")
	cloud.Events.Refuse = "bus full"
	if _, err := r.Run(t.Context(), ended(`{"detail":{"rack":"demo"}}`, execution+"me")); err == nil ||
		!strings.Contains(err.Error(), "bus full") {
		t.Errorf("error %v", err)
	}
	if owner := awsfake.Text(cloud.Table.Items["rack#demo lease"], "owner"); owner != "" || len(m.inputs) != 1 {
		t.Errorf("owner %q, started %v", owner, m.inputs)
	}
}

// An execution that did not count its event has left nothing in the table. The next one starts with the same event and its
// flags.
func TestAnEventThatWasNotCountedIsTakenUpAgain(t *testing.T) {
	for _, history := range [][]sfntypes.HistoryEvent{{aborting, asking}, {failed, asking}} {
		cloud, m, r := begin(time.Hour, 1)
		lease(cloud, "", "3", "3")
		m.history = history
		input := `{"detail-type":"Rack Reconcile Requested","detail":{"rack":"demo","force":true}}`
		for range 2 {
			if _, err := r.Run(t.Context(), ended(input, execution+"me")); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(m.inputs, []string{input}) || len(cloud.Events.Sent) > 0 {
			t.Errorf("started %v, events %v", m.inputs, cloud.Events.Sent)
		}
	}
}

// Executions that end early do not start others endlessly. The next event begins a new row.
func TestARowOfDeathsEnds(t *testing.T) {
	cloud, m, r := begin(time.Hour, 1)
	for row, name := range []string{strings.Repeat("e", 73), "after-words"} { // the first is as long as the names that EventBridge gives
		for range 10 {
			lease(cloud, execution+name, "3", "2")
			answer, err := r.Run(t.Context(), ended(`{"detail":{"rack":"demo"}}`, execution+name))
			if err != nil {
				t.Fatal(err)
			}
			if len(answer.Racks) == 0 {
				break
			}
			name = m.last
		}
		if len(m.inputs) != (row+1)*followers {
			t.Fatalf("%d passes followed, not %d", len(m.inputs), (row+1)*followers)
		}
	}
}
