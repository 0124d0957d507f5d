package validate

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/statemachine"
)

// refuseUnknown answers an event that is not a valid request, so that its sender does not wait for an answer that never comes. It reads and
// stores nothing, because the senders of events may name any rack and send any number of events.
func (v *Validate) refuseUnknown(ctx context.Context, event Event) (Answer, error) {
	run := store.Run{Execution: event.Execution, Started: v.Now(), Request: event.Request}
	if ownership.ValidRack(event.Rack) { // the events' schemas allow no other name
		run.Rack = event.Rack
	}
	err := v.Bus.Answer(ctx, run, event.Unknown.ID, unknown(event.Unknown))
	return Answer{Outcome: outcome.PassRejected, Steps: []plan.Step{}}, err
}

// unknown returns the problems of an event that is not a valid request. There is at least one.
func unknown(u statemachine.UnknownEvent) []params.Problem {
	if u.DetailType != events.TypeReconcileRequested {
		return []params.Problem{params.NewProblem("detail-type", "",
			"the event's detail-type is %q; allowed is %q; nothing was done for it; send it again with that",
			u.DetailType, events.TypeReconcileRequested)}
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(u.Detail), &fields); err != nil {
		return []params.Problem{params.NewProblem("detail", "",
			"the request has a wrong field and is too large to say which; nothing was done for it; leave out what docs/events.md does not list, "+
				"and send it again")}
	}
	all := append(wrongRack(fields["rack"]), wrongFields(fields)...)
	if len(all) == 0 {
		all = append(all, params.NewProblem("detail", "",
			"the request is not as docs/events.md describes it; nothing was done for it; write it as that page says, and send it again"))
	}
	return all
}

func wrongRack(value json.RawMessage) []params.Problem {
	if value == nil {
		return []params.Problem{params.NewProblem("detail", "rack",
			"the request names no rack; nothing was done for it; write the rack's name to the field rack, and send it again")}
	}
	var name string
	if kindOf(value) != text || json.Unmarshal(value, &name) != nil {
		return []params.Problem{wrongType("rack", value, text)}
	}
	if wrong := params.RackName(name, false); wrong != nil {
		wrong.Parameter, wrong.Path = "detail", "rack"
		return []params.Problem{*wrong}
	}
	return nil
}

// wrongFields returns what is wrong with the fields of a reconcile request, except the rack.
func wrongFields(fields map[string]json.RawMessage) (all []params.Problem) {
	types := map[string]string{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[events.ReconcileRequested]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		types[name] = map[reflect.Kind]string{reflect.String: text, reflect.Bool: truth, reflect.Map: object, reflect.Slice: array}[f.Type.Kind()]
	}
	known := slices.Sorted(maps.Keys(types))
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		value := fields[name]
		switch allowed, is := types[name]; {
		case name == "rack":
		case !is:
			all = append(all, params.NewProblem("detail", name,
				"the request has the unknown field %.60q; allowed are %s; nothing was done for it; send it again; %s", name,
				strings.Join(known, ", "), params.DidYouMean(name, known, "leave it out")))
		case kindOf(value) != allowed:
			all = append(all, wrongType(name, value, allowed))
		case (name == "set" || name == "unset") && string(fields["dryRun"]) != "true":
			all = append(all, params.NewProblem("detail", name,
				"%s is only for dry runs; nothing was done for it; write dryRun: true beside it, or write the change to the parameter change of "+
					"the rack", name))
		case name == "force":
			all = append(all, wrongWords(value)...)
		case name == "request":
			var request string
			if err := json.Unmarshal(value, &request); err == nil && utf8.RuneCountInString(request) > events.MaxRequest {
				all = append(all, params.NewProblem("detail", name,
					"request has %d characters; allowed are at most %d; nothing was done for it; write a shorter one, and send it again",
					utf8.RuneCountInString(request), events.MaxRequest))
			}
		}
	}
	return all
}

// wrongWords returns what is wrong with the words of force.
func wrongWords(value json.RawMessage) (all []params.Problem) {
	var words []json.RawMessage
	if err := json.Unmarshal(value, &words); err != nil {
		return nil // the field has another type
	}
	if len(words) > events.MostForce {
		return []params.Problem{params.NewProblem("detail", "force",
			"force has %d words; allowed are at most %d; nothing was done for it; leave some out, and send the request again",
			len(words), events.MostForce)}
	}
	for i, word := range words {
		var text string
		if err := json.Unmarshal(word, &text); err != nil || !events.IsForce(text) {
			all = append(all, params.NewProblem("detail", fmt.Sprintf("force[%d]", i),
				"force has the word %.60s; allowed are %s; nothing was done for it; write one of these, and send the request again", word,
				strings.Join(events.ForceWords, ", ")))
		}
	}
	return all
}

func wrongType(name string, value json.RawMessage, allowed string) params.Problem {
	return params.NewProblem("detail", name,
		"%s is %s; allowed is %s; nothing was done for it; write that, and send the request again", name, kindOf(value), allowed)
}

const (
	text   = "text in quotes"
	truth  = "true or false without quotes"
	object = "an object"
	array  = "an array"
)

// kindOf returns the type of a JSON value in words.
func kindOf(value json.RawMessage) string {
	switch value[0] {
	case '"':
		return text
	case 't', 'f':
		return truth
	case '{':
		return object
	case '[':
		return array
	case 'n':
		return "null"
	}
	return "a number"
}
