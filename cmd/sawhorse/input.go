package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/plan/nodes"
	"github.com/sawhorse-io/sawhorse/internal/validation"
)

// input is the input of check, render and plan.
type input struct {
	Rack   string            `json:"rack"`
	Params map[string]string `json:"params"`
	// Previous has the parameters as last applied; nil for a new rack.
	Previous map[string]string `json:"previous"`
	Observed plan.Facts        `json:"observed"`
}

// inputFields are the names of an input's fields, for suggestions after a typing error.
var inputFields = []string{"rack", "params", "previous", "observed"}

// byteOrderMark is what editors for Windows begin a file with.
var byteOrderMark = []byte("\ufeff")

// readInput parses one input strictly.
func readInput(text []byte) (input, error) {
	var in input
	text = bytes.TrimPrefix(text, byteOrderMark)
	fields, err := object(text)
	if err != nil {
		return in, fmt.Errorf("the input cannot be read as a JSON object: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(inputFields, name) {
			return in, fmt.Errorf("the input has the field %q; %s", name, instead(name, inputFields))
		}
	}
	if rack := fields["rack"]; rack == nil || string(rack) == "null" {
		return in, errors.New("the input has no rack; write {\"rack\": \"prod\", \"params\": {…}}")
	}
	if err := json.Unmarshal(fields["rack"], &in.Rack); err != nil {
		return in, fmt.Errorf("the input's rack%w", explained(err))
	}
	for _, named := range []struct {
		name string
		into *map[string]string
	}{{"params", &in.Params}, {"previous", &in.Previous}} {
		if *named.into, err = texts(named.name, fields[named.name]); err != nil {
			return in, err
		}
	}
	if in.Observed, err = observed(fields["observed"]); err != nil {
		return in, fmt.Errorf("the input's observed%w", explained(err))
	}
	if c := in.Observed.Cluster; c != nil && c.Name == "" { // it is known without the fact
		c.Name = params.Parse(params.Input{Rack: in.Rack, Params: in.Params}).Config.ClusterName
	}
	return in, nil
}

// instead returns the suggestion for an unknown field: the known name that it resembles, or else all known names.
func instead(name string, known []string) string {
	return params.DidYouMean(name, known, "allowed are "+strings.Join(known, ", "))
}

// object parses one JSON object with nothing after it. A duplicate name is an error here, although JSON allows it.
func object(text []byte) (map[string]json.RawMessage, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	switch start, err := decoder.Token(); {
	case errors.Is(err, io.EOF):
		return nil, errors.New("it is empty")
	case err != nil:
		return nil, err
	case start != json.Delim('{'):
		return nil, errors.New("it does not begin with {")
	}
	fields := map[string]json.RawMessage{}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return nil, ended(err)
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return nil, ended(err)
		}
		if _, twice := fields[name.(string)]; twice {
			return nil, fmt.Errorf("it has %q twice; keep one of them", name)
		}
		fields[name.(string)] = value
	}
	if _, err := decoder.Token(); err != nil {
		return nil, ended(err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows its end")
	}
	return fields, nil
}

func ended(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it ends too early")
	}
	return err
}

// texts parses parameters by name. It returns nil if there are none.
func texts(field string, raw json.RawMessage) (map[string]string, error) {
	if raw == nil || string(raw) == "null" {
		return nil, nil
	}
	values, err := object(raw)
	if err != nil {
		return nil, fmt.Errorf("the input's %s cannot be read as a JSON object of names and texts: %w", field, err)
	}
	all := make(map[string]string, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		var text string
		if err := json.Unmarshal(values[name], &text); err != nil {
			return nil, fmt.Errorf("the input's %s.%s%w; write %s", field, plain(name), explained(err), inQuotes(values[name]))
		}
		all[name] = text
	}
	return all, nil
}

// plain returns a text of somebody else's, such as a name from user input, on one line.
func plain(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}

// inQuotes returns a JSON value as the text that it should have been.
func inQuotes(value json.RawMessage) string {
	const most = 100
	var compact bytes.Buffer
	if json.Compact(&compact, value) != nil || compact.Len() > most {
		return "it in quotes"
	}
	quoted, err := encode(compact.String(), "")
	if err != nil {
		return "it in quotes"
	}
	return strings.TrimSpace(string(quoted))
}

// explained rewrites an error about a wrong JSON type as the end of a sentence that begins with the field's parent.
func explained(err error) error {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return err
	}
	path := ""
	if wrong.Field != "" {
		path = "." + wrong.Field
	}
	is := map[string]string{"array": "an array", "object": "an object", "string": "text", "bool": "a bool", "number": "a number"}[wrong.Value]
	allowed := map[reflect.Kind]string{
		reflect.String: "text", reflect.Bool: "true or false", reflect.Int: "a whole number",
		reflect.Slice: "an array", reflect.Map: "an object", reflect.Struct: "an object",
	}[wrong.Type.Kind()]
	return fmt.Errorf("%s is %s; allowed is %s", path, cmp.Or(is, wrong.Value), allowed)
}

// result validates an input as a pass would. Facts that were not observed are unknown.
func (in input) result() validation.Result { return validation.Validate(in.judged(in.applied())) }

// judged returns the input as a pass would judge it. All manifests are checked.
func (in input) judged(last applied) validation.Input {
	parsed := params.Parse(params.Input{Rack: in.Rack, Params: in.Params, Previous: last.records.Params})
	facts := in.facts(last.records)
	facts.Records.Checked = ""
	judged := validation.Input{Parsed: parsed, Facts: facts}
	if in.Previous != nil {
		judged.InForce = &last.plan
	}
	return judged
}

// applied is what a pass with the previous parameters has applied.
type applied struct {
	records plan.Records
	plan    plan.Plan
}

// applied computes the plan and the records of the previous parameters. It does not validate them, so it also accepts
// parameters that would be rejected today.
func (in input) applied() applied {
	if in.Previous == nil {
		return applied{}
	}
	last := params.Parse(params.Input{Rack: in.Rack, Params: in.Previous})
	ran := plan.Records{WasOn: last.Config.Enabled}
	ran.Karpenter.Version = plan.Target(last.Config, plan.Facts{}).Version // also on a Kubernetes that it would not be installed on
	facts := in.facts(ran)
	was := plan.Build(last.Config, facts, nodes.Compile(last.Config, facts).Objects()).Plan
	records := plan.Records{Goal: was.Goal, WasOn: was.Goal == plan.GoalKarpenter, Params: last.Effective}
	if records.WasOn {
		records.Karpenter = plan.KarpenterRecord{Version: ran.Karpenter.Version, CRDs: was.Controller.CRDs.Version}
	}
	return applied{records, was}
}

func (in input) facts(records plan.Records) plan.Facts {
	facts := in.Observed
	facts.Offline, facts.Now, facts.Deployment = true, time.Now(), plan.Deployment{RequireClusterTag: true, Unknown: true}
	if in.Previous != nil {
		records.ClusterLock, records.Credentials = facts.Records.ClusterLock, facts.Records.Credentials
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

// called returns the name that messages use for a file.
func called(name string) string {
	if name == "-" {
		return "stdin"
	}
	return name
}
