package rack

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/sawhorse-io/sawhorse/internal/params"
)

// State is what became of a rack's parameters.
type State string

// The states of a rack.
const (
	// Reconciled: the rack is as its parameters say.
	Reconciled State = "Reconciled"
	// Rejected: the parameters cannot be applied; what was in force stays in force.
	Rejected State = "Rejected"
	// Failed: a step failed; the next event or the schedule tries again.
	Failed State = "Failed"
	// Paused: paused=true; what a pass would do is in Steps.
	Paused State = "Paused"
)

// MaxStatus is how long the status parameter may be, in bytes: SSM's standard tier.
const MaxStatus = 4096

// Status is the rack's status, as the operator reads it.
type Status struct {
	Rack       string `json:"rack"`
	State      State  `json:"state"`
	Generation int64  `json:"generation"`
	Goal       string `json:"goal,omitempty"`
	// Time is when the pass ended (RFC 3339, UTC), DurationSeconds how long it took.
	Time            string           `json:"time"`
	DurationSeconds float64          `json:"durationSeconds"`
	Execution       string           `json:"execution"`
	Problems        []params.Problem `json:"problems,omitempty"`
	Warnings        []params.Problem `json:"warnings,omitempty"`
	Failure         *Failure         `json:"failure,omitempty"`
	// Steps are what a paused pass would do.
	Steps []string `json:"steps,omitempty"`
	// Pools are sentences on what becomes of the pools and their nodes.
	Pools   []string `json:"pools,omitempty"`
	Changed []string `json:"changed,omitempty"`
	// Omitted counts the problems, warnings and changes that did not fit; they are complete in the rack's record and in the event.
	Omitted int `json:"omitted,omitempty"`
}

// Failure is why a pass failed and what to do about it.
type Failure struct {
	Step   string `json:"step,omitempty"`
	Error  string `json:"error"`
	Reason string `json:"reason"`
	Remedy string `json:"remedy"`
}

// shortest is how far a sentence is cut before the status gives up, in bytes.
const shortest = 200

// half is the first half of a sentence, not cut inside a letter.
func half(text string) string {
	end := len(text) / 2
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}

// Text is the status as the parameter holds it: at most MaxStatus bytes, leaving out changes first, then pools, then warnings, then
// problems but one; what is too long then is cut.
func (s Status) Text() (string, error) {
	for {
		encoded, err := json.Marshal(s)
		if err != nil {
			return "", fmt.Errorf("rack %s: encode status: %w", s.Rack, err)
		}
		if len(encoded) <= MaxStatus {
			return string(encoded), nil
		}
		switch {
		case len(s.Changed) > 0:
			s.Changed = s.Changed[:len(s.Changed)-1]
		case len(s.Pools) > 0:
			s.Pools = s.Pools[:len(s.Pools)-1]
		case len(s.Warnings) > 0:
			s.Warnings = s.Warnings[:len(s.Warnings)-1]
		case len(s.Problems) > 1:
			s.Problems = s.Problems[:len(s.Problems)-1]
		case s.Failure != nil && len(s.Failure.Reason) > shortest:
			failure := *s.Failure
			failure.Reason = half(failure.Reason)
			s.Failure = &failure
			continue
		case len(s.Problems) == 1 && len(s.Problems[0].Message) > shortest:
			problem := s.Problems[0]
			problem.Message = half(problem.Message)
			s.Problems = []params.Problem{problem}
			continue
		default:
			return "", fmt.Errorf("rack %s: the status does not fit into %d bytes", s.Rack, MaxStatus)
		}
		s.Omitted++
	}
}

// Digest tells two findings of validate apart, so that a pass that finds nothing to do knows whether the status says so already.
// steps are the names of those that a paused pass would take.
func Digest(state State, run Run, steps []string) string {
	encoded, err := json.Marshal([]any{state, run.Goal, strings.Join(steps, " "), run.Problems, run.Warnings})
	if err != nil {
		panic("rack: digest: " + err.Error()) // plain data always marshals
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:8])
}

// Reported is the Digest of the finding that the status tells; empty where there is no status.
func (s *Store) Reported(ctx context.Context, rack string) (string, error) {
	values, err := s.get(ctx, key(rack, "status"))
	return stringOf(values, "digest"), wrap(err, "rack %s: read status record", rack)
}

// Told is the generation of the status; 0 where there is none.
func (s *Store) Told(ctx context.Context, rack string) (int64, error) {
	values, err := s.get(ctx, key(rack, "status"))
	return numberOf(values, "generation"), wrap(err, "rack %s: read status record", rack)
}

// SaveStatus keeps the whole status, also what does not fit into the parameter.
func (s *Store) SaveStatus(ctx context.Context, status Status, digest string) error {
	encoded, err := packed(status)
	if err != nil {
		return fmt.Errorf("rack %s: encode status: %w", status.Rack, err)
	}
	values := key(status.Rack, "status")
	values["digest"], values["generation"], values["status"] = text(digest), number(status.Generation), encoded
	return wrap(s.put(ctx, values, nil), "rack %s: save status", status.Rack)
}
