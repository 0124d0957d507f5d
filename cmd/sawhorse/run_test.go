package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew, and the outputs in docs/cli.md")

// asCommand makes the test binary act as the command itself, so exit codes, stdout and stderr are the real ones.
const asCommand = "SAWHORSE_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// ran is the result of a run of the command.
type ran struct {
	code           int
	stdout, stderr string
}

// sawhorse runs the command.
func sawhorse(t testing.TB, stdin string, args ...string) ran {
	t.Helper()
	command := exec.Command(os.Args[0], args...)
	command.Env = append(os.Environ(), asCommand+"=1")
	return execute(t, command, stdin)
}

func execute(t testing.TB, command *exec.Cmd, stdin string) ran {
	t.Helper()
	var stdout, stderr bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(stdin), &stdout, &stderr
	err := command.Run()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return ran{command.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// ends checks the exit code. Only exit code 2 may print on stderr.
func (r ran) ends(t testing.TB, code int) ran {
	t.Helper()
	if r.code != code || code != 2 && r.stderr != "" {
		t.Fatalf("exit %d, want %d\nstdout: %s\nstderr: %s", r.code, code, r.stdout, r.stderr)
	}
	return r
}

// answer returns what check printed.
func (r ran) answer(t testing.TB) answer {
	t.Helper()
	return decoded[answer](t, r.stdout)
}

func decoded[T any](t testing.TB, text string) T {
	t.Helper()
	var value T
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&value); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return value
}

// file writes a file and returns its path.
func file(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rack.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// golden compares with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is not what is printed (-update writes it anew):\n%s", path, got)
	}
}

// on returns an input with Karpenter on. more has further members of params.
func on(more string) string { return onWith(more, "") }

// onWith also adds members to the input itself.
func onWith(params, input string) string {
	text := `{"rack":"demo","params":{"karpenter_auth_mode":"true","karpenter_enabled":"true"`
	if params != "" {
		text += "," + params
	}
	if text += "}"; input != "" {
		text += "," + input
	}
	return text + "}"
}
