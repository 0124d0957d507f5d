package report

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/canonical"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

// The event of a dry run has the result that a pass would have.
func TestDryRun(t *testing.T) {
	for _, c := range []struct {
		problems    []params.Problem
		differences []plan.Difference
		kind        string
		differs     events.List[string]
		fields      events.List[events.Difference]
	}{
		{nil, nil, "Rack Reconciled", events.List[string]{}, events.List[events.Difference]{}},
		{nil, []plan.Difference{{Step: "access", Lines: []string{"a: 1 → 2", "b: added 1"}}, {Step: "queue", Lines: []string{"c: removed 1"}}},
			"Rack Reconciled", events.List[string]{"access", "queue"},
			events.List[events.Difference]{
				{Step: "access", Field: "a: 1 → 2"}, {Step: "access", Field: "b: added 1"}, {Step: "queue", Field: "c: removed 1"},
			}},
		{[]params.Problem{{Parameter: "node_disk", Message: "is wrong"}}, nil, "Rack Rejected", nil, nil},
	} {
		s := begin(t, store.Run{})
		bus := Bus{Events: s.cloud.Events, Name: "sawhorse"}
		run := store.Run{Rack: "demo", Problems: c.problems, Request: "r-1"}
		told, err := bus.DryRun(t.Context(), run, []plan.Step{{Name: "queue"}}, c.differences)
		if err != nil {
			t.Fatal(err)
		}
		kind, detail := s.sent()
		if string(canonical.JSON(told)) != string(canonical.JSON(detail.Pass)) {
			t.Errorf("returns %+v, and has sent %+v", told, detail)
		}
		if !reflect.DeepEqual(detail.Differs, c.differs) {
			t.Errorf("differs %#v, want %#v", detail.Differs, c.differs)
		}
		if !reflect.DeepEqual(detail.Differences, c.fields) {
			t.Errorf("differences %#v, want %#v", detail.Differences, c.fields)
		}
		if kind != c.kind || !detail.DryRun || detail.Request != "r-1" ||
			!slices.Equal(detail.Steps, []string{"queue"}) || len(detail.Problems) != len(c.problems) {
			t.Errorf("%s %+v", kind, detail)
		}
	}
}

func TestBus(t *testing.T) {
	cloud := awsfake.New()
	bus := Bus{Events: cloud.Events, Name: "sawhorse"}
	run := store.Run{Rack: "demo", Generation: 7, Execution: "me", Warnings: warning}
	steps := []plan.Step{{Name: "access"}, {Name: "queue"}}
	if err := bus.Started(t.Context(), run, steps, nil); err != nil {
		t.Fatal(err)
	}
	var started events.ReconcileStarted
	if err := json.Unmarshal([]byte(*cloud.Events.Sent[0].Detail), &started); err != nil ||
		!slices.Equal(started.Steps, []string{"access", "queue"}) || started.Rack != "demo" || started.Generation != 7 ||
		len(started.Warnings) != 1 || *cloud.Events.Sent[0].DetailType != "Rack Reconcile Started" {
		t.Errorf("%+v, %v", started, err)
	}
	if err := bus.Started(t.Context(), run, steps, &store.Status{Warnings: warning}); err != nil {
		t.Fatal(err)
	}
	if text := *cloud.Events.Sent[1].Detail; !strings.Contains(text, `"warnings":[],"unchangedWarnings":1,`) {
		t.Errorf("the status has the warning already: %s", text)
	}
	cloud.Events.Refuse = "bus full"
	if err := bus.Send(t.Context(), &started); err == nil ||
		!strings.Contains(err.Error(), "event Rack Reconcile Started: put: ") || !strings.Contains(err.Error(), "bus full") {
		t.Errorf("a refused event: %v", err)
	}
}

// The code of a refused event is that of a call: the state machine tries again what is throttled.
func TestAnEventThatIsThrottled(t *testing.T) {
	cloud := awsfake.New()
	cloud.Events.RefuseCode = "ThrottlingException"
	bus := Bus{Events: cloud.Events, Name: "sawhorse"}
	if err := bus.Request(t.Context(), events.ReconcileRequested{Rack: "demo"}); outcome.Code(err) != "ThrottlingException" {
		t.Errorf("%v", err)
	}
}

// An event that is too long for EventBridge is shortened. Problems are left out last, and it has the number of omissions.
func TestALongEventIsShortened(t *testing.T) {
	cloud := awsfake.New()
	var pass events.Pass
	for i := range 2000 {
		pass.Changed = append(pass.Changed, events.Change{
			Step: "nodepools", Subject: fmt.Sprintf("NodePool/%d %s", i, strings.Repeat("é", 40)), Action: "created",
		})
		pass.Warnings = append(pass.Warnings, events.Problem{Parameter: "w", Message: strings.Repeat("x", 50)})
	}
	for range 200 {
		pass.Problems = append(pass.Problems, events.Problem{Parameter: "p", Message: strings.Repeat("x", 1000)})
	}
	if err := (Bus{Events: cloud.Events, Name: "sawhorse"}).Send(t.Context(), &events.Rejected{Pass: pass, Change: 4}); err != nil {
		t.Fatal(err)
	}
	text := *cloud.Events.Sent[0].Detail
	var sent events.Rejected
	if err := json.Unmarshal([]byte(text), &sent); err != nil {
		t.Fatal(err)
	}
	if len(text) > maxDetail+50 || len(text) < maxDetail-1100 {
		t.Errorf("%d bytes", len(text))
	}
	left := len(sent.Changed) + len(sent.Warnings) + len(sent.Problems)
	if len(sent.Changed) != 0 || len(sent.Problems) != 200 || sent.Change != 4 || sent.Omitted != 4200-left {
		t.Errorf("%d changes, %d warnings, %d problems, %d omitted", len(sent.Changed), len(sent.Warnings), len(sent.Problems), sent.Omitted)
	}
}
