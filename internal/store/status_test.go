package store

import (
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/params"
)

func large() Status {
	s := Status{Rack: "demo", State: outcome.StateRejected, Generation: 3, Time: "2026-01-02T03:04:05Z", Execution: "arn"}
	for range 50 {
		s.Problems = append(s.Problems, params.Problem{Parameter: "karpenter_cpu_limit", Message: strings.Repeat("p", 100)})
		s.Warnings = append(s.Warnings, params.Problem{Parameter: "karpenter_cpu_limit", Message: strings.Repeat("w", 100)})
		s.Changed = append(s.Changed, "role demo created")
		s.Effects = append(s.Effects, "pool a is created")
	}
	return s
}

func TestStatusFits(t *testing.T) {
	one := func(message string) []params.Problem {
		return []params.Problem{{Parameter: "karpenter_enabled", Message: message}}
	}
	for _, c := range []struct {
		what   string
		status Status
		// These are the least numbers of problems, warnings and changes that are left.
		problems, warnings, changed int
	}{
		{"small", Status{Rack: "demo", Problems: one("p"), Warnings: one("w"), Changed: []string{"c"}}, 1, 1, 1},
		{"too much of all", large(), 15, 0, 0},
		{"too many changes",
			Status{
				Rack: "demo", Problems: one("p"), Warnings: one("w"), Changed: large().Changed, Steps: []string{strings.Repeat("s", 3500)},
			}, 1, 1, 1},
		{"one problem that is too long", Status{Rack: "demo", Problems: one(strings.Repeat("p", 5000))}, 1, 0, 0},
		{"one problem with letters of two bytes", Status{Rack: "demo", Problems: one("p" + strings.Repeat("ü", 5000))}, 1, 0, 0},
		{"one problem with letters that JSON escapes", Status{Rack: "demo", Problems: one(strings.Repeat("<", 5000))}, 1, 0, 0},
		{"one warning that is too long", Status{Rack: "demo", Warnings: one(strings.Repeat("w", 5000))}, 0, 0, 0},
		{"a long reason",
			Status{Rack: "demo", Failure: &Failure{Error: "StepFailed", Reason: strings.Repeat("r", 5000), Remedy: "again"}}, 0, 0, 0},
		{"a long reason with letters of two bytes",
			Status{Rack: "demo", Failure: &Failure{Reason: "r" + strings.Repeat("ü", 5000)}}, 0, 0, 0},
		{"a long reason and a long problem",
			Status{Rack: "demo", Problems: one(strings.Repeat("p", 5000)), Failure: &Failure{Reason: strings.Repeat("<", 5000)}}, 1, 0, 0},
		{"a path that the operator made too long",
			Status{
				Rack: "demo", Problems: []params.Problem{
					{Parameter: "karpenter_config", Path: "ec2NodeClass." + strings.Repeat("k", 5000), Message: "unknown"},
				},
			}, 1, 0, 0},
		{"a parameter's name likewise",
			Status{
				Rack: "demo", Problems: []params.Problem{
					{Parameter: strings.Repeat("<", 1000), Path: strings.Repeat("<", 5000), Message: strings.Repeat("<", 5000)},
				},
			}, 1, 0, 0},
	} {
		t.Run(c.what, func(t *testing.T) {
			before, err := json.Marshal(c.status)
			must(t, err)
			text, err := c.status.Text()
			if err != nil {
				t.Fatal(err)
			}
			if len(text) > MaxStatus {
				t.Errorf("%d bytes", len(text))
			}
			var got Status
			must(t, json.Unmarshal([]byte(text), &got))
			if len(got.Problems) < c.problems || len(got.Warnings) < c.warnings || len(got.Changed) < c.changed {
				t.Errorf("%d problems, %d warnings, %d changes", len(got.Problems), len(got.Warnings), len(got.Changed))
			}
			left := len(got.Problems) + len(got.Warnings) + len(got.Changed) + len(got.Effects) + got.Omitted
			if all := len(c.status.Problems) + len(c.status.Warnings) + len(c.status.Changed) + len(c.status.Effects); left != all {
				t.Errorf("%d told and left out, %d there were", left, all)
			}
			if told := c.problems > 0 || c.status.Failure != nil; told && len(text) < min(len(before), MaxStatus)/4 {
				t.Errorf("%d bytes of %d are left: what went wrong is cut more than it must be", len(text), len(before))
			}
			if !utf8.ValidString(text) || strings.Contains(text, "\uFFFD") {
				t.Error("a letter was cut in two")
			}
			if after, err := json.Marshal(c.status); err != nil || string(after) != string(before) {
				t.Error("the status itself was cut, and with it the record and the event")
			}
		})
	}
}

// Problems are what the user must act on, so they are left out last. What has happened or will happen is left out before
// warnings.
func TestStatusLeavesOutChangesFirst(t *testing.T) {
	s := large()
	s.Problems = s.Problems[:10]
	text, err := s.Text()
	must(t, err)
	var got Status
	must(t, json.Unmarshal([]byte(text), &got))
	if len(got.Problems) != 10 || len(got.Warnings) == 0 || len(got.Changed)+len(got.Effects) > 0 ||
		!reflect.DeepEqual(got.Problems, s.Problems) {
		t.Errorf("%d problems, %d warnings, %d changes, %d effects", len(got.Problems), len(got.Warnings), len(got.Changed), len(got.Effects))
	}
}

func TestDigestTellsFindingsApart(t *testing.T) {
	a, b := []params.Problem{{Parameter: "a"}}, []params.Problem{{Parameter: "b"}}
	seen := map[string]string{}
	for what, digest := range map[string]string{
		"well": Digest(outcome.StateReconciled, Run{}, nil), "paused": Digest(outcome.StatePaused, Run{}, nil),
		"a": Digest(outcome.StateRejected, Run{Problems: a}, nil),
		"b": Digest(outcome.StateRejected, Run{Problems: b}, nil), "warning a": Digest(outcome.StateReconciled, Run{Warnings: a}, nil),
		"paused with a":     Digest(outcome.StatePaused, Run{Warnings: a}, nil),
		"another goal":      Digest(outcome.StateReconciled, Run{Goal: "access"}, nil),
		"paused with steps": Digest(outcome.StatePaused, Run{}, []string{"queue"}),
	} {
		if other, same := seen[digest]; same || digest == "" {
			t.Errorf("%s and %s have the same digest %q", what, other, digest)
		}
		seen[digest] = what
	}
}

// A pass that drains a large group reports thousands of changes. The work to leave most of them out does not grow with their
// square: a report has a minute, and the look at a rack 15 seconds.
func TestALongStatusIsShortenedAtOnce(t *testing.T) {
	status := Status{Rack: "demo", State: outcome.StateReconciled}
	for i := range 4000 {
		status.Changed = append(status.Changed, fmt.Sprintf("Pod/default/web-%d evicted", i))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	text, err := status.Text()
	runtime.ReadMemStats(&after)
	must(t, err)
	if allocated := (after.TotalAlloc - before.TotalAlloc) >> 20; allocated > 20 {
		t.Errorf("%d MB for a status of %d bytes", allocated, len(text))
	}
	var shown struct {
		Changed []string
		Omitted int
	}
	must(t, json.Unmarshal([]byte(text), &shown))
	if len(shown.Changed)+shown.Omitted != 4000 || len(text) > MaxStatus || len(text) < MaxStatus-100 {
		t.Errorf("%d changes and %d omitted in %d bytes", len(shown.Changed), shown.Omitted, len(text))
	}
}

// A status that is full of problems makes room for what runs, but not for its note.
func TestWhatRunsIsInAFullStatus(t *testing.T) {
	s := Status{Rack: "demo", Running: &Running{Execution: "arn:1", Step: "nodepools", Note: strings.Repeat("n", 500)}}
	for range 200 {
		s.Problems = append(s.Problems, params.NewProblem("tags", "", "something is wrong"))
	}
	text, err := s.Text()
	must(t, err)
	var got Status
	must(t, json.Unmarshal([]byte(text), &got))
	if len(text) > MaxStatus || got.Running == nil || got.Running.Step != "nodepools" || len(got.Problems)+got.Omitted != 200 {
		t.Errorf("%d bytes: %s", len(text), text)
	}
}

// What runs has the room that the rest leaves, and none of what is never cut.
func TestWhatRunsFitsBesideTheRest(t *testing.T) {
	running := &Running{Execution: "arn:aws:states:eu-central-1:123456789012:execution:Sawhorse-reconcile:1", Step: "nodepools"}
	for _, c := range []struct {
		what  string
		steps int // the length of a text that is never cut
		note  int
		// fits is whether what runs is there, and whole whether its note is complete.
		fits, whole bool
	}{
		{"room for all", 1000, 500, true, true},
		{"room for a part of the note", 3500, 500, true, false},
		{"no room", 3990, 500, false, false},
	} {
		s := Status{Rack: "demo", Steps: []string{strings.Repeat("s", c.steps)}}
		alone, err := s.Text()
		must(t, err)
		one := *running
		one.Note = strings.Repeat("ü", c.note/2)
		s.Running = &one
		text, err := s.Text()
		must(t, err)
		var got Status
		must(t, json.Unmarshal([]byte(text), &got))
		if len(text) > MaxStatus || (got.Running != nil) != c.fits || got.Omitted > 0 || !reflect.DeepEqual(got.Steps, s.Steps) ||
			!utf8.ValidString(text) {
			t.Errorf("%s: %d bytes: %s", c.what, len(text), text)
		}
		if c.fits && ((got.Running.Note == one.Note) != c.whole || got.Running.Execution != running.Execution) {
			t.Errorf("%s: %+v", c.what, got.Running)
		}
		if !c.fits && text != alone {
			t.Errorf("%s: %s, and alone it is %s", c.what, text, alone)
		}
		if len(one.Note) < c.note {
			t.Errorf("%s: the note itself was cut", c.what)
		}
	}
}
