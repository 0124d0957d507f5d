package interpreter

import (
	"encoding/json"
	"os"
	"reflect"
	"testing"
)

// stateCase is one case of statemachine/testdata/states.json: a state, what it finds, and where it goes. Arguments and Assigns are
// subsets of what a Task sends and of the variables afterwards. Fails is the end of a Fail state, whose cause is JSON.
type stateCase struct {
	State, What, Next  string
	Arguments, Assigns map[string]any
	Fails              struct {
		Error string
		Cause any
	}
}

type stateAnswer struct {
	Next, Error, Cause   string
	Variables, Arguments map[string]any
}

// Each expression of the definition has the value that the cases say. make acceptance asks Step Functions for the same.
func TestStates(t *testing.T) {
	text, err := os.ReadFile("../../statemachine/testdata/states.json")
	if err != nil {
		t.Fatal(err)
	}
	var given map[string]any
	var file struct{ Cases []stateCase }
	text = substitute(text)
	for _, into := range []any{&given, &file} {
		if err := json.Unmarshal(text, into); err != nil {
			t.Fatal(err)
		}
	}
	var answers []stateAnswer
	interpret(t, given, &answers)
	for i, c := range file.Cases {
		got := answers[i]
		switch {
		case c.Next == "" && (got.Error != c.Fails.Error || !reflect.DeepEqual(decoded(t, got.Cause), c.Fails.Cause)):
			t.Errorf("%s, %s: fails with %s, %s", c.State, c.What, got.Error, got.Cause)
		case got.Next != c.Next:
			t.Errorf("%s, %s: goes on to %s, want %s", c.State, c.What, got.Next, c.Next)
		case !contains(got.Arguments, c.Arguments):
			t.Errorf("%s, %s: arguments %v, want %v", c.State, c.What, got.Arguments, c.Arguments)
		case !contains(got.Variables, c.Assigns):
			t.Errorf("%s, %s: variables %v, want %v", c.State, c.What, got.Variables, c.Assigns)
		}
	}
	ways := map[[2]string]int{}
	for _, c := range file.Cases {
		ways[[2]string{c.State, c.Next}]++
	}
	for way, rules := range waysOn(t) {
		if ways[way] < rules {
			t.Errorf("%s to %s: %d cases for %d rules", way[0], way[1], ways[way], rules)
		}
	}
}

// waysOn counts the rules of the definition that lead from one state to another: the choices, catchers, and what is next. A Fail
// state leads to "". States that succeed have no expression.
func waysOn(t *testing.T) map[[2]string]int {
	type rule struct{ Next string }
	var machine struct {
		States map[string]struct {
			Type, Next, Default string
			Choices, Catch      []rule
		}
	}
	if err := json.Unmarshal(definition(t), &machine); err != nil {
		t.Fatal(err)
	}
	ways := map[[2]string]int{}
	for name, s := range machine.States {
		if s.Type == "Succeed" {
			continue
		}
		for _, r := range append(append(s.Choices, s.Catch...), rule{s.Next + s.Default}) {
			ways[[2]string{name, r.Next}]++
		}
	}
	return ways
}

// contains reports whether an object has all fields that are wanted. A wanted object with fields is a subset again.
func contains(got, want map[string]any) bool {
	for name, value := range want {
		has, _ := got[name].(map[string]any)
		if fields, is := value.(map[string]any); is && len(fields) > 0 {
			if !contains(has, fields) {
				return false
			}
		} else if !reflect.DeepEqual(got[name], value) {
			return false
		}
	}
	return true
}

func decoded(t *testing.T, text string) (value any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Error(err)
	}
	return value
}
