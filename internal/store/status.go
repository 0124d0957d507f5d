package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/canonical"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/params"
)

// MaxStatus is the largest size of the status parameter in bytes: the limit of SSM's standard tier.
const MaxStatus = 4096

// Status is the rack's status for the operator.
type Status struct {
	Rack       string        `json:"rack"`
	State      outcome.State `json:"state"`
	Generation int64         `json:"generation"`
	Goal       string        `json:"goal,omitempty"`
	// Karpenter is the version of Karpenter in force: the one whose controller worked last.
	Karpenter string `json:"karpenter,omitempty"`
	// Time is when the pass ended (RFC 3339, UTC), DurationSeconds how long it took. Generation, Time, DurationSeconds,
	// Execution and Changed belong to the pass that first had this status. A later pass with the same findings and no
	// changes does not write it again, unless it failed.
	Time            string           `json:"time"`
	DurationSeconds float64          `json:"durationSeconds"`
	Execution       string           `json:"execution"`
	Problems        []params.Problem `json:"problems,omitempty"`
	Warnings        []params.Problem `json:"warnings,omitempty"`
	Failure         *Failure         `json:"failure,omitempty"`
	// Change is what became of the last change of several parameters.
	Change *ChangeStatus `json:"change,omitempty"`
	// Snapshot is the rack's last snapshot, or nil if there is none.
	Snapshot *SnapshotRef `json:"snapshot,omitempty"`
	// Steps are the steps that a pass would run that is paused or held.
	Steps []string `json:"steps,omitempty"`
	// Brakes are the parameters whose brake is in force: karpenter_freeze if the freeze lies over all NodePools, paused if
	// passes change nothing, hold if they change nothing because of the stack's hold. A warning then has its reason.
	Brakes []string `json:"brakes,omitempty"`
	// Effects has sentences about the changes to the pools and their nodes.
	Effects []string `json:"effects,omitempty"`
	Changed []string `json:"changed,omitempty"`
	// Rollout and Pools say how far the nodes have followed the parameters. Only the status parameter has them, from
	// With: they change without a pass.
	Rollout *Progress `json:"rollout,omitempty"`
	Pools   Pools     `json:"pools,omitempty"`
	// Migrating says how far migrate_node_groups has come, and Waiting what pods wait for. Only the status parameter has them.
	Migrating *Migrating `json:"migrating,omitempty"`
	Waiting   Waiting    `json:"waiting,omitempty"`
	// Latest says which images the aliases @latest are that pools follow. Only the status parameter has it.
	Latest []LatestImage `json:"latest,omitempty"`
	// Running is a pass under way that waits. Only the status parameter has it, until the pass reports its end.
	Running *Running `json:"running,omitempty"`
	// Incidents are the Warnings that tell what happened in the pass. They are kept in the rack's record only: a later
	// pass that does not find them again has nothing new to say.
	Incidents []params.Problem `json:"-"`
	// Omitted is the number of problems, warnings, pools and changes that did not fit. They are complete in the rack's
	// records.
	Omitted int `json:"omitted,omitempty"`
}

// Failure says why a pass failed and what to do about it.
type Failure struct {
	Step   string `json:"step,omitempty"`
	Error  string `json:"error"`
	Reason string `json:"reason"`
	Remedy string `json:"remedy"`
}

// Running describes a pass that has not ended.
type Running struct {
	Execution string    `json:"execution"`
	Started   time.Time `json:"started"`
	// Step is the current step, Since the time at which it began, and Note what it waits for.
	Step  string    `json:"step,omitempty"`
	Since time.Time `json:"since,omitzero"`
	Note  string    `json:"note,omitempty"`
}

// Text encodes the status for the parameter, in at most MaxStatus bytes. The note of what runs takes only the room that the rest leaves;
// the rest makes room for what runs without it.
func (s Status) Text() (string, error) {
	running := s.Running
	s.Running = nil
	alone, err := s.fitted()
	if err != nil || running == nil {
		return string(canonical.JSON(alone)), err
	}
	if text := alone.beside(*running); text != "" {
		return text, nil
	}
	bare := *running
	bare.Note, s.Running = "", &bare
	if with, err := s.fitted(); err == nil {
		return string(canonical.JSON(with)), nil
	}
	return string(canonical.JSON(alone)), nil
}

// beside encodes a status that fits together with what runs. It halves the note until both fit, and returns "" if there is no room for
// it at all.
func (s Status) beside(running Running) string {
	s.Running = &running
	for {
		encoded := canonical.JSON(s)
		switch {
		case len(encoded) <= MaxStatus:
			return string(encoded)
		case running.Note == "":
			return ""
		case len(running.Note) <= shortest:
			running.Note = ""
		default:
			running.Note = outcome.ShortenTo(len(running.Note)/2, running.Note)
		}
	}
}

// fitted returns what of the status fits into MaxStatus bytes. It leaves out changes first, then effects, then
// pools without anything to tell, warnings, the other pools, all waits but one, and all problems but one, of the rack and of
// its last change. If
// that is too long, it cuts the longest text, because a path can be as long as the operator's input. Without that, an
// outdated status would stay in place.
func (s Status) fitted() (Status, error) {
	for {
		encoded := canonical.JSON(s)
		if len(encoded) <= MaxStatus {
			return s, nil
		}
		excess, quiet := len(encoded)-MaxStatus, slices.IndexFunc(s.Pools, Pool.quiet)
		switch {
		case len(s.Changed) > 0:
			s.Changed = events.Shorten(s.Changed, 0, &excess, &s.Omitted)
		case len(s.Effects) > 0:
			s.Effects = events.Shorten(s.Effects, 0, &excess, &s.Omitted)
		case quiet >= 0: // those with something to tell are before them
			s.Pools = events.Shorten(s.Pools, quiet, &excess, &s.Omitted)
		case len(s.Warnings) > 0:
			s.Warnings = events.Shorten(s.Warnings, 0, &excess, &s.Omitted)
		case len(s.Pools) > 0:
			s.Pools = events.Shorten(s.Pools, 0, &excess, &s.Omitted)
		case len(s.Waiting) > 1:
			s.Waiting = events.Shorten(s.Waiting, 1, &excess, &s.Omitted)
		case len(s.Problems) > 1:
			s.Problems = events.Shorten(s.Problems, 1, &excess, &s.Omitted)
		case s.Change != nil && len(s.Change.Problems) > 1:
			change := *s.Change
			change.Problems = events.Shorten(change.Problems, 1, &excess, &s.Omitted)
			s.Change = &change
		case s.cut():
		default:
			return s, fmt.Errorf("rack %s: the status does not fit into %d bytes", s.Rack, MaxStatus)
		}
	}
}

// shortest is the length in bytes up to which a text is not cut. JSON encodes some bytes as six, and there are at most
// nine texts, of which only one is that of a failure's error.
const shortest = 100

// cut halves the longest text of the remaining failure and problem, without splitting a character. It returns false if
// no text is long. It works on copies, because others use the full texts.
func (s *Status) cut() bool {
	s.Problems = slices.Clone(s.Problems)
	texts := textsOf(s.Problems)
	if s.Change != nil {
		change := *s.Change
		s.Change, change.Problems = &change, slices.Clone(change.Problems)
		texts = append(texts, textsOf(change.Problems)...)
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
	*texts[0] = strings.ToValidUTF8((*texts[0])[:len(*texts[0])/2], "") + "…"
	return true
}

func textsOf(problems []params.Problem) (texts []*string) {
	for i := range problems {
		texts = append(texts, &problems[i].Parameter, &problems[i].Path, &problems[i].Message)
	}
	return texts
}

// Digest returns a hash of validate's findings, which shows whether the status already has them if a pass has nothing
// to do. steps are the names of the steps that a paused pass would run.
func Digest(state outcome.State, run Run, steps []string) string {
	findings := []any{state, run.Goal, strings.Join(steps, " "), run.Problems, run.Warnings, run.Change}
	if run.Paused || run.Freeze != nil && *run.Freeze {
		findings = append(findings, run.Paused, run.Freeze)
	}
	return digestOf(canonical.JSON(findings))
}

// Reported is the record of the last report.
type Reported struct {
	// Findings is the Digest of the findings in the status, or "" if there is no status.
	Findings string
	// Generation is the generation of the report, or 0 if there is none.
	Generation int64
	// Since is the last generation that was reported before the pass of this report. All iterations of a pass are
	// reported together, even if one of them has been reported already. Changes is the number of changes reported so
	// far.
	Since   int64
	Changes int
	// Values is the Digest of the settings in the last snapshot, and Snapshot its number. They are "" and 0 if there is none.
	Values   string
	Snapshot int64
	// Running reports whether the status parameter may have a pass that runs.
	Running bool
	// content is the digest of the status that was last written, without its time, pass and changes. text is the digest of
	// its text in the parameter.
	content, text string
	// execution is that of the report.
	execution string
	// values has the status itself.
	values item
}

// Reported reads the record of the last report.
func (s *Store) Reported(ctx context.Context, rack string) (Reported, error) {
	values, err := s.get(ctx, key(rack, "status"))
	return Reported{
		Findings: stringOf(values, "digest"), Generation: numberOf(values, "generation"),
		Since: numberOf(values, "since"), Changes: int(numberOf(values, "changes")),
		Values: stringOf(values, "values"), Snapshot: numberOf(values, "snapshot"), Running: stringOf(values, "running") != "",
		content: stringOf(values, "told"), text: stringOf(values, "text"), execution: stringOf(values, "execution"), values: values,
	}, wrap(err, "rack %s: read status record", rack)
}

// By returns the record for a report by the pass of an execution. served is the lease's Served.
func (t Reported) By(execution string, served int64) Reported {
	if t.execution != execution {
		t.Since, t.Changes = max(t.Generation, served), 0
	}
	return t
}

// Status returns the complete status of the report, or nil if there is none.
func (t Reported) Status() (*Status, error) {
	if t.values["status"] == nil {
		return nil, nil
	}
	status := &Status{}
	err := unpack(t.values, "status", status)
	if err == nil && t.values["incidents"] != nil {
		err = unpack(t.values, "incidents", &status.Incidents)
	}
	if err != nil {
		return nil, fmt.Errorf("decode status of generation %d: %w", t.Generation, err)
	}
	return status, nil
}

// Same reports whether the status that was last written is this one, ignoring time and pass.
func (t Reported) Same(status Status) bool {
	return len(status.Changed) == t.Changes && t.content == status.content()
}

// Wrote returns the record after a report has written the text of a status.
func (t Reported) Wrote(status Status, text string) Reported {
	t.content, t.text = status.content(), digestOf([]byte(text))
	return t
}

// Published reports whether a text is that of the status parameter as it was last written. Parameter Store may return an
// older text for a second, so a text that agrees proves nothing unless Same agrees too.
func (t Reported) Published(text string) bool { return t.text == digestOf([]byte(text)) }

// ClearPublished clears what is recorded about the status parameter before it is written. If the report is stopped after the
// write, the next one must not rely on the old record.
func (s *Store) ClearPublished(ctx context.Context, rack string) error {
	return wrap(s.update(ctx, key(rack, "status"), "REMOVE told", "", nil), "rack %s: update status record", rack)
}

// NoteRunning records that the status parameter is about to have a pass that runs. The next SaveStatus ends that. What is
// recorded of the last report stays as it is.
func (s *Store) NoteRunning(ctx context.Context, rack, execution string) error {
	err := s.update(ctx, key(rack, "status"), "SET #running = :me", "", item{":me": text(execution)})
	return wrap(err, "rack %s: update status record", rack)
}

// content is a digest of a status without its time, pass and changes.
func (s Status) content() string {
	s.Generation, s.Time, s.DurationSeconds, s.Execution, s.Changed = 0, "", 0, "", nil
	return digestOf(canonical.JSON(s))
}

func digestOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// SaveStatus stores the complete status, including what does not fit into the parameter, and the record of what the
// parameter has.
func (s *Store) SaveStatus(ctx context.Context, status Status, digest string, reported Reported) error {
	values := key(status.Rack, "status")
	values["digest"], values["generation"], values["status"] = text(digest), number(status.Generation), packed(status)
	if len(status.Incidents) > 0 {
		values["incidents"] = packed(status.Incidents)
	}
	values["told"], values["text"] = text(reported.content), text(reported.text)
	values["execution"], values["since"] = text(status.Execution), number(reported.Since)
	values["changes"] = number(int64(len(status.Changed)))
	values["values"], values["snapshot"] = text(reported.Values), number(reported.Snapshot)
	return wrap(s.put(ctx, values, nil), "rack %s: save status", status.Rack)
}
