// Package story runs end-to-end scripts against a running sandbox. The scripts use the commands that an operator has
// (aws, kubectl, sawhorse, cdk, helm), and print those that change something, with their results. The file example.go
// has a script to copy.
package story

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/sawhorse-io/sawhorse/sandbox/user"
)

// Script is one run of a script. It runs commands, counts the checks that passed, and knows which of its writes no pass
// has served yet.
type Script struct {
	ctx    context.Context
	env    user.Environment
	out    io.Writer
	colour bool

	chapter  string
	passed   int
	failures []string
	timings  []timing
	// unserved are the writes that Served has not waited for.
	unserved []Write
	inputs   map[string]input
	// patience only bounds each command and the waits for passes, which would hang otherwise.
	patience time.Duration
}

type timing struct {
	chapter, what string
	took          time.Duration
}

// Run runs a script with a user's environment. colour turns on colours for terminals.
func Run(ctx context.Context, env user.Environment, out io.Writer, colour bool, script func(*Script)) *Script {
	s := &Script{ctx: ctx, env: env, out: out, colour: colour, inputs: map[string]input{}, patience: 15 * time.Minute}
	s.guard(func() { script(s) })
	return s
}

// failedCheck ends a chapter.
type failedCheck struct{}

// guard runs a part of the script until its end, or until a check fails.
func (s *Script) guard(part func()) {
	defer func() {
		if reason := recover(); reason != nil && reason != any(failedCheck{}) {
			panic(reason)
		}
	}()
	part()
}

// Failures returns the checks that failed.
func (s *Script) Failures() []string { return s.failures }

// Passed returns the number of checks that passed.
func (s *Script) Passed() int { return s.passed }

// Chapter runs a part of the script. A check that fails ends it. The chapters that follow still run, because they put
// back what was changed. A check outside of chapters ends the script.
func (s *Script) Chapter(title string, part func()) {
	s.chapter = title
	s.say("1;36", "\n── "+title+" "+strings.Repeat("─", max(0, 96-len(title))))
	s.guard(part)
	s.chapter = ""
}

// Say prints a message.
func (s *Script) Say(format string, args ...any) { s.say("2", fmt.Sprintf(format, args...)) }

func (s *Script) say(code, line string) { fmt.Fprintln(s.out, s.paint(code, line)) }

// Type runs a command as a user would, and prints it with its output. The check fails if the command does.
func (s *Script) Type(command string) { s.typed(command) }

func (s *Script) typed(command string) (output string) {
	output, err := s.show(command)
	if err != nil {
		s.fail("`%s`: %v", command, err)
	}
	return output
}

// show runs a command, and prints it, its output and its duration.
func (s *Script) show(command string) (output string, err error) {
	s.say("1;32", "$ "+command)
	began := time.Now()
	var text bytes.Buffer
	screen := &indented{to: s.out}
	both := io.MultiWriter(screen, &text)
	err = s.run(command, both, both)
	screen.finish()
	s.Say("  (%.1f s)", time.Since(began).Seconds())
	return strings.TrimSpace(text.String()), err
}

// Refused runs a command that must fail and whose output must contain a text.
func (s *Script) Refused(command, text string) {
	output, err := s.show(command)
	switch {
	case err == nil:
		s.fail("`%s` was not refused", command)
	case !strings.Contains(output, text):
		s.fail("`%s` was refused without %q: got %q", command, text, output)
	}
	s.pass("refused: " + text)
}

// Output returns the output of a command without printing it. The check fails if the command does.
func (s *Script) Output(command string) string {
	output, err := s.read(command)
	if err != nil {
		s.fail("`%s` ended with %v: %s", command, err, output)
	}
	return output
}

// read returns a command's output, also that of a command that fails.
func (s *Script) read(command string) (string, error) {
	var text bytes.Buffer
	err := s.run(command, &text, &text)
	return strings.TrimSpace(text.String()), err
}

// printed is the output of a command for a comparison. For a command that fails, it begins with the reason.
func (s *Script) printed(command string) string {
	output, err := s.read(command)
	if err != nil {
		return fmt.Sprintf("(%v) %s", err, output)
	}
	return output
}

// JSON returns what a command prints as JSON.
func JSON[T any](s *Script, command string) (value T) {
	var text, failure bytes.Buffer
	err := s.run(command, &text, &failure)
	if err == nil {
		err = json.Unmarshal(text.Bytes(), &value)
	}
	if err != nil {
		s.fail("`%s`: %v: %s%s", command, err, text.String(), failure.String())
	}
	return value
}

// Check passes if a command prints exactly the wanted text.
func (s *Script) Check(what, command, wanted string) {
	got := s.printed(command)
	s.verify(got == wanted, what, "", wanted, got, from(command))
}

// Equal passes if a value prints as the wanted one.
func (s *Script) Equal(what string, got, wanted any) {
	is, want := fmt.Sprint(got), fmt.Sprint(wanted)
	s.verify(is == want, what, "", want, is, "")
}

// Contains passes if a command's output contains the wanted text.
func (s *Script) Contains(what, command, wanted string) {
	got := s.printed(command)
	s.verify(strings.Contains(got, wanted), what, "text with ", wanted, got, from(command))
}

// Lacks passes if a command's output does not contain a text.
func (s *Script) Lacks(what, command, unwanted string) {
	got := s.Output(command)
	s.verify(!strings.Contains(got, unwanted), what, "text without ", unwanted, got, from(command))
}

// verify passes or fails a check. A failed one prints what was wanted, what was there, and where.
func (s *Script) verify(passed bool, what, kind, wanted, got, where string) {
	if !passed {
		s.fail("%s: wanted %s%q, got %q%s", what, kind, wanted, got, where)
	}
	s.pass(what + ": " + kind + brief(wanted))
}

// from names a command in the message of a failed check, as it can be run again.
func from(command string) string { return " from `" + command + "`" }

// Until waits until a command prints exactly the wanted text, and records how long that took.
func (s *Script) Until(what, command, wanted string, within time.Duration) {
	s.await(what, func() (string, string) { return s.printed(command), from(command) }, wanted, within)
}

// Await waits until a function returns the wanted text, and records how long that took.
func (s *Script) Await(what string, read func() string, wanted string, within time.Duration) {
	s.await(what, func() (string, string) { return read(), "" }, wanted, within)
}

// await waits until a function returns the wanted text. If it does not come, the message has the last text and where it was.
// The interval between tries grows, because an AWS command costs half a second of one of the machine's cores.
func (s *Script) await(what string, read func() (got, where string), wanted string, within time.Duration) {
	began := time.Now()
	for {
		got, where := read()
		took := time.Since(began)
		if got == wanted {
			s.pass(fmt.Sprintf("%s: %s, after %.1f s", what, brief(wanted), took.Seconds()))
			s.Note(what, took)
			return
		}
		if took > within || s.ctx.Err() != nil {
			s.fail("%s: wanted %q, still got %q%s after %.0f s", what, wanted, got, where, took.Seconds())
		}
		s.wait(pause(took))
	}
}

// pause is the time until the next try after a wait.
func pause(waited time.Duration) time.Duration {
	return min(max(waited/10, 200*time.Millisecond), time.Second)
}

// wait waits for d, or until the context ends.
func (s *Script) wait(d time.Duration) {
	select {
	case <-s.ctx.Done():
	case <-time.After(d):
	}
}

// Note records a duration for the summary.
func (s *Script) Note(what string, took time.Duration) {
	s.timings = append(s.timings, timing{s.chapter, what, took})
}

// Summary prints the durations and the number of checks.
func (s *Script) Summary() {
	s.Chapter("Summary", func() {
		for _, n := range s.timings {
			fmt.Fprintf(s.out, "  %-45s %-48s %6.1f s\n", n.chapter, n.what, n.took.Seconds())
		}
		for _, failure := range s.failures {
			s.say("1;31", "  ✗ "+failure)
		}
		fmt.Fprintf(s.out, "\n  %d checks passed, %d failed\n", s.passed, len(s.failures))
	})
}

func (s *Script) pass(what string) {
	s.passed++
	s.say("32", "  ✓ "+what)
}

// fail records a failed check and ends the chapter.
func (s *Script) fail(format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	s.say("1;31", "  ✗ "+what)
	if s.chapter != "" {
		what = s.chapter + ": " + what
	}
	s.failures = append(s.failures, what)
	panic(failedCheck{})
}

func (s *Script) paint(code, text string) string {
	if !s.colour {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// run runs a command line of the story itself. It contains no input from outside.
func (s *Script) run(line string, stdout, stderr io.Writer) error {
	ctx, cancel := context.WithTimeoutCause(s.ctx, s.patience, fmt.Errorf("no end within %s", s.patience))
	defer cancel()
	command := exec.CommandContext(ctx, "bash", "-c", line)
	command.Env, command.Stdout, command.Stderr = s.env, stdout, stderr
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGTERM) }
	command.WaitDelay = 5 * time.Second
	err := command.Run()
	return cmp.Or(context.Cause(ctx), err)
}

// quoted returns a text as one word of a command line.
func quoted(text string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,=%@"
	if text != "" && strings.Trim(text, plain) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// encoded returns a value as JSON.
func encoded(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // plain data can always be encoded
	}
	return string(text)
}

// argument returns a value as JSON, as one word of a command line.
func argument(value any) string { return quoted(encoded(value)) }

// brief returns a wanted text on one line.
func brief(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if text == "" {
		return "nothing"
	}
	if len(text) > 90 {
		return text[:90] + "…"
	}
	return text
}

// indented indents each line. A line may be written in pieces.
type indented struct {
	to     io.Writer
	inside bool // a line has begun
}

func (w *indented) Write(text []byte) (int, error) {
	for line := range strings.Lines(string(text)) {
		if !w.inside {
			line = "  " + line
		}
		w.inside = !strings.HasSuffix(line, "\n")
		if _, err := io.WriteString(w.to, line); err != nil {
			return 0, err
		}
	}
	return len(text), nil
}

// finish ends a line that the command has not ended.
func (w *indented) finish() {
	if w.inside {
		_, _ = io.WriteString(w.to, "\n")
	}
}
