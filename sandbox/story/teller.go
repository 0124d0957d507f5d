// Package story runs end-to-end scripts against a running sandbox. The scripts use the commands that an operator
// has (aws, kubectl, sawhorse, cdk, helm), and print each command, its result and its duration.
package story

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Teller runs the commands of a story and counts the checks that passed.
type Teller struct {
	ctx    context.Context
	env    []string
	out    io.Writer
	colour bool

	chapter string
	held    int
	broken  []string
	timings []timing
	// last is the duration of the last typed command.
	last time.Duration
}

type timing struct {
	chapter, what string
	took          time.Duration
}

// New returns a Teller. env is the commands' environment, with aws and kubectl in its PATH. colour turns
// on colours for terminals.
func New(ctx context.Context, env []string, out io.Writer, colour bool) *Teller {
	return &Teller{ctx: ctx, env: env, out: out, colour: colour}
}

// Broken returns the checks that failed.
func (t *Teller) Broken() []string { return t.broken }

// Held returns the number of checks that passed.
func (t *Teller) Held() int { return t.held }

// Chapter begins a part of the story.
func (t *Teller) Chapter(title string) {
	t.chapter = title
	fmt.Fprintf(t.out, "\n%s\n", t.paint("1;36", "── "+title+" "+strings.Repeat("─", max(0, 96-len(title)))))
}

// Say prints a message.
func (t *Teller) Say(format string, args ...any) {
	fmt.Fprintf(t.out, "%s\n", t.paint("2", fmt.Sprintf(format, args...)))
}

// Type runs a command as a user would. It prints the command and its output, and records a failed check
// if the command fails.
func (t *Teller) Type(command string) {
	fmt.Fprintf(t.out, "%s %s\n", t.paint("1;32", "$"), t.paint("1", command))
	began := time.Now()
	screen := &indented{to: t.out}
	err := t.run(command, screen, screen)
	screen.finish()
	t.last = time.Since(began)
	fmt.Fprintf(t.out, "%s\n", t.paint("2", fmt.Sprintf("  (%.1f s)", t.last.Seconds())))
	if err != nil {
		t.fail("`%s` ended with %v", command, err)
	}
}

// Refused runs a command that must fail and whose output must contain a text.
func (t *Teller) Refused(command, saying string) {
	fmt.Fprintf(t.out, "%s %s\n", t.paint("1;32", "$"), t.paint("1", command))
	var said bytes.Buffer
	screen := &indented{to: t.out}
	both := io.MultiWriter(screen, &said)
	err := t.run(command, both, both)
	screen.finish()
	switch {
	case err == nil:
		t.fail("`%s` was not refused", command)
	case !strings.Contains(said.String(), saying):
		t.fail("`%s` was refused without saying %q", command, saying)
	default:
		t.hold("refused: " + saying)
	}
}

// Ask returns the output of a command without printing it.
func (t *Teller) Ask(command string) string {
	var said bytes.Buffer
	if err := t.run(command, &said, &said); err != nil {
		return fmt.Sprintf("(%v) %s", err, strings.TrimSpace(said.String()))
	}
	return strings.TrimSpace(said.String())
}

// Check passes if a command prints exactly the wanted text.
func (t *Teller) Check(what, command, wanted string) {
	if got := t.Ask(command); got != wanted {
		t.fail("%s: `%s` gave %q, not %q", what, command, got, wanted)
		return
	}
	t.hold(what + ": " + shown(wanted))
}

// Contains passes if a command's output contains the wanted text.
func (t *Teller) Contains(what, command, wanted string) {
	if got := t.Ask(command); !strings.Contains(got, wanted) {
		t.fail("%s: `%s` gave %q, without %q", what, command, got, wanted)
		return
	}
	t.hold(what + ": " + shown(wanted))
}

// Until waits until a command prints exactly the wanted text, and records how long that took. The interval between
// tries grows, because an AWS command costs half a second of one of the machine's cores.
func (t *Teller) Until(what, command, wanted string, within time.Duration) time.Duration {
	began := time.Now()
	for {
		got := t.Ask(command)
		took := time.Since(began)
		if got == wanted {
			t.hold(fmt.Sprintf("%s: %s, after %.1f s", what, shown(wanted), took.Seconds()))
			t.Note(what, took)
			return took
		}
		if took > within || t.ctx.Err() != nil {
			t.fail("%s: after %.0f s `%s` still gave %q, not %q", what, took.Seconds(), command, got, wanted)
			return took
		}
		t.wait(min(max(took/10, 100*time.Millisecond), time.Second))
	}
}

// wait waits for d, or until the context ends.
func (t *Teller) wait(d time.Duration) {
	select {
	case <-t.ctx.Done():
	case <-time.After(d):
	}
}

// Note records a duration for the summary.
func (t *Teller) Note(what string, took time.Duration) {
	t.timings = append(t.timings, timing{t.chapter, what, took})
}

// Last returns the duration of the last typed command.
func (t *Teller) Last() time.Duration { return t.last }

// Summary prints the durations and the number of checks.
func (t *Teller) Summary() {
	t.Chapter("Summary")
	for _, n := range t.timings {
		fmt.Fprintf(t.out, "  %-45s %-48s %6.1f s\n", n.chapter, n.what, n.took.Seconds())
	}
	for _, b := range t.broken {
		fmt.Fprintf(t.out, "  %s %s\n", t.paint("1;31", "✗"), b)
	}
	fmt.Fprintf(t.out, "\n  %d checks held, %d did not\n", t.held, len(t.broken))
}

func (t *Teller) hold(what string) {
	t.held++
	fmt.Fprintf(t.out, "  %s %s\n", t.paint("32", "✓"), what)
}

func (t *Teller) fail(format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	t.broken = append(t.broken, what)
	fmt.Fprintf(t.out, "  %s %s\n", t.paint("1;31", "✗"), what)
}

func (t *Teller) paint(code, text string) string {
	if !t.colour {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// run runs a command line of the story itself. It contains no input from outside.
func (t *Teller) run(line string, stdout, stderr io.Writer) error {
	command := exec.CommandContext(t.ctx, "bash", "-c", line)
	command.Env, command.Stdout, command.Stderr = t.env, stdout, stderr
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGTERM) }
	command.WaitDelay = 5 * time.Second
	return command.Run()
}

// shown returns a wanted text on one line.
func shown(text string) string {
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
