package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/smithy-go"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

// stage is an account with the rack prod, in which a test controls the passes. While the command waits, one of acts runs
// every second.
type stage struct {
	*testing.T
	cloud  *awsfake.Cloud
	now    time.Time
	status *store.Status
	acts   []func()
	// denied is the service that denies every call.
	denied string
}

// execution is a pass of the stage.
type execution struct {
	*awsfake.Execution
	stage *stage
}

const folder, statusName = "/sawhorse/racks/prod/params/", "/sawhorse/racks/prod/status"

func newStage(t *testing.T) *stage {
	s := &stage{T: t, cloud: awsfake.New(), now: time.Date(2026, 11, 21, 8, 50, 0, 0, time.UTC)}
	s.cloud.Before = s.before
	return s
}

// before publishes the status when it is read, with the time of a change that it answers.
func (s *stage) before(call string) error {
	if s.denied != "" && strings.HasPrefix(call, s.denied+".") {
		return &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "no"}
	}
	if s.status != nil && s.status.Change != nil && s.status.Change.Modified.IsZero() { // it is answered by now
		s.status.Change.Modified = s.cloud.Now()
	}
	if delete(s.cloud.SSM.Values, statusName); s.status != nil {
		s.cloud.SSM.Values[statusName] = statusText(s.T, *s.status)
	}
	return nil
}

// parameter adds a parameter, or gives it another version.
func (s *stage) parameter(name string, version int64) {
	s.cloud.SSM.Values[folder+name], s.cloud.SSM.Versions[folder+name] = "x", version
}

// versions returns the versions of the parameters, as validate tells them.
func (s *stage) versions() map[string]int64 {
	all := map[string]int64{}
	for name, version := range s.cloud.SSM.Versions {
		if name, is := strings.CutPrefix(name, folder); is {
			all[name] = version
		}
	}
	return all
}

// begins starts the pass of a write. The pass takes the rack's lease.
func (s *stage) begins(name string) *execution {
	e := s.starts(name)
	e.Status = types.ExecutionStatusRunning
	return e.enters("Debounce", "{}")
}

// coalesces starts an execution that leaves its request to the pass that holds the lease.
func (s *stage) coalesces(name string) *execution {
	return s.starts(name).event(types.HistoryEvent{Type: types.HistoryEventTypeExecutionSucceeded})
}

func (s *stage) starts(name string) *execution {
	e := &awsfake.Execution{
		Name: name, Status: types.ExecutionStatusSucceeded, Started: s.now,
		Input: `{"source":"aws.ssm","detail":{"name":"/sawhorse/racks/prod/params/karpenter_enabled"}}`,
	}
	s.cloud.States.Executions = append(s.cloud.States.Executions, e)
	return (&execution{e, s}).event(types.HistoryEvent{Type: types.HistoryEventTypeExecutionStarted})
}

func (e *execution) event(event types.HistoryEvent) *execution {
	e.Add(e.stage.now, event)
	return e
}

func (e *execution) enters(state, input string) *execution {
	return e.event(types.HistoryEvent{Type: types.HistoryEventTypeTaskStateEntered,
		StateEnteredEventDetails: &types.StateEnteredEventDetails{Name: &state, Input: &input}})
}

func (e *execution) answers(payload string) *execution {
	return e.event(types.HistoryEvent{Type: types.HistoryEventTypeTaskSucceeded,
		TaskSucceededEventDetails: &types.TaskSucceededEventDetails{Output: new(`{"Payload":` + payload + `}`)}})
}

// reads makes validate answer for the current parameters.
func (e *execution) reads(outcome string, report bool, steps ...string) *execution {
	all := []map[string]string{}
	for _, step := range steps {
		all = append(all, map[string]string{"name": step})
	}
	payload, err := json.Marshal(map[string]any{"outcome": outcome, "report": report, "steps": all, "versions": e.stage.versions()})
	if err != nil {
		e.stage.Fatal(err)
	}
	return e.enters("Validate", "{}").answers(string(payload))
}

// takes makes a step answer.
func (e *execution) takes(step, status, note string) *execution {
	answer := fmt.Sprintf(`{"step":%q,"status":%q,"note":%q}`, step, status, note)
	return e.enters("RunStep", fmt.Sprintf(`{"step":%q,"generation":7}`, step)).answers(answer)
}

func (e *execution) ends() { e.enters("Done", "{}").succeeds() }

func (e *execution) succeeds() {
	e.event(types.HistoryEvent{Type: types.HistoryEventTypeExecutionSucceeded}).Status = types.ExecutionStatusSucceeded
}

func (e *execution) fails(name string) {
	e.enters("Failed", "{}").event(types.HistoryEvent{Type: types.HistoryEventTypeExecutionFailed,
		ExecutionFailedEventDetails: &types.ExecutionFailedEventDetails{Error: &name}}).Status = types.ExecutionStatusFailed
}

// reports makes a pass write the status.
func (s *stage) reports(e *execution, state outcome.State) {
	s.status = &store.Status{
		Rack: "prod", State: state, Generation: int64(len(s.cloud.States.Executions)), Time: s.now.Format(time.RFC3339),
		Execution: awsfake.ExecutionARN + e.Name,
	}
}

// watcher returns the command's watcher on the stage.
func (s *stage) watcher() *watcher {
	server := httptest.NewServer(s.cloud)
	s.Cleanup(server.Close)
	config := aws.Config{Region: "eu-central-1", BaseEndpoint: &server.URL,
		Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")}
	w := &watcher{aws: config, ssm: ssm.NewFromConfig(config), table: s.cloud.Table, rack: "prod", now: func() time.Time { return s.now }}
	w.wait = func(_ context.Context, d time.Duration) error {
		s.now = s.now.Add(d)
		if len(s.acts) > 0 {
			act := s.acts[0]
			if s.acts = s.acts[1:]; act != nil {
				act()
			}
		}
		return nil
	}
	if err := w.locate(s.Context()); err != nil {
		s.Fatal(err)
	}
	return w
}

// watched runs watch. It returns the lines of the passes, the seconds it took, and its error.
func (s *stage) watched() (lines []string, seconds float64, end error) {
	began := s.now
	w := s.watcher()
	s.cloud.Forget()
	end = w.watch(s.Context(), func(line string) { lines = append(lines, line) })
	return lines, s.now.Sub(began).Seconds(), end
}
