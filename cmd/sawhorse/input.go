package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/judge"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/plan/nodes"
)

// input is what check, render and plan read.
type input struct {
	Rack   string            `json:"rack"`
	Params map[string]string `json:"params"`
	// Previous are the parameters as last applied; nil for a new rack.
	Previous map[string]string `json:"previous"`
	Observed plan.Facts        `json:"observed"`
}

// inputFields are those of an input, for the one who mistypes them.
var inputFields = []string{"rack", "params", "previous", "observed"}

// readInput reads one input strictly, but for the facts: those are EKS's own answers, which have more fields than are used.
func readInput(text []byte) (input, error) {
	var in input
	fields := map[string]json.RawMessage{}
	if err := strictly(text, &fields); err != nil {
		return in, fmt.Errorf("the input is no JSON object: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(inputFields, name) {
			instead := "allowed are " + strings.Join(inputFields, ", ")
			if near := params.Nearest(name, inputFields); near != "" {
				instead = "did you mean " + near + "?"
			}
			return in, fmt.Errorf("the input has the field %q; %s", name, instead)
		}
	}
	for name, into := range map[string]any{"rack": &in.Rack, "params": &in.Params, "previous": &in.Previous, "observed": &in.Observed} {
		if fields[name] == nil {
			continue
		}
		if err := json.Unmarshal(fields[name], into); err != nil {
			return in, fmt.Errorf("the input's %s: %w", name, explained(err))
		}
	}
	if fields["rack"] == nil {
		return in, errors.New("the input has no rack; write {\"rack\": \"prod\", \"params\": {…}}")
	}
	return in, nil
}

// strictly decodes one value and nothing behind it.
func strictly(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	if err := decoder.Decode(into); err != nil {
		return explained(err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows its end")
	}
	return nil
}

func explained(err error) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return fmt.Errorf("%s is a %s; allowed is %s (a parameter's value is text: write it in quotes)", wrong.Field, wrong.Value, wrong.Type)
	}
	if errors.Is(err, io.EOF) {
		return errors.New("it is empty")
	}
	return err
}

// verdict judges an input as a pass would, and tells which steps a pass would take. What was not observed is unknown.
func (in input) verdict() (judge.Verdict, []plan.Step, error) {
	before := judge.InForce{}
	records := plan.Records{}
	if in.Previous != nil {
		// What was applied is taken as it was, whatever is to be thought of it today.
		last := params.Parse(params.Input{Rack: in.Rack, Params: in.Previous})
		objects := nodes.Compile(last.Config, in.facts(plan.Records{})).Objects()
		was := plan.Build(last.Config, in.facts(plan.Records{}), objects).Plan
		records = plan.Records{Goal: was.Goal, WasOn: was.Goal == plan.GoalKarpenter, Params: last.Effective, Applied: map[string]string{}}
		for _, step := range was.Steps {
			records.Applied[step.Name] = step.Fingerprint
		}
		before.Objects = func() ([]plan.Object, error) { return objects, nil }
	} else {
		before.Objects = func() ([]plan.Object, error) { return nil, nil }
	}
	parsed := params.Parse(params.Input{Rack: in.Rack, Params: in.Params, Previous: records.Params})
	verdict, err := judge.Judge(parsed, in.facts(records), before)
	if err != nil {
		return verdict, nil, err
	}
	return verdict, verdict.Plan.Due(records.Applied), nil
}

func (in input) facts(records plan.Records) plan.Facts {
	facts := in.Observed
	facts.Offline = true
	if in.Previous != nil {
		records.Claim, records.Credentials = facts.Records.Claim, facts.Records.Credentials
		facts.Records = records
	}
	return facts
}

// readFile reads a file, or stdin for "-".
func readFile(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(os.Stdin)
	}
	return os.ReadFile(name)
}
