package rack

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

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
	// Time is when the pass ended (RFC 3339, UTC), DurationSeconds how long it took. Generation, Time, DurationSeconds, Execution and
	// Changed are those of the pass that said this first: a later one that finds the same and changes nothing does not write it again.
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

// Text is the status as the parameter holds it: at most MaxStatus bytes, leaving out changes first, then pools, then warnings, then
// problems but one. What is too long then is cut, the longest text first: a path can be as long as what the operator wrote, and a
// status that could not be written would leave an earlier one standing.
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
		case s.cut():
			continue
		default:
			return "", fmt.Errorf("rack %s: the status does not fit into %d bytes", s.Rack, MaxStatus)
		}
		s.Omitted++
	}
}

// shortest is how far a text is cut, in bytes. JSON makes six bytes of some letters, and there are six texts at most.
const shortest = 100

// cut halves the longest text of the failure and the problem that are left, not inside a letter; false where none is long. What s
// points to belongs to others, who want it whole.
func (s *Status) cut() bool {
	s.Problems = slices.Clone(s.Problems)
	var texts []*string
	for i := range s.Problems {
		texts = append(texts, &s.Problems[i].Parameter, &s.Problems[i].Path, &s.Problems[i].Message)
	}
	if s.Failure != nil {
		failure := *s.Failure
		s.Failure = &failure
		texts = append(texts, &failure.Error, &failure.Reason, &failure.Remedy)
	}
	slices.SortFunc(texts, func(a, b *string) int { return len(*b) - len(*a) })
	if len(texts) == 0 || len(*texts[0]) <= shortest {
		return false
	}
	text := *texts[0]
	end := len(text) / 2
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	*texts[0] = text[:end] + "…"
	return true
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

// Told is what is known of the last report.
type Told struct {
	// Generation is that of the report; 0 where there is none.
	Generation int64
	// Since is the generation up to which all was told before the pass that the report is of: what its rounds did is told together,
	// also after one of them has been reported. Changes is how many it has told of.
	Since   int64
	Changes int
	// written is when the status parameter was written last, and what is the news of the status that it was written with.
	written time.Time
	what    string
}

// Told reads what is known of the last report, for one of the pass of an execution. served is what the rack's lease counts as served.
func (s *Store) Told(ctx context.Context, rack, execution string, served int64) (Told, error) {
	values, err := s.get(ctx, key(rack, "status"))
	told := Told{
		Generation: numberOf(values, "generation"), Since: numberOf(values, "since"), Changes: int(numberOf(values, "changes")),
		written: time.Unix(numberOf(values, "written"), 0), what: stringOf(values, "told"),
	}
	if stringOf(values, "execution") != execution {
		told.Since, told.Changes = max(told.Generation, served), 0
	}
	return told, wrap(err, "rack %s: read status record", rack)
}

// staleStatus is when a status is written again that says nothing new: one that somebody has deleted or written over comes back.
const staleStatus = 24 * time.Hour

// Says reports whether the status parameter says all of this status already, but for when and by which pass. SSM takes 3 writes a
// second from the whole account.
func (t Told) Says(status Status, now time.Time) bool {
	return len(status.Changed) == t.Changes && t.what == status.news() && now.Sub(t.written) < staleStatus
}

// Wrote is what is known once a report has written the status parameter.
func (t Told) Wrote(status Status, now time.Time) Told {
	t.written, t.what = now, status.news()
	return t
}

// Untell notes that nobody knows what the status parameter says: it is about to be written, and a report that is stopped behind that
// must not have the next one believe what was noted before.
func (s *Store) Untell(ctx context.Context, rack string) error {
	_, err := s.DB.UpdateItem(ctx, &dynamodb.UpdateItemInput{TableName: &s.Name, Key: key(rack, "status"), UpdateExpression: new("REMOVE told, written")})
	return wrap(err, "rack %s: update status record", rack)
}

// news is a digest of what a status says, but for when, by which pass, and what the pass changed.
func (s Status) news() string {
	s.Generation, s.Time, s.DurationSeconds, s.Execution, s.Changed = 0, "", 0, "", nil
	encoded, err := json.Marshal(s)
	if err != nil {
		panic("rack: status: " + err.Error()) // plain data always marshals
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:8])
}

// SaveStatus keeps the whole status, also what does not fit into the parameter, and what the parameter was told.
func (s *Store) SaveStatus(ctx context.Context, status Status, digest string, told Told) error {
	encoded, err := packed(status)
	if err != nil {
		return fmt.Errorf("rack %s: encode status: %w", status.Rack, err)
	}
	values := key(status.Rack, "status")
	values["digest"], values["generation"], values["status"] = text(digest), number(status.Generation), encoded
	values["told"], values["written"] = text(told.what), number(told.written.Unix())
	values["execution"], values["since"], values["changes"] = text(status.Execution), number(told.Since), number(int64(len(status.Changed)))
	return wrap(s.put(ctx, values, nil), "rack %s: save status", status.Rack)
}
