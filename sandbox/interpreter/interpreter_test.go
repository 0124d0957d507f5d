// Package interpreter plays passes of the state machine with MiniStack's interpreter of the Amazon States Language, and
// counts the state transitions, which are what a pass costs. It has only tests.
package interpreter

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

type step struct {
	Name     string `json:"name"`
	Function string `json:"function"`
	Deadline int    `json:"deadline"`
}

// played is a pass: the states that it entered, the inputs of RunStep, the steps that were called, and the payload of
// the report. Waits are the calls of report that say what a step waits for.
type played struct {
	Path   []string
	Inputs []struct {
		Step       string
		Generation int
	}
	Called []string
	Report struct {
		Outcome, Error, Step string
		Steps                []string
	}
	// Took is in seconds.
	Took  int
	Waits []struct {
		Rack, Execution string
		Wait            struct {
			Step, Note string
			Since      time.Time
		}
	}
}

func steps(n int) []step {
	all := make([]step, n)
	for i := range all {
		all[i] = step{Name: fmt.Sprint("step", i), Function: "step", Deadline: 60}
	}
	return all
}

var substitution = regexp.MustCompile(`\$\{\w+\}`)

// play plays a pass. together is whether the fields of one Assign see the old values, as on AWS, or each other, as in
// MiniStack.
func play(t *testing.T, steps []step, answers map[string][]string, together bool) played {
	t.Helper()
	return playWith(t, map[string]any{"steps": steps, "answers": answers, "refuses": false, "together": together})
}

func playWith(t *testing.T, given map[string]any) (p played) {
	t.Helper()
	interpret(t, given, &p)
	return p
}

// definition returns the definition of the state machine with some values for what the template fills in.
func definition(t *testing.T) json.RawMessage {
	t.Helper()
	text, err := os.ReadFile("../../statemachine/reconcile.asl.json")
	if err != nil {
		t.Fatal(err)
	}
	return substitute(text)
}

func substitute(text []byte) []byte {
	return substitution.ReplaceAllFunc(text, func(name []byte) []byte {
		switch {
		case bytes.HasSuffix(name, []byte("Seconds}")):
			return []byte("5")
		case string(name) == "${Functions}":
			return []byte("{'validate': 'validate', 'report': 'report', 'step': 'step'}")
		case string(name) == "${Parameters}":
			return []byte("['karpenter_node_labels', 'paused']")
		}
		return []byte("sawhorse-") // of the others, any text does
	})
}

// interpret gives the definition and what else interpret.py takes to it, and reads what it prints.
func interpret(t *testing.T, given map[string]any, into any) {
	t.Helper()
	given["definition"] = definition(t)
	input, err := json.Marshal(given)
	if err != nil {
		t.Fatal(err)
	}
	python := exec.Command("../../.cache/ministack/bin/python", "interpret.py")
	python.Stdin = bytes.NewReader(input)
	out, err := python.Output()
	if err != nil {
		t.Fatalf("interpret.py: %v\n%s", err, complaint(err))
	}
	if err := json.Unmarshal(out, into); err != nil {
		t.Fatal(err)
	}
}

func complaint(err error) []byte {
	if exit, ok := err.(*exec.ExitError); ok {
		return exit.Stderr
	}
	return nil
}

// A step that is done at its first answer costs two state transitions. Everything else costs 13.
func TestTransitionsOfAPass(t *testing.T) {
	for _, n := range []int{0, 1, 2, 13} {
		for _, together := range []bool{true, false} {
			p := play(t, steps(n), map[string][]string{}, together)
			if len(p.Path) != 13+2*n || p.Path[len(p.Path)-1] != "Done" {
				t.Errorf("%d steps: %d transitions, want %d: %v", n, len(p.Path), 13+2*n, p.Path)
			}
			if len(p.Called) != n || len(p.Report.Steps) != n || !slices.IsSorted(p.Called[:min(n, 10)]) {
				t.Errorf("%d steps: called %v, reported %v", n, p.Called, p.Report.Steps)
			}
			for i, input := range p.Inputs {
				if input.Step != p.Called[i] || input.Generation != 7 {
					t.Errorf("step %s: the input of RunStep is %+v", p.Called[i], input)
				}
			}
		}
	}
}

// The ways on from a step, with the fields of an Assign evaluated in both ways.
func TestAnswersOfAStep(t *testing.T) {
	for _, c := range []struct {
		what, answers string
		deadline      int
		called        string
		// states are those from the second step's first answer on.
		states, outcome, failed string
	}{
		{"waits", "wait wait done", 60, "step0 step1 step1 step1 step2",
			"StepAnswer WaitForStep RunStep StepAnswer WaitForStep RunStep StepAnswer RunStep StepAnswer " +
				"Report Reported Release Ended Done", "Planned", ""},
		{"superseded", "superseded done", 60, "step0 step1", "StepAnswer Again Enough HandOver StartSuccessor HandedOver", "", ""},
		{"late", "wait", -1, "step0 step1",
			"StepAnswer StepLate ReportFailure Reported Release Ended Failed", "Failed", "step1 StepDeadlineExceeded"},
		{"fails", "!StepFailed", 60, "step0 step1", "ReportFailure Reported Release Ended Failed", "Failed", "step1 StepFailed"},
		{"rejects", "!Rejected", 60, "step0 step1", "Report Reported Release Ended Done", "Rejected", ""},
		{"has lost the lease", "!LeaseLost", 60, "step0 step1", "Lost", "", ""},
	} {
		for _, together := range []bool{true, false} {
			all := steps(3)
			all[1].Deadline = c.deadline
			p := play(t, all, map[string][]string{"step1": strings.Fields(c.answers)}, together)
			second := len(p.Path) // the index after the second RunStep
			for i, n := 0, 0; i < len(p.Path) && n < 2; i++ {
				if p.Path[i] == "RunStep" {
					second, n = i+1, n+1
				}
			}
			if got := strings.Join(p.Path[second:], " "); got != c.states {
				t.Errorf("a step %s: %s, want %s", c.what, got, c.states)
			}
			if got := strings.Join(p.Called, " "); got != c.called {
				t.Errorf("a step %s: called %s, want %s", c.what, got, c.called)
			}
			if got := strings.TrimSpace(p.Report.Step + " " + p.Report.Error); p.Report.Outcome != c.outcome || got != c.failed {
				t.Errorf("a step %s: report %+v", c.what, p.Report)
			}
		}
	}
}

// A call of a step that ends with an error, or never, is repeated as often, and for as long at most, as docs/reliability.md says. One
// that works in the end goes on as if nothing had been; one that does not fails the pass with its error.
func TestCallsThatAreRepeated(t *testing.T) {
	const debounce = 5
	for failure, c := range map[string]struct{ calls, seconds int }{
		"States.Timeout": {3, 6}, "Sandbox.Timedout": {3, 6}, "Throttled": {31, 531}, "Unavailable": {7, 51}, "StepFailed": {1, 0},
	} {
		p := play(t, steps(3), map[string][]string{"step1": {"!" + failure}}, true)
		if want := "step0" + strings.Repeat(" step1", c.calls); strings.Join(p.Called, " ") != want || p.Took != debounce+c.seconds {
			t.Errorf("%s: called %v in %d s", failure, p.Called, p.Took)
		}
		if p.Report.Outcome != "Failed" || p.Report.Step != "step1" || p.Report.Error != failure || p.Path[len(p.Path)-1] != "Failed" {
			t.Errorf("%s: %v, %+v", failure, p.Path, p.Report)
		}
		if c.calls == 1 {
			continue
		}
		once := play(t, steps(3), map[string][]string{"step1": {"!" + failure, "done"}}, true)
		if got := strings.Join(once.Called, " "); got != "step0 step1 step1 step2" || once.Report.Outcome != "Planned" {
			t.Errorf("%s, once: called %s in %d s, %+v", failure, got, once.Took, once.Report)
		}
	}
}

// The status says what a step waits for once it has waited for five seconds, and again when that changes, but for the same step
// not before 30 s have passed. Whether it can be written makes no difference to the pass.
func TestWhatAStepWaitsFor(t *testing.T) {
	answers := slices.Concat(slices.Repeat([]string{"wait:a"}, 35), slices.Repeat([]string{"wait:b"}, 10),
		slices.Repeat([]string{"wait:c"}, 25), []string{"done"})
	all := steps(3)
	all[1].Deadline = 600
	short := []string{"wait:x", "wait:x", "wait:x", "done"}
	next := slices.Concat(slices.Repeat([]string{"wait:d"}, 7), []string{"done"})
	for _, refuses := range []bool{true, false} {
		p := playWith(t, map[string]any{
			"steps": all, "answers": map[string][]string{"step0": short, "step1": answers, "step2": next}, "refuses": refuses, "together": refuses,
		})
		told := ""
		begun := map[string]time.Time{"step1": p.Waits[0].Wait.Since, "step2": p.Waits[len(p.Waits)-1].Wait.Since}
		for _, w := range p.Waits {
			told += w.Wait.Step + " " + w.Wait.Note + " "
			if w.Rack != "demo" || w.Execution != "me" || !w.Wait.Since.Equal(begun[w.Wait.Step]) {
				t.Errorf("told of %+v", w)
			}
		}
		if told != "step1 a step1 b step1 c step2 d " || !begun["step1"].Before(begun["step2"]) {
			t.Errorf("refused %v: told of %q, %v", refuses, told, begun)
		}
		for i, name := range p.Path {
			if name == "ReportWait" && (p.Path[i-1] != "StepAnswer" || p.Path[i+1] != "WaitForStep") {
				t.Errorf("refused %v: %v", refuses, p.Path[i-1:i+2])
			}
		}
		if len(p.Called) != len(short)+len(answers)+len(next) || p.Path[len(p.Path)-1] != "Done" || p.Report.Outcome != "Planned" {
			t.Errorf("refused %v: %d calls of steps, reported %+v", refuses, len(p.Called), p.Report)
		}
		for i, input := range p.Inputs {
			if input.Step != p.Called[i] || input.Generation != 7 {
				t.Errorf("step %s: the input of RunStep is %+v", p.Called[i], input)
			}
		}
	}
}
