package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

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
func (h Holding) Has(w Written) bool { return IsAsNew(h.Modified, !h.Modified.IsZero(), w) }

// ID tells one write of the hold from another.
func (h Holding) ID() string { return h.Modified.UTC().Format(time.RFC3339Nano) }

// ReadHold reads the hold. If the caller may not read it, the answer holds all racks. Any other failure is an error, which
// ends a pass before it changes anything: Lambda or the state machine tries again.
func ReadHold(ctx context.Context, reader VersionReader, paths ownership.Paths) (Holding, error) {
	written, err := ReadVersion(ctx, reader, paths.Hold())
	switch {
	case strings.HasPrefix(outcome.Code(err), "AccessDenied"):
		return Holding{Denied: err, Wrong: "it cannot be read (" + outcome.Code(err) +
			"); let the roles of Sawhorse's functions call ssm:GetParameter on it"}, nil
	case err != nil || written == nil:
		return Holding{}, err
	}
	read := Holding{Modified: written.Modified}
	if written.Secure {
		read.Wrong = "it is a SecureString, which Sawhorse must not decrypt; delete it, and write it as a String"
		return read, nil
	}
	if read.Hold, err = parseHold(written.Text); err != nil {
		read.Hold, read.Wrong = Hold{}, fmt.Sprintf(`its value %s is not understood: %v; write for example `+
			`{"racks": ["*"], "except": ["canary"], "reason": "upgrade"}, or delete the parameter to hold no rack`,
			params.Quoted(written.Text), err)
	}
	return read, nil
}

var holdFields = []string{"except", "racks", "reason"}

// parseHold reads the JSON of a hold strictly: what a stop switch may mean otherwise, it may not leave out.
func parseHold(text string) (Hold, error) {
	fields, flaw := params.JSONObject(text)
	if flaw != "" {
		return Hold{}, fmt.Errorf("it %s", flaw)
	}
	var h Hold
	var err error
	for _, name := range slices.Sorted(maps.Keys(fields)) { // of several mistakes, the same one each time
		value, is := fields[name], true
		switch name {
		case "racks":
			h.Racks, is = texts(value)
		case "except":
			h.Except, is = texts(value)
		case "reason":
			h.Reason, is = value.(string)
		default:
			err = cmp.Or(err, fmt.Errorf("%s is no field of it; %s", params.Quoted(name),
				params.DidYouMean(name, holdFields, "its fields are "+strings.Join(holdFields, ", "))))
		}
		if !is {
			err = cmp.Or(err, fmt.Errorf("%s is no %s", name, map[bool]string{true: "text", false: "array of names"}[name == "reason"]))
		}
	}
	if err != nil {
		return Hold{}, err
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

// texts returns the elements of a list of texts, and whether it is one.
func texts(value any) (all []string, is bool) {
	list, is := value.([]any)
	for _, element := range list {
		text, isText := element.(string)
		all, is = append(all, text), is && isText
	}
	return all, is
}

func notARack(field, name, or string) error {
	return fmt.Errorf("%s has %s, which is no name of a rack; it must be a-z first, then a-z, 0-9 and dashes, with no dash at the end%s",
		field, params.Quoted(name), or)
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
