package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/pass/validate"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/readonly"
	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

// begin is an audit of the rack demo, what it requests, and its log.
func begin(due map[string]string, failed error) (*awsfake.Cloud, *Audit, *[]events.ReconcileRequested, *bytes.Buffer) {
	cloud, log, requested := awsfake.New(), &bytes.Buffer{}, &[]events.ReconcileRequested{}
	return cloud, &Audit{
		Store: &store.Store{DB: cloud.Table, Name: "sawhorse"}, Now: cloud.Now, Log: slog.New(slog.NewJSONHandler(log, nil)),
		Look: func(context.Context, string, int64) (map[string]string, error) { return due, failed },
		Pass: func(context.Context, validate.Event) (validate.Answer, error) {
			return validate.Answer{Outcome: outcome.PassPlanned}, nil
		},
		Request: func(_ context.Context, r events.ReconcileRequested) error {
			*requested = append(*requested, r)
			return nil
		},
	}, requested, log
}

// lease writes the rack's lease. expires is from now.
func lease(cloud *awsfake.Cloud, owner string, expires time.Duration, requested, served string) {
	cloud.Table.Items["rack#demo lease"] = awsfake.Item{
		"pk": &types.AttributeValueMemberS{Value: "rack#demo"}, "sk": &types.AttributeValueMemberS{Value: "lease"},
		"owner":     &types.AttributeValueMemberS{Value: owner},
		"expires":   &types.AttributeValueMemberN{Value: fmt.Sprint(cloud.Now().Add(expires).Unix())},
		"requested": &types.AttributeValueMemberN{Value: requested}, "served": &types.AttributeValueMemberN{Value: served},
	}
}

func TestAPassIsRequestedWhereSomethingIsDue(t *testing.T) {
	due := map[string]string{"network": "x"}
	for what, c := range map[string]struct {
		due    map[string]string
		failed error
		lease  func(*awsfake.Cloud)
		want   bool
	}{
		"nothing":                       {nil, nil, nil, false},
		"a step":                        {due, nil, nil, true},
		"nobody can tell":               {nil, awsfake.Throttling, nil, true},
		"a pass has the rack":           {due, nil, func(c *awsfake.Cloud) { lease(c, "me", time.Minute, "2", "1") }, false},
		"a pass that died has it":       {nil, nil, func(c *awsfake.Cloud) { lease(c, "me", -time.Minute, "2", "1") }, true},
		"a request that was not served": {nil, nil, func(c *awsfake.Cloud) { lease(c, "", 0, "2", "1") }, true},
		"all served":                    {nil, nil, func(c *awsfake.Cloud) { lease(c, "", 0, "2", "2") }, false},
	} {
		cloud, a, requested, log := begin(c.due, c.failed)
		if c.lease != nil {
			c.lease(cloud)
		}
		if _, err := a.Run(t.Context(), validate.Event{Rack: "demo"}); err != nil {
			t.Fatal(err)
		}
		want := []events.ReconcileRequested{{Rack: "demo", Reason: "schedule", Full: true}}
		if !c.want {
			want = nil
		}
		same := func(a, b events.ReconcileRequested) bool { return reflect.DeepEqual(a, b) }
		if !slices.EqualFunc(*requested, want, same) || len(cloud.Writes()) > 0 {
			t.Errorf("%s: requested %+v, wrote %v", what, *requested, cloud.Writes())
		}
		var line struct{ Msg, Rack string }
		if err := json.Unmarshal(log.Bytes(), &line); err != nil || line.Msg != "audit" || line.Rack != "demo" {
			t.Errorf("%s: the log is %s (%v)", what, log, err)
		}
	}
}

// A full pass begins with the same function: the state machine's call has an execution, and gets an answer.
func TestTheStateMachinesCallBeginsAPass(t *testing.T) {
	_, a, requested, _ := begin(map[string]string{"network": "x"}, nil)
	answer, err := a.Run(t.Context(), validate.Event{Rack: "demo", Execution: "arn:execution"})
	if err != nil || answer.Outcome != outcome.PassPlanned || len(*requested) > 0 {
		t.Errorf("%+v, %v, requested %v", answer, err, *requested)
	}
}

func TestARequestThatCannotBePutIsAnError(t *testing.T) {
	_, a, _, _ := begin(map[string]string{"network": "x"}, nil)
	a.Request = func(context.Context, events.ReconcileRequested) error { return awsfake.Throttling }
	if _, err := a.Run(t.Context(), validate.Event{Rack: "demo"}); !errors.Is(err, awsfake.Throttling) {
		t.Error(err)
	}
}

func TestDue(t *testing.T) {
	warning := []params.Problem{{Parameter: "rack", Message: "w"}}
	write := fmt.Errorf("role demo: tag: %w", readonly.ErrWouldWrite)
	long := []params.Problem{{Parameter: "rack", Message: string(bytes.Repeat([]byte("w"), outcome.Longest+1))}}
	cut := []params.Problem{{Parameter: "rack", Message: outcome.Shorten(long[0].Message)}}
	for what, c := range map[string]struct {
		step     plan.Step
		progress outcome.Progress
		err      error
		warned   []params.Problem
		want     string
	}{
		"in order":                 {plan.Step{Name: "a"}, outcome.Progress{}, nil, nil, ""},
		"it would write":           {plan.Step{Name: "a"}, outcome.Progress{}, write, nil, write.Error()},
		"it would wait":            {plan.Step{Name: "a"}, outcome.Progress{Wait: time.Second, Note: "n"}, nil, nil, "it would wait: n"},
		"it rejects":               {plan.Step{Name: "a"}, outcome.Progress{}, outcome.Reject("rack", "x"), nil, "rejected: rack: x"},
		"it cannot read":           {plan.Step{Name: "a"}, outcome.Progress{}, errors.New("no right"), nil, "no right"},
		"it is not finished":       {plan.Step{Name: "a"}, outcome.Progress{Unfinished: true}, nil, nil, "it is not finished"},
		"a new warning":            {plan.Step{Name: "a"}, outcome.Progress{Warnings: warning}, nil, nil, "its warnings have changed"},
		"a warning that ended":     {plan.Step{Name: "a"}, outcome.Progress{}, nil, warning, "its warnings have changed"},
		"the same warning":         {plan.Step{Name: "a"}, outcome.Progress{Warnings: warning}, nil, warning, ""},
		"the same long warning":    {plan.Step{Name: "a"}, outcome.Progress{Warnings: long}, nil, cut, ""},
		"a precheck that prepares": {plan.Step{Name: "a", PrecheckFor: "b"}, outcome.Progress{}, write, nil, ""},
		"a precheck that waits":    {plan.Step{Name: "a", PrecheckFor: "b"}, outcome.Progress{Wait: 1}, nil, nil, ""},
		"a precheck that rejects": {plan.Step{Name: "a", PrecheckFor: "b"}, outcome.Progress{}, outcome.Reject("rack", "x"), nil,
			"rejected: rack: x"},
	} {
		c.step.Function = "a"
		s := NewSteps(func() map[string]outcome.StepFunc {
			return map[string]outcome.StepFunc{"a": func(context.Context, *plan.Plan, string) (outcome.Progress, error) { return c.progress, c.err }}
		})
		got := s.Due(t.Context(), &plan.Plan{}, []plan.Step{c.step}, map[string][]params.Problem{"a": c.warned})
		if got["a"] != c.want || len(got) != min(1, len(c.want)) {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}

// The steps run side by side, and one that fails hides no other.
func TestStepsRunSideBySide(t *testing.T) {
	const n = 5
	var all sync.WaitGroup // each step returns when all have begun
	all.Add(n)
	meet := func(_ context.Context, _ *plan.Plan, part string) (outcome.Progress, error) {
		all.Done()
		all.Wait()
		return outcome.Progress{}, errors.New(part)
	}
	connects := 0
	s := NewSteps(func() map[string]outcome.StepFunc {
		connects++
		return map[string]outcome.StepFunc{"a": meet}
	})
	var list []plan.Step
	for i := range n {
		list = append(list, plan.Step{Name: fmt.Sprint("a/", i), Function: "a", Part: fmt.Sprint(i)})
	}
	got := s.Due(t.Context(), &plan.Plan{}, list, nil)
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, []string{"a/0", "a/1", "a/2", "a/3", "a/4"}) || got["a/3"] != "3" {
		t.Errorf("%v", got)
	}
	if connects != 2 {
		t.Errorf("connected %d times: once for the names, once for the plan", connects)
	}
	if s.Audits(plan.Step{Function: "b"}) || !s.Audits(list[0]) {
		t.Error("it audits other functions' steps")
	}
}

// Lambda ends a function after 60 s without a word. An audit ends before that, and requests the pass that tells why.
func TestAnAuditThatReadsTooLong(t *testing.T) {
	_, a, requested, _ := begin(nil, nil)
	a.Look = func(ctx context.Context, _ string, _ int64) (map[string]string, error) {
		if _, limited := ctx.Deadline(); !limited {
			t.Error("it may read for ever")
		}
		return nil, context.DeadlineExceeded
	}
	if _, err := a.Run(t.Context(), validate.Event{Rack: "demo"}); err != nil || len(*requested) != 1 {
		t.Errorf("%v, requested %v", err, *requested)
	}
}

// An audit that cannot read the lease, or cannot send its request, fails: so Lambda calls it again, and keeps it if that fails
// too.
func TestAnAuditThatIsOfNoUseFails(t *testing.T) {
	due := map[string]string{"network": "x"}
	cloud, a, requested, _ := begin(due, nil)
	cloud.FailAt(1, awsfake.Throttling)
	if _, err := a.Run(t.Context(), validate.Event{Rack: "demo"}); !errors.Is(err, awsfake.Throttling) || len(*requested) > 0 {
		t.Errorf("no lease: %v, requested %v", err, *requested)
	}
	_, a, _, _ = begin(due, nil)
	a.Request = func(context.Context, events.ReconcileRequested) error { return awsfake.Throttling }
	if _, err := a.Run(t.Context(), validate.Event{Rack: "demo"}); !errors.Is(err, awsfake.Throttling) {
		t.Errorf("no request: %v", err)
	}
}
