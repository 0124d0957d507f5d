package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

// theMachine is the state machine in the form of ListStateMachines.
var theMachine = map[string]any{"name": "Sawhorse-reconcile", "stateMachineArn": machineARN, "type": "STANDARD", "creationDate": 0}

// stage is a cloud with the rack prod, in which a test controls the passes. While the command waits, one of acts runs
// every second.
type stage struct {
	*testing.T
	now        time.Time
	parameters map[string]int64 // below params/, with their versions
	status     *store.Status
	executions []*execution
	acts       []func()
	// denied is the service, as in X-Amz-Target, that denies every call.
	denied string
	// calls has the calls that the command made, asked the executions that it read.
	calls, asked []string
}

// execution is an execution in Step Functions.
type execution struct {
	stage  *stage
	name   string
	input  string
	status string
	events []map[string]any
}

const (
	machineARN   = "arn:aws:states:eu-central-1:123456789012:stateMachine:Sawhorse-reconcile"
	executionARN = "arn:aws:states:eu-central-1:123456789012:execution:Sawhorse-reconcile:"
)

func newStage(t *testing.T) *stage {
	return &stage{T: t, now: time.Date(2026, 11, 21, 8, 50, 0, 0, time.UTC), parameters: map[string]int64{}}
}

// begins starts the pass of a write. The pass takes the rack's lease.
func (s *stage) begins(name string) *execution {
	e := s.coalesces(name)
	e.status = "RUNNING"
	e.events = e.events[:1]
	return e.enters("Debounce", "{}")
}

// coalesces starts an execution that leaves its request to the pass that holds the lease.
func (s *stage) coalesces(name string) *execution {
	e := &execution{stage: s, name: name, status: "SUCCEEDED"}
	e.input = `{"source":"aws.ssm","detail":{"name":"/sawhorse/racks/prod/params/karpenter_enabled"}}`
	s.executions = append(s.executions, e)
	return e.event("ExecutionStarted", nil).event("ExecutionSucceeded", nil)
}

func (e *execution) event(kind string, more map[string]any) *execution {
	event := map[string]any{"id": len(e.events) + 1, "timestamp": e.stage.now.Unix(), "type": kind}
	for name, value := range more {
		event[name] = value
	}
	e.events = append(e.events, event)
	return e
}

func (e *execution) enters(state, input string) *execution {
	return e.event("TaskStateEntered", map[string]any{"stateEnteredEventDetails": map[string]any{"name": state, "input": input}})
}

func (e *execution) answers(payload string) *execution {
	return e.event("TaskSucceeded", map[string]any{"taskSucceededEventDetails": map[string]any{
		"resource": "invoke", "resourceType": "lambda", "output": `{"Payload":` + payload + `}`,
	}})
}

// reads makes validate answer for the current parameters.
func (e *execution) reads(outcome string, report bool, steps ...string) *execution {
	all := []map[string]string{}
	for _, step := range steps {
		all = append(all, map[string]string{"name": step})
	}
	payload, err := json.Marshal(map[string]any{"outcome": outcome, "report": report, "steps": all, "versions": e.stage.parameters})
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

// listed returns the execution in the form of ListExecutions.
func (e *execution) listed() map[string]any {
	return map[string]any{
		"executionArn": executionARN + e.name, "name": e.name, "startDate": e.events[0]["timestamp"],
		"stateMachineArn": machineARN, "status": e.status,
	}
}

func (e *execution) ends() {
	e.enters("Done", "{}").event("ExecutionSucceeded", nil).status = "SUCCEEDED"
}

func (e *execution) fails(name string) {
	why := map[string]any{"executionFailedEventDetails": map[string]any{"error": name}}
	e.enters("Failed", "{}").event("ExecutionFailed", why).status = "FAILED"
}

// reports makes a pass write the status.
func (s *stage) reports(e *execution, state outcome.State) {
	s.status = &store.Status{
		Rack: "prod", State: state, Generation: int64(len(s.executions)), Time: s.now.Format(time.RFC3339), Execution: executionARN + e.name,
	}
}

func (s *stage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	service, action, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	s.calls = append(s.calls, action)
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	var asked struct {
		ExecutionArn, StatusFilter string
		MaxResults                 int
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		s.Error(err)
	}
	s.asked = append(s.asked, asked.ExecutionArn)
	if service == s.denied {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"__type":"AccessDeniedException","message":"no"}`))
		return
	}
	var answer any
	switch action {
	case "ListStateMachines":
		answer = map[string]any{"stateMachines": []any{theMachine}}
	case "ListExecutions":
		list := []any{}
		for _, e := range slices.Backward(s.executions) {
			if asked.StatusFilter == "" || asked.StatusFilter == e.status {
				list = append(list, e.listed())
			}
		}
		answer = map[string]any{"executions": list}
	case "DescribeExecution", "GetExecutionHistory":
		i := slices.IndexFunc(s.executions, func(e *execution) bool { return executionARN+e.name == asked.ExecutionArn })
		if i < 0 {
			w.WriteHeader(http.StatusBadRequest)
			answer = map[string]any{"__type": "ExecutionDoesNotExist"}
			break
		}
		e := s.executions[i]
		described := e.listed()
		if described["input"] = e.input; action == "GetExecutionHistory" {
			events := slices.Clone(e.events)
			slices.Reverse(events)
			described = map[string]any{"events": events}
		}
		answer = described
	case "GetParameter":
		if s.status == nil {
			w.WriteHeader(http.StatusBadRequest)
			answer = map[string]any{"__type": "ParameterNotFound"}
			break
		}
		answer = map[string]any{"Parameter": map[string]any{"Name": "status", "Type": "String", "Value": statusText(s.T, *s.status)}}
	case "GetParametersByPath":
		list := []any{}
		for name, version := range s.parameters {
			list = append(list, map[string]any{"Name": "/sawhorse/racks/prod/params/" + name, "Type": "String", "Value": "x", "Version": version})
		}
		answer = map[string]any{"Parameters": list}
	default:
		s.Errorf("the command calls %s", action)
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// watcher returns the command's watcher on the stage.
func (s *stage) watcher() *watcher {
	server := httptest.NewServer(s)
	s.Cleanup(server.Close)
	config := aws.Config{Region: "eu-central-1", BaseEndpoint: &server.URL,
		Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")}
	w := &watcher{aws: config, ssm: ssm.NewFromConfig(config), rack: "prod", now: func() time.Time { return s.now }}
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
	s.calls = nil
	end = w.watch(s.Context(), func(line string) { lines = append(lines, line) })
	return lines, s.now.Sub(began).Seconds(), end
}
