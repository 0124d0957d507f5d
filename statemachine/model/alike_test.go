package model

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sawhorse-io/sawhorse/internal/pass/resync"
	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/statemachine"
)

// definition has the parts of the state machine that the model covers.
type definition struct {
	StartAt string
	States  map[string]struct {
		Type, Next, Default, Resource string
		Seconds                       any // a number or an expression
		Choices, Catch                []struct{ Next string }
		Assign                        map[string]any
		Arguments                     struct {
			Key                                   map[string]map[string]string
			UpdateExpression, ConditionExpression string
			ExpressionAttributeNames              map[string]string
			ExpressionAttributeValues             map[string]map[string]string
		}
	}
}

func parse(t *testing.T) definition {
	t.Helper()
	var d definition
	if err := json.Unmarshal([]byte(statemachine.Definition), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// The model uses all transitions of the state machine, and no others.
func TestTheTransitionsAreThoseOfTheStateMachine(t *testing.T) {
	taken, has := map[[2]string]bool{}, map[[2]string]bool{}
	for _, result := range explored() {
		maps.Copy(taken, result.taken)
	}
	d := parse(t)
	for name, s := range d.States {
		for _, next := range append(slices.Concat(s.Choices, s.Catch), struct{ Next string }{s.Next}, struct{ Next string }{s.Default}) {
			if next.Next != "" {
				has[[2]string{name, next.Next}] = true
			}
		}
	}
	for way := range has {
		if !taken[way] {
			t.Errorf("the model never goes from %s to %s", way[0], way[1])
		}
	}
	for way := range taken {
		if !has[way] {
			t.Errorf("the state machine has no way from %s to %s", way[0], way[1])
		}
	}
	if d.StartAt != "Intake" {
		t.Errorf("the state machine starts at %s", d.StartAt)
	}
}

// The state machine's updates of the lease must be those of the model, by the names of their states.
func TestTheUpdatesOfTheLeaseAreThoseOfTheStateMachine(t *testing.T) {
	p := asBuilt()
	left := map[string]call{"Request": p.Request, "Acquire": p.Acquire, "Renew": p.Renew, "Release": p.Release, "Erase": p.Erase,
		"HandOver": p.HandOver}
	for name, s := range parse(t).States {
		a := s.Arguments
		if a.Key["sk"]["S"] != "lease" {
			continue
		}
		same(t, name, left[name], a.UpdateExpression, a.ConditionExpression)
		delete(left, name)
		for short, long := range a.ExpressionAttributeNames {
			if short != "#"+long {
				t.Errorf("%s: %s is %s", name, short, long)
			}
		}
		if a.Key["pk"]["S"] != "{% 'rack#' & $rack %}" {
			t.Errorf("%s: key %v", name, a.Key)
		}
		for value, want := range map[string]string{
			":me":         "{% $states.context.Execution.Id %}",
			":generation": "{% $string($generation) %}",
			":now":        "{% $string($floor($millis() / 1000)) %}",
			":expires":    fmt.Sprintf("{%% $string($floor($millis() / 1000) + %d) %%}", int(store.LeaseTime.Seconds())),
			":ttl":        "{% $string($floor($millis() / 1000) + 3888000) %}",
			":zero":       "0",
			":one":        "1",
		} {
			if got := a.ExpressionAttributeValues[value]["S"] + a.ExpressionAttributeValues[value]["N"]; got != "" && got != want {
				t.Errorf("%s: %s is %s, want %s", name, value, got, want)
			}
		}
	}
	for name := range left {
		t.Errorf("the state machine has no update %s of the lease", name)
	}
}

func same(t *testing.T, name string, c call, update, condition string) {
	t.Helper()
	if update != c.update || condition != c.condition {
		t.Errorf("%s: %q under the condition %q; the model has %q, %q", name, update, condition, c.update, c.condition)
	}
}

// sent is a table that records the last update.
type sent struct {
	store.Table
	last *dynamodb.UpdateItemInput
}

func (s *sent) UpdateItem(_ context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
	s.last = in
	return &dynamodb.UpdateItemOutput{}, nil
}

// The updates that package rack sends must be those of the model.
func TestTheUpdatesOfTheLeaseAreThoseOfTheStore(t *testing.T) {
	p, table := asBuilt(), &sent{}
	store := &store.Store{DB: table, Name: "t"}
	now := time.Unix(1_800_000_000, 0)
	check := func(name string, c call, err error) {
		t.Helper()
		condition := ""
		if table.last.ConditionExpression != nil {
			condition = *table.last.ConditionExpression
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		same(t, name, c, *table.last.UpdateExpression, condition)
	}
	_, err := store.Renew(t.Context(), "demo", "me", now)
	check("Renew", p.Call, err)
	_, err = store.Free(t.Context(), "demo", "me", time.Time{})
	check("Free", p.Free, err)
	_, err = store.Free(t.Context(), "demo", "me", now)
	check("Free with a call in flight", p.FreeInFlight, err)
	// A function's request is counted like an event, with and without an owner of the lease.
	check("Request", call{update: "ADD requested :one"}, store.Request(t.Context(), "demo"))
}

// The model's assumptions about times and numbers.
func TestTimesFitIntoEachOther(t *testing.T) {
	d := parse(t)
	if store.LeaseTime < 2*store.CallTime+30*time.Second {
		t.Errorf("a lease of %s does not outlast a call of %s, a wait of 30 s, and clocks that differ", store.LeaseTime, store.CallTime)
	}
	if got, want := d.States["Debounce"].Seconds, "{% $max([${DebounceSeconds}, $quiet - $floor($millis() / 1000)]) %}"; got != want {
		t.Errorf("Debounce waits %s, want %s", got, want)
	}
	const quiet = "{% $exists($states.result.Attributes.quiet) ? $number($states.result.Attributes.quiet.N) : 0 %}"
	if got, want := d.States["Acquire"].Assign["quiet"], quiet; got != want {
		t.Errorf("Acquire takes quiet from %s, want %s", got, want)
	}
	if got, want := d.States["Renew"].Assign["generation"], "{% $number($states.result.Attributes.requested.N) %}"; got != want {
		t.Errorf("Renew notes %s, want %s", got, want)
	}
}

// States that the model treats alike must have the same type.
func TestTheKindsOfStates(t *testing.T) {
	var waiting, calling []string
	d := parse(t)
	for name, s := range d.States {
		switch {
		case s.Type == "Wait":
			waiting = append(waiting, name)
		case strings.HasSuffix(s.Resource, ":lambda:invoke"):
			calling = append(calling, name)
		}
	}
	slices.Sort(waiting)
	slices.Sort(calling)
	if !slices.Equal(waiting, waits) || !slices.Equal(calling, functions) {
		t.Errorf("waiting %v, calling functions %v", waiting, calling)
	}
	for _, name := range resync.Uncounted {
		if _, known := d.States[name]; !known {
			t.Errorf("resync knows a state %s", name)
		}
	}
	// Every path to the lease leads through Request, and no state before it uses the lease.
	for name, s := range d.States {
		if s.Next == "Acquire" && name != "Request" {
			t.Errorf("%s leads to Acquire", name)
		}
	}
}
