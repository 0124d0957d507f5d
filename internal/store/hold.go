package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
)

// Hold is the JSON in the parameter /sawhorse/hold, which the operator of the stack writes: {"racks": ["*"], "except":
// ["canary"], "reason": "upgrade to 2.1"}. Passes plan and report for a held rack, and change nothing of it. While the
// parameter does not exist, no rack is held.
type Hold struct {
	// Racks are the names of the held racks. The name * stands for all. At least one is required.
	Racks []string
	// Except are names of racks that are not held although Racks has them.
	Except []string
	// Reason is for people. The status of each held rack has its first 300 characters.
	Reason string
}

// Holding is what was read of the hold.
type Holding struct {
	Hold
	// Wrong says why the parameter could not be read or understood; it is empty if it could. Such a hold holds all racks.
	Wrong string
	// Denied is the error of a caller who may not read the parameter.
	Denied error
	// Modified is when the parameter was last written. It is zero if there is none, or none that could be read.
	Modified time.Time
}

// All is the name in Hold.Racks that stands for all racks.
const All = "*"

// Of reports whether a rack is held.
func (h Holding) Of(rack string) bool {
	named := slices.Contains(h.Racks, All) || slices.Contains(h.Racks, rack)
	return h.Wrong != "" || named && !slices.Contains(h.Except, rack)
}

// Has reports whether the hold was read after a write to it.
func (h Holding) Has(w Written) bool { return isAsNew(h.Modified, !h.Modified.IsZero(), w) }

// ID tells one write of the hold from another.
func (h Holding) ID() string { return h.Modified.UTC().Format(time.RFC3339Nano) }

// HoldReader is the part of SSM's API that reading the hold needs.
type HoldReader interface {
	GetParameter(context.Context, *ssm.GetParameterInput, ...func(*ssm.Options)) (*ssm.GetParameterOutput, error)
}

// ReadHold reads the hold. If the caller may not read it, the answer holds all racks. Any other failure is an error, which
// ends a pass before it changes anything: Lambda or the state machine tries again.
func ReadHold(ctx context.Context, reader HoldReader, paths ownership.Paths) (Holding, error) {
	place := paths.Hold()
	out, err := reader.GetParameter(ctx, &ssm.GetParameterInput{Name: &place})
	switch {
	case errors.As(err, new(*types.ParameterNotFound)):
		return Holding{}, nil
	case strings.HasPrefix(outcome.Code(err), "AccessDenied"):
		return Holding{Denied: err, Wrong: "it cannot be read (" + outcome.Code(err) +
			"); let the roles of Sawhorse's functions call ssm:GetParameter on it"}, nil
	case err != nil:
		return Holding{}, fmt.Errorf("parameter %s: read: %w", place, err)
	}
	read := Holding{Modified: aws.ToTime(out.Parameter.LastModifiedDate)}
	if out.Parameter.Type == types.ParameterTypeSecureString {
		read.Wrong = "it is a SecureString, which Sawhorse must not decrypt; delete it, and write it as a String"
		return read, nil
	}
	if read.Hold, err = parseHold(*out.Parameter.Value); err != nil {
		read.Hold, read.Wrong = Hold{}, fmt.Sprintf(`its value %s is not understood: %v; write for example `+
			`{"racks": ["*"], "except": ["canary"], "reason": "upgrade"}, or delete the parameter to hold no rack`,
			params.Quoted(*out.Parameter.Value), err)
	}
	return read, nil
}

var holdFields = []string{"except", "racks", "reason"}

// parseHold reads the JSON of a hold strictly: what a stop switch may mean otherwise, it may not leave out.
func parseHold(text string) (Hold, error) {
	fields, err := objectOf(text)
	if err != nil {
		return Hold{}, err
	}
	var h Hold
	for _, one := range []struct {
		name, allowed string
		into          any
	}{
		{"racks", "an array of names of racks, or of *", &h.Racks},
		{"except", "an array of names of racks", &h.Except},
		{"reason", "text", &h.Reason},
	} {
		if value, there := fields[one.name]; there && (string(value) == "null" || json.Unmarshal(value, one.into) != nil) {
			return Hold{}, fmt.Errorf("%s is %s; it must be %s", one.name, outcome.ShortenTo(100, string(value)), one.allowed)
		}
	}
	if len(h.Racks) == 0 {
		return Hold{}, errors.New("racks names no rack; it must have names of racks, or * for all")
	}
	for _, name := range h.Racks {
		if name != All && !ownership.ValidRack(name) {
			return Hold{}, notARack("racks", name, ", or *")
		}
	}
	for _, name := range h.Except {
		if !ownership.ValidRack(name) {
			return Hold{}, notARack("except", name, "")
		}
	}
	return h, nil
}

func notARack(field, name, or string) error {
	return fmt.Errorf("%s has %s, which is no name of a rack; it must be a-z first, then a-z, 0-9 and dashes, with no dash at the end%s",
		field, params.Quoted(name), or)
}

// objectOf reads a JSON object of the fields of a hold, each at most once.
func objectOf(text string) (map[string]json.RawMessage, error) {
	decoder := json.NewDecoder(strings.NewReader(text))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return nil, errors.New("it is no JSON object")
	}
	fields := map[string]json.RawMessage{}
	for decoder.More() {
		var value json.RawMessage
		token, err := decoder.Token()
		name, _ := token.(string)
		if err == nil {
			err = decoder.Decode(&value)
		}
		switch _, twice := fields[name]; {
		case err != nil:
			return nil, fmt.Errorf("it is no JSON: %w", err)
		case twice:
			return nil, fmt.Errorf("%s is there twice; keep one of them", params.Quoted(name))
		case !slices.Contains(holdFields, name):
			return nil, fmt.Errorf("%s is no field of it; %s", params.Quoted(name),
				params.DidYouMean(name, holdFields, "its fields are "+strings.Join(holdFields, ", ")))
		}
		fields[name] = value
	}
	if _, err := decoder.Token(); err != nil { // the brace at its end
		return nil, fmt.Errorf("it is no JSON: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is text after the JSON object")
	}
	return fields, nil
}

// maxReason is how much of a hold's reason a status has. The status has room for 4 KB.
const maxReason = 300

// Advice returns the warning of a held rack; none if it is not held. off means that Karpenter is to be turned off.
func (h Holding) Advice(paths ownership.Paths, rack string, off bool) []params.Problem {
	if !h.Of(rack) {
		return nil
	}
	ends := "passes change nothing of it until the hold is deleted or no longer names it"
	if off {
		ends += ", and do not turn Karpenter off before that"
	}
	if h.Wrong != "" {
		return []params.Problem{params.NewProblem(paths.Hold(), "", "all racks are held, because %s: %s", h.Wrong, ends)}
	}
	reason := h.Reason
	if reason == "" {
		reason = "no reason given"
	}
	return []params.Problem{params.NewProblem(paths.Hold(), "", "the rack is held (%s): %s", outcome.ShortenTo(maxReason, reason), ends)}
}
