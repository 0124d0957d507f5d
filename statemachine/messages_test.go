package statemachine

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// fields returns the names that the fields of a message have in JSON.
func fields(message any) (names []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeOf(message)) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// used returns what a pattern's group matches in a text: each once, sorted.
func used(pattern, text string) (names []string) {
	for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		names = append(names, match[1])
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// A function ignores a field that its type lacks, and one that the state machine does not send is empty: nothing fails.
func TestTheStateMachineSendsTheFieldsOfItsMessages(t *testing.T) {
	m := parse(t)
	sent := func(states ...string) (names []string) {
		for _, name := range states {
			var call struct{ Payload map[string]any }
			if err := json.Unmarshal(m.States[name].Arguments, &call); err != nil {
				t.Fatal(err)
			}
			for field := range call.Payload {
				names = append(names, field)
			}
		}
		slices.Sort(names)
		return slices.Compact(names)
	}
	var outputs []map[string]any
	for _, way := range append(m.States["Todo"].Choices, m.States["StepAnswer"].Choices...) {
		if way.Next == "RunStep" {
			outputs = append(outputs, way.Output.(map[string]any))
		}
	}
	if len(outputs) != 2 {
		t.Fatalf("RunStep's input is made in %d places", len(outputs))
	}
	unknown, _ := m.States["Intake"].Assign["unknown"].(string)
	_, event, _ := strings.Cut(unknown, "; {'detailType'")
	for what, c := range map[string]struct{ got, want []string }{
		"Validate":              {sent("Validate"), fields(ValidateCall{})},
		"RunStep":               {sent("RunStep"), fields(StepCall{})},
		"Report and its like":   {sent("Report", "ReportFailure", "ReportWait"), fields(ReportCall{})},
		"a step's wait":         {used(`"(\w+)":`, waitOf(t, m)), fields(StepWait{})},
		"an unknown event":      {used(`'(\w+)':`, "'detailType'"+event), fields(UnknownEvent{})},
		"the cause of a Fail":   {used(`'(\w+)':`, m.States["Failed"].Cause), fields(Failure{})},
		"a step's input":        {keysOf(outputs[0]), fields(StepInput{})},
		"the next step's input": {keysOf(outputs[1]), fields(StepInput{})},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: the definition has %q, the type %q", what, c.got, c.want)
		}
	}
}

// A name that no answer has is empty in JSONata, and an error in what is made of it.
func TestTheStateMachineReadsFieldsOfItsMessages(t *testing.T) {
	m := parse(t)
	for what, c := range map[string]struct{ read, has []string }{
		"Validate": {
			used(`\$states\.result\.Payload\.(\w+)`, text(t, m.States["Validate"].Assign)),
			fields(ValidateAnswer{}),
		},
		"ReportFailure": {used(`\$states\.result\.Payload\.(\w+)`, text(t, m.States["ReportFailure"].Assign)), fields(ReportAnswer{})},
		"a step":        {used(`\$answer\.(\w+)`, Definition), fields(StepAnswer{})},
		"the plan":      {used(`\$steps?(?:\[[^\]]*\])?\.(\w+)`, Definition), fields(plan.Step{})},
	} {
		if len(c.read) == 0 {
			t.Errorf("%s: the test does not see what is read", what)
		}
		for _, name := range c.read {
			if !slices.Contains(c.has, name) {
				t.Errorf("%s: the definition reads %s, the type has %q", what, name, c.has)
			}
		}
	}
}

// waitOf returns the field wait of a ReportCall.
func waitOf(t *testing.T, m machine) string {
	t.Helper()
	var call struct{ Payload map[string]json.RawMessage }
	if err := json.Unmarshal(m.States["ReportWait"].Arguments, &call); err != nil {
		t.Fatal(err)
	}
	return string(call.Payload["wait"])
}

func keysOf(object map[string]any) (names []string) {
	for name := range object {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func text(t *testing.T, value any) string {
	t.Helper()
	encoded, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}
