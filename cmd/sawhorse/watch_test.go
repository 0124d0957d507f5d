package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

// settled returns a stage on which a write was reconciled an hour ago.
func settled(t *testing.T, state outcome.State) *stage {
	s := newStage(t)
	s.parameter("karpenter_enabled", 1)
	e := s.begins("first").reads("Planned", true, "nodepools").takes("nodepools", "done", "")
	e.ends()
	s.reports(e, state)
	s.now = s.now.Add(time.Hour)
	return s
}

// concludes checks for an error with a text, or for no error.
func concludes(t *testing.T, err error, text string) {
	t.Helper()
	if (err == nil) != (text == "") || err != nil && !strings.Contains(err.Error(), text) {
		t.Errorf("ends with %v, want %q", err, text)
	}
}

func TestWatchFollowsAPass(t *testing.T) {
	t.Parallel()
	s := settled(t, outcome.StateReconciled)
	s.parameter("karpenter_enabled", 2)
	e := s.begins("second")
	s.acts = []func(){
		func() { e.reads("Planned", true, "queue", "nodepools").takes("queue", "done", "") },
		func() { s.coalesces("beside it"); e.takes("nodepools", "wait", "one node\n is draining") },
		func() { e.takes("nodepools", "wait", "one node\nis  draining").takes("nodepools", "done", "") },
		func() { s.reports(e, outcome.StateReconciled); e.ends() },
	}
	lines, seconds, end := s.watched()
	want := []string{
		"09:50:01  validate             Planned, 2 steps", "09:50:01  queue                done",
		"09:50:02  nodepools            wait  one node is draining", "09:50:03  nodepools            done",
	}
	if !slices.Equal(lines, want) || seconds != 4 {
		t.Errorf("%.0f s, %q", seconds, lines)
	}
	concludes(t, end, "")
}

// A write that changes nothing, or is rejected for the same reason, leaves the status as it was. The result is the pass
// that saw the write, even if it ended before watch began.
func TestWatchTellsOfAPassThatChangedNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		state               outcome.State
		outcome, line, ends string
	}{
		{outcome.StateReconciled, "Unchanged", "Unchanged, nothing to do and nothing new to say", ""},
		{outcome.StateRejected, "Rejected", "Rejected, for what the status says already", "rack prod is Rejected"},
		{outcome.StatePaused, "Paused", "Paused, 0 steps due, as the status says already", ""},
	} {
		s := settled(t, c.state)
		s.parameter("karpenter_enabled", 2)
		s.begins("second").reads(c.outcome, false).ends()
		lines, seconds, end := s.watched()
		if want := []string{"09:50:00  validate             " + c.line}; !slices.Equal(lines, want) || seconds > lag.Seconds() {
			t.Errorf("%s: %.0f s, %q", c.outcome, seconds, lines)
		}
		concludes(t, end, c.ends)
	}
}

// The output shows that a step is still running, also if it reports nothing new for minutes.
func TestWatchIsNotSilent(t *testing.T) {
	t.Parallel()
	s := settled(t, outcome.StateReconciled)
	s.parameter("karpenter_enabled", 2)
	e := s.begins("second")
	s.acts = append([]func(){func() { e.reads("Planned", true, "access").takes("access", "wait", "EKS changes it") }}, make([]func(), 29)...)
	s.acts = append(s.acts, func() { s.reports(e.takes("access", "done", ""), outcome.StateReconciled); e.ends() })
	lines, _, end := s.watched()
	want := []string{
		"09:50:01  validate             Planned, 1 step", "09:50:01  access               wait  EKS changes it",
		"09:50:13  access               goes on, since 09:50:01  EKS changes it",
		"09:50:25  access               goes on, since 09:50:01  EKS changes it",
		"09:50:31  access               done",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("%q", lines)
	}
	concludes(t, end, "")
}

// A pass that read the parameters before the write does not count, also if it ends after the write.
func TestWatchWaitsForTheWriteToBeSeen(t *testing.T) {
	t.Parallel()
	s := settled(t, outcome.StateReconciled)
	e := s.begins("second").reads("Unchanged", false)
	s.parameter("karpenter_enabled", 2)
	s.parameter("node_disk", 1)
	var next *execution
	s.acts = []func(){
		e.ends, nil, nil, nil, nil,
		func() { next = s.begins("third") },
		func() { s.reports(next.reads("Rejected", true), outcome.StateRejected); next.ends() },
	}
	lines, seconds, end := s.watched()
	if len(lines) != 2 || !strings.HasSuffix(lines[1], " Rejected") || seconds != 7 {
		t.Errorf("%.0f s, %q", seconds, lines)
	}
	concludes(t, end, "rack prod is Rejected")
}

// A short pass may begin and end between two polls.
func TestWatchFindsAPassThatItHasNotFollowed(t *testing.T) {
	t.Parallel()
	s := settled(t, outcome.StateReconciled)
	e := s.begins("second").reads("Unchanged", false)
	s.parameter("karpenter_enabled", 2)
	s.acts = []func(){e.ends, func() { s.begins("third").reads("Unchanged", false).ends() }}
	lines, seconds, end := s.watched()
	if concludes(t, end, ""); len(lines) != 2 || seconds > 2+lag.Seconds() {
		t.Errorf("%.0f s, %q", seconds, lines)
	}
}

// Versions are compared, and not times. A parameter that was deleted or created since has not been seen. The versions of
// one that was created again start at 1.
func TestWhatAPassHasNotSeen(t *testing.T) {
	t.Parallel()
	p := pass{versions: map[string]int64{"a": 1, "b": 7, "c": 2}}
	for _, c := range []struct {
		is   map[string]int64
		want string
	}{
		{map[string]int64{"a": 1, "b": 7, "c": 2}, ""},
		{map[string]int64{"a": 2, "b": 7, "c": 2}, "a version 2"},
		{map[string]int64{"a": 1, "b": 1, "d": 1}, "b version 1, c deleted, d version 1"},
		{nil, "a deleted, b deleted, c deleted"},
	} {
		if got := strings.Join(p.unseen(c.is), ", "); got != c.want {
			t.Errorf("%v: %q, want %q", c.is, got, c.want)
		}
	}
	if got := (&pass{}).unseen(map[string]int64{"a": 1}); got != nil {
		t.Errorf("a pass that does not tell what it has read: %v", got)
	}
}

// Parameter Store's events are best effort.
func TestWatchGivesUpOnAWriteThatNoPassSees(t *testing.T) {
	t.Parallel()
	s := settled(t, outcome.StateReconciled)
	s.parameter("karpenter_enabled", 2)
	lines, seconds, end := s.watched()
	still := []string{"09:50:12  no pass is running", "09:50:24  no pass is running"}
	if !errors.As(end, new(undecided)) || !slices.Equal(lines, still) || seconds != patience.Seconds() {
		t.Errorf("%.0f s, %q, %T", seconds, lines, end)
	}
	concludes(t, end, "no pass has seen karpenter_enabled version 2")
}

// The parameter change is seen when the status answers it.
func TestWatchWaitsForTheChangeToBeAnswered(t *testing.T) {
	t.Parallel()
	s := settled(t, outcome.StateReconciled)
	change := strings.Replace(statusName, "status", "change", 1)
	s.cloud.SSM.Write(change, `{"set":{"node_disk":"30"}}`)
	_, seconds, end := s.watched()
	concludes(t, end, "no pass has seen change version 1")
	if !errors.As(end, new(undecided)) || seconds != patience.Seconds() {
		t.Errorf("nobody answers: %.0f s, %T", seconds, end)
	}
	s.acts = []func(){nil, nil, nil, nil, func() {
		e := s.begins("second").reads("Unchanged", true)
		s.reports(e, outcome.StateReconciled)
		s.status.Change = &store.ChangeStatus{Version: 1, Outcome: store.ChangeRefused}
		e.ends()
	}}
	_, seconds, end = s.watched()
	if concludes(t, end, ""); seconds < 5 || seconds > 5+lag.Seconds() {
		t.Errorf("%.0f s", seconds)
	}
}

// Without a write since the last pass, a requested pass may still begin, and Step Functions' list may be behind.
func TestWatchWithoutAWrite(t *testing.T) {
	t.Parallel()
	s := settled(t, outcome.StateReconciled)
	lines, seconds, end := s.watched()
	if len(lines) > 0 || seconds != lag.Seconds() {
		t.Errorf("%.0f s, %q", seconds, lines)
	}
	concludes(t, end, "")

	s = settled(t, outcome.StateRejected)
	var e *execution
	s.acts = []func(){nil, func() { e = s.begins("forced").reads("Planned", true, "nodepools") }, nil, nil, nil,
		func() { s.reports(e, outcome.StateReconciled); e.ends() }}
	_, seconds, end = s.watched()
	if concludes(t, end, ""); seconds != 6 {
		t.Errorf("%.0f s", seconds)
	}
}

// The status may have been written by a stack of another name, whose executions cannot be read here.
func TestTheStatusOfAnotherStack(t *testing.T) {
	t.Parallel()
	s := settled(t, outcome.StateReconciled)
	s.status.Execution = strings.Replace(s.status.Execution, "Sawhorse-reconcile", "Former-reconcile", 1)
	s.cloud.States.Executions[0].Name = "unknown to the status"
	w := s.watcher()
	if f, err := w.find(t.Context(), nil); err != nil || !f.seen() || f.last == nil {
		t.Errorf("%+v, %v", f, err)
	}
	if made := strings.Join(s.cloud.Made(), "\n"); strings.Contains(made, s.status.Execution) {
		t.Errorf("%s", made)
	}
}

// A pass that hands the rack over, or is stopped, is not the final result.
func TestWatchGoesOnWithTheSuccessor(t *testing.T) {
	t.Parallel()
	for what, ends := range map[string]func(*execution){
		"handed over": func(e *execution) { e.enters("HandedOver", "{}").succeeds() },
		"stopped": func(e *execution) {
			e.event(types.HistoryEvent{Type: types.HistoryEventTypeExecutionAborted}).Status = types.ExecutionStatusAborted
		},
	} {
		s := settled(t, outcome.StateReconciled)
		e := s.begins("second").reads("Planned", true, "nodepools")
		var next *execution
		s.acts = []func(){
			func() { ends(e) }, nil,
			func() { next = s.begins("third").reads("Planned", true, "nodepools").takes("nodepools", "done", "") },
			func() { s.reports(next, outcome.StateReconciled); next.ends() },
		}
		lines, seconds, end := s.watched()
		if len(lines) != 3 || seconds != 4 {
			t.Errorf("%s: %.0f s, %q", what, seconds, lines)
		}
		concludes(t, end, "")
	}
}

// The command exits with 1, even if the status of an earlier pass is good.
func TestWatchOfAPassThatCouldNotReport(t *testing.T) {
	t.Parallel()
	s := settled(t, outcome.StateReconciled)
	s.parameter("karpenter_enabled", 2)
	e := s.begins("second")
	s.acts = []func(){func() { e.fails("Lambda.Unknown") }}
	_, _, end := s.watched()
	concludes(t, end, "Lambda.Unknown")
}

func TestWatchOfARackWithoutAStatus(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	_, seconds, end := s.watched()
	if concludes(t, end, "there is no rack prod in eu-central-1"); seconds != lag.Seconds() {
		t.Errorf("%.0f s", seconds)
	}
	s = newStage(t)
	s.parameter("karpenter_enabled", 1)
	_, seconds, end = s.watched()
	if concludes(t, end, "rack prod has no status yet"); seconds != patience.Seconds() {
		t.Errorf("of a new rack, whose pass may begin: %.0f s", seconds)
	}
	s = newStage(t)
	s.parameter("karpenter_enabled", 1)
	s.acts = []func(){func() { s.begins("first").reads("Unchanged", false).ends() }}
	lines, _, end := s.watched()
	if concludes(t, end, "rack prod has no status yet"); len(lines) != 1 {
		t.Errorf("%q", lines)
	}
}

// Executions of other racks are read once, not every second.
func TestWatchLooksOnceAtOthersPasses(t *testing.T) {
	t.Parallel()
	s := settled(t, outcome.StateReconciled)
	for i := range 20 {
		s.begins(fmt.Sprint("other", i)).Input = `{"detail":{"rack":"other"}}`
	}
	e := s.begins("second").reads("Unchanged", false)
	s.acts = []func(){nil, nil, nil, e.ends}
	_, _, end := s.watched()
	concludes(t, end, "")
	looked := 0
	for _, call := range s.cloud.Made() {
		if strings.HasPrefix(call, "StepFunctions.DescribeExecution ") {
			looked++
		}
	}
	if executions := len(s.cloud.States.Executions); looked > executions {
		t.Errorf("%d looks at %d executions", looked, executions)
	}
}
