package passes

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"
)

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(seconds float64) time.Time {
	return began.Add(time.Duration(seconds * float64(time.Second)))
}

func TestInASecond(t *testing.T) {
	if got := InASecond([]time.Time{at(3), at(0), at(0.5), at(1), at(1.4), at(2)}); got != 3 {
		t.Errorf("%d", got)
	}
	if got := InASecond(nil); got != 0 {
		t.Errorf("%d of none", got)
	}
}

// A pass that waits for SSM's replica validates again and again, and is one iteration.
func TestWaitingForAReplicaIsNoIteration(t *testing.T) {
	r := reader{}
	for i, answer := range []string{"Outdated", "Outdated", "Planned", "Unchanged"} {
		output := aws.String(`{"Payload":{"outcome":"` + answer + `"}}`)
		r.event(types.HistoryEvent{
			Timestamp: aws.Time(at(float64(i))), TaskSucceededEventDetails: &types.TaskSucceededEventDetails{Output: output},
		})
	}
	want := []Iteration{
		{Outcome: "Planned", From: at(2), To: at(3)},
		{Outcome: "Unchanged", From: at(3), To: at(3)},
	}
	if !slices.Equal(r.history.Iterations, want) {
		t.Errorf("%+v", r.history.Iterations)
	}
}

// A call that is throttled twice lasts from the first throttling error to its success. Each try counts as a call.
func TestAThrottledCallIsTimed(t *testing.T) {
	r := reader{}
	event := func(seconds float64, e types.HistoryEvent) {
		e.Timestamp = aws.Time(at(seconds))
		r.event(e)
	}
	invoke := types.HistoryEvent{TaskScheduledEventDetails: &types.TaskScheduledEventDetails{Resource: aws.String("lambda:invoke")}}
	refusal := types.HistoryEvent{TaskFailedEventDetails: &types.TaskFailedEventDetails{Error: aws.String("Throttled")}}
	success := types.HistoryEvent{
		TaskSucceededEventDetails: &types.TaskSucceededEventDetails{Output: aws.String(`{"Payload":{"outcome":"Planned","steps":[1]}}`)},
	}
	event(0, types.HistoryEvent{StateEnteredEventDetails: &types.StateEnteredEventDetails{Name: aws.String("Validate")}})
	event(0, invoke)
	event(1, refusal)
	event(3, invoke)
	event(4, refusal)
	event(6, invoke)
	event(7, success)
	event(8, types.HistoryEvent{StateEnteredEventDetails: &types.StateEnteredEventDetails{Name: aws.String("Report")}})
	event(8, invoke)
	event(9, success)
	if h := r.history; h.Throttled != 2 || h.Slowest != 6*time.Second || len(h.Calls) != 4 || AtOnce(h.Calls) != 1 || h.Lambdas != 4 ||
		len(h.Entered) != 2 {
		t.Errorf("%+v", h)
	}
	if want := []Visit{{"Validate", at(0)}, {"Report", at(8)}}; !slices.Equal(r.timeline.States, want) {
		t.Errorf("%+v", r.timeline)
	}
}

// machines answers as Step Functions does that has these state machines.
type machines string

func (m machines) Do(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(`{"stateMachines":[` + string(m) + `]}`))}, nil
}

// The error says how many there are: there is no cause to quote.
func TestThereIsOneStateMachine(t *testing.T) {
	for found, want := range map[machines]string{
		"":                        "state machines: wanted one, found 0",
		`{"stateMachineArn":"a"}`: "",
		`{"stateMachineArn":"a"},{"stateMachineArn":"b"}`: "state machines: wanted one, found 2",
	} {
		config := aws.Config{
			Region: "us-east-1", BaseEndpoint: aws.String("http://aws"), HTTPClient: found,
			Credentials: credentials.NewStaticCredentialsProvider("x", "x", ""),
		}
		got := ""
		if _, _, err := StateMachine(t.Context(), config); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", found, got, want)
		}
	}
}

// states answers as Step Functions does of two executions: one runs from the first to the second second, the other one, whose
// event arrived late, from the fourth to the sixth.
type states struct{ begin time.Time }

func (s states) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	var found []string
	for _, e := range []struct{ from, to int }{{1, 2}, {4, 6}} {
		status, since := "SUCCEEDED", time.Since(s.begin)
		if since < time.Duration(e.to)*time.Second {
			status = "RUNNING"
		}
		if since >= time.Duration(e.from)*time.Second && (status == "RUNNING" || !strings.Contains(string(body), "RUNNING")) {
			start := s.begin.Add(time.Duration(e.from) * time.Second).Unix()
			found = append(found, fmt.Sprintf(`{"executionArn":"%d","startDate":%d,"status":"%s"}`, e.from, start, status))
		}
	}
	_, action, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	answer := map[string]string{
		"ListStateMachines":   `{"stateMachines":[{"stateMachineArn":"machine"}]}`,
		"ListExecutions":      `{"executions":[` + strings.Join(found, ",") + `]}`,
		"GetExecutionHistory": `{"events":[]}`,
	}[action]
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(answer))}, err
}

// An event may take longer to arrive than the passes of those before it, so there is a time in between in which nothing runs.
func TestSinceWaitsForTheExecutionOfEachEvent(t *testing.T) {
	for events, seconds := range []int{0, 2, 6} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			config := aws.Config{
				Region: "us-east-1", BaseEndpoint: aws.String("http://aws"), HTTPClient: states{begin},
				Credentials: credentials.NewStaticCredentialsProvider("x", "x", ""),
			}
			history, err := Since(t.Context(), config, begin, events)
			took := int(time.Since(begin).Seconds())
			if err != nil || history.Executions != events || len(history.Timelines) != events || took != seconds {
				t.Errorf("%d events: %d executions after %d s, %v", events, history.Executions, took, err)
			}
		})
	}
}
