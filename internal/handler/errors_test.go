package handler

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/statemachine"
)

// The Lambda runtime reports an error's outermost Go type, and the state machine catches it by that name.
func TestErrorNames(t *testing.T) {
	code := func(code string) error { return &smithy.GenericAPIError{Code: code, Message: "m"} }
	for _, c := range []struct {
		err  error
		want string
	}{
		{store.ErrLeaseLost, statemachine.LeaseLost},
		{fmt.Errorf("rack demo: %w", store.ErrLeaseLost), statemachine.LeaseLost},
		{outcome.Reject("rack", "no"), statemachine.Rejected},
		{fmt.Errorf("step queue: %w", outcome.Reject("rack", "no")), statemachine.Rejected},
		{code("ThrottlingException"), statemachine.Throttled},
		{fmt.Errorf("role x: get: %w", code("Throttling")), statemachine.Throttled},
		{code("RequestLimitExceeded"), statemachine.Throttled},
		{code("AccessDenied"), statemachine.StepFailed},
		{fmt.Errorf("rule x: put: %w", code("LimitExceededException")), statemachine.StepFailed}, // a quota
		{fmt.Errorf("cluster x: %w", &outcome.NotYet{Reason: outcome.Throttled, Note: "429"}), statemachine.Throttled},
		{code("InternalFailure"), statemachine.Unavailable},
		{fmt.Errorf("event x: put: %w", outcome.EntryRefused(new("ThrottlingException"), nil)), statemachine.Throttled},
		{code("ConcurrentModification"), statemachine.Unavailable},
		{fmt.Errorf("access entry x: create: %w", code("ResourceInUseException")), statemachine.Unavailable},
		{fmt.Errorf("role x: get: %w", &smithy.DeserializationError{Err: io.ErrUnexpectedEOF}), statemachine.Unavailable},
		{&smithyhttp.ResponseError{
			Response: &smithyhttp.Response{Response: &http.Response{StatusCode: 503}}, Err: code("InternalFailure"),
		}, statemachine.Unavailable},
		{fmt.Errorf("role x: get: %w", &smithyhttp.RequestSendError{Err: io.EOF}), statemachine.Unavailable},
		{fmt.Errorf("node x: get: %w", &url.Error{Op: "Get", URL: "https://a", Err: io.EOF}), statemachine.Unavailable},
		{fmt.Errorf("node x: get: %w", &outcome.NotYet{Reason: outcome.Unready, Note: "401"}), statemachine.Unavailable},
		{fmt.Errorf("release x: install: %w", &outcome.Unreachable{Cluster: "x", Cause: io.EOF}), statemachine.Unavailable},
		{errors.New("x"), statemachine.StepFailed},
		{fmt.Errorf("a: %w", errors.Join(errors.New("x"), errors.New("y"))), statemachine.StepFailed},
		{fmt.Errorf("queue: %w", context.DeadlineExceeded), statemachine.Unavailable}, // of one request
	} {
		got := edge(t.Context(), c.err)
		if kind := reflect.TypeOf(got); kind.Name() != c.want || kind.Kind() == reflect.Pointer && kind.Elem().Name() != c.want {
			t.Errorf("%v: reaches the state machine as %s, want %s", c.err, kind, c.want)
		}
		if !strings.Contains(got.Error(), c.err.Error()) {
			t.Errorf("%v: the operator reads %q", c.err, got)
		}
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if got := edge(over, fmt.Errorf("queue: %w", context.DeadlineExceeded)); reflect.TypeOf(got).Name() != statemachine.StepFailed ||
		!strings.Contains(got.Error(), "longer than its time") {
		t.Errorf("when the function's time is over: %T %v", got, got)
	}
	if edge(t.Context(), nil) != nil {
		t.Error("no error has become one")
	}
}

func TestSettingNamesVariableAndFunction(t *testing.T) {
	t.Setenv("SAWHORSE_TABLE", "")
	const want = "function queue: environment variable SAWHORSE_TABLE is not set; deploy the stack again"
	if _, err := (Env{Function: "queue"}).Setting("SAWHORSE_TABLE"); err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
	t.Setenv("SAWHORSE_TABLE", "t")
	if got, err := (Env{Function: "queue"}).Setting("SAWHORSE_TABLE"); err != nil || got != "t" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestEnvironment(t *testing.T) {
	complete := map[string]string{"SAWHORSE_TABLE": "t", "SAWHORSE_PREFIX": "/p", "SAWHORSE_BUS": "b", "AWS_REGION": "eu-central-1"}
	set := func() {
		for name, value := range complete {
			t.Setenv(name, value)
		}
	}
	set()
	env, err := environment(t.Context(), "queue")
	if err != nil || env.Store.Name != "t" || env.Paths.Prefix != "/p" || env.Bus != "b" || env.Function != "queue" {
		t.Errorf("%+v, %v", env, err)
	}
	for _, name := range []string{"SAWHORSE_TABLE", "SAWHORSE_PREFIX", "SAWHORSE_BUS"} {
		set()
		t.Setenv(name, "")
		if _, err := environment(t.Context(), "queue"); err == nil || !strings.Contains(err.Error(), name) ||
			!strings.Contains(err.Error(), "function queue") {
			t.Errorf("without %s: %v", name, err)
		}
	}
}

// A step fails with the reason of its failed call, and not with a timeout.
func TestTheTriesOfACallFitIntoAFunctionsTime(t *testing.T) {
	total, pause := callTries*tryTimeout, time.Second
	for range callTries - 1 {
		total += min(pause, longestWait)
		pause *= 2
	}
	if functionTimeout := time.Minute; total >= functionTimeout {
		t.Errorf("%s", total)
	}
	config, err := awsConfig(t.Context())
	if err != nil || config.Retryer().MaxAttempts() != callTries {
		t.Errorf("%+v, %v", config, err)
	}
}
