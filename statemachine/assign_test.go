package statemachine

import (
	"bytes"
	"encoding/json"
	"regexp"
	"testing"
)

// assignment has the fields of one Assign in the order of the definition.
type assignment []struct{ name, value string }

func (a *assignment) UnmarshalJSON(text []byte) error {
	fields := json.NewDecoder(bytes.NewReader(text))
	if _, err := fields.Token(); err != nil { // the opening brace
		return err
	}
	for fields.More() {
		name, err := fields.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := fields.Decode(&value); err != nil {
			return err
		}
		*a = append(*a, struct{ name, value string }{name.(string), string(value)})
	}
	return nil
}

// On AWS, every field of an Assign sees the variables as they were before. MiniStack assigns one field after the other.
// Both have the same result if no field reads a variable that an earlier field assigns.
func TestNoFieldOfAnAssignReadsAnEarlierOne(t *testing.T) {
	type assigns struct{ Assign assignment }
	var m struct {
		States map[string]struct {
			assigns
			Choices, Catch []assigns
		}
	}
	if err := json.Unmarshal([]byte(Definition), &m); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for name, s := range m.States {
		for _, a := range append(append(s.Choices, s.Catch...), s.assigns) {
			for i, field := range a.Assign {
				seen++
				for _, earlier := range a.Assign[:i] {
					if regexp.MustCompile(`\$` + earlier.name + `\b`).MatchString(field.value) {
						t.Errorf("state %s: %s reads %s, which the same Assign has set before", name, field.name, earlier.name)
					}
				}
			}
		}
	}
	if seen < 20 {
		t.Errorf("only %d fields: the test does not see them", seen)
	}
}
