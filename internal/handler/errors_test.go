package handler

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/smithy-go"

	"github.com/sawhorse-io/sawhorse/internal/rack"
	"github.com/sawhorse-io/sawhorse/internal/steps"
	"github.com/sawhorse-io/sawhorse/statemachine"
)

// The Lambda runtime reports an error's outermost Go type, and the state machine catches it by that name.
func TestErrorNames(t *testing.T) {
	code := func(code string) error { return &smithy.GenericAPIError{Code: code, Message: "m"} }
	for _, c := range []struct {
		err  error
		want string
	}{
		{rack.ErrLeaseLost, statemachine.LeaseLost},
		{fmt.Errorf("rack demo: %w", rack.ErrLeaseLost), statemachine.LeaseLost},
		{steps.Reject("rack", "no"), statemachine.Rejected},
		{fmt.Errorf("step queue: %w", steps.Reject("rack", "no")), statemachine.Rejected},
		{code("ThrottlingException"), statemachine.Throttled},
		{fmt.Errorf("role x: get: %w", code("Throttling")), statemachine.Throttled},
		{code("RequestLimitExceeded"), statemachine.Throttled},
		{code("AccessDenied"), statemachine.StepFailed},
		{errors.New("x"), statemachine.StepFailed},
		{fmt.Errorf("a: %w", errors.Join(errors.New("x"), errors.New("y"))), statemachine.StepFailed},
		{fmt.Errorf("queue: %w", context.DeadlineExceeded), statemachine.StepFailed},
	} {
		got := edge(c.err)
		if kind := reflect.TypeOf(got); kind.Name() != c.want || kind.Kind() == reflect.Pointer && kind.Elem().Name() != c.want {
			t.Errorf("%v: reaches the state machine as %s, want %s", c.err, kind, c.want)
		}
		if !strings.Contains(got.Error(), c.err.Error()) {
			t.Errorf("%v: the operator reads %q", c.err, got)
		}
	}
	if edge(nil) != nil {
		t.Error("no error has become one")
	}
}

func TestSettingNamesVariableAndFunction(t *testing.T) {
	t.Setenv("SAWHORSE_TABLE", "")
	if _, err := (Env{Function: "queue"}).Setting("SAWHORSE_TABLE"); err == nil || err.Error() != "function queue: environment variable SAWHORSE_TABLE is not set" {
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
		if _, err := environment(t.Context(), "queue"); err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "function queue") {
			t.Errorf("without %s: %v", name, err)
		}
	}
}
