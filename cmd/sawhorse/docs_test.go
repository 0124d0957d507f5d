package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"
)

const cliDocument = "../../docs/cli.md"

// shell runs scripts as a reader would: in one directory for all of them, with sawhorse on the path.
type shell struct {
	dir string
	env []string
}

func newShell(t *testing.T) shell {
	t.Helper()
	for _, tool := range []string{"bash", "git"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatal(err)
		}
	}
	bin, self := t.TempDir(), mustAbs(t, os.Args[0])
	if err := os.Symlink(self, filepath.Join(bin, "sawhorse")); err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), asCommand+"=1", "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "HOME="+bin, "LC_ALL=C.UTF-8",
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	env = append(env, environment(t, holding(map[string]string{statusName: statusText(t, rejected)}))...)
	return shell{t.TempDir(), env}
}

func mustAbs(t *testing.T, path string) string {
	t.Helper()
	absolute, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return absolute
}

// run returns what a terminal would show, and the exit code.
func (s shell) run(t *testing.T, script string) (string, int) {
	t.Helper()
	command := exec.Command("bash", "-e", "-o", "pipefail", "-c", "exec 2>&1\n"+script)
	command.Dir, command.Env = s.dir, s.env
	r := execute(t, command, "")
	return r.stdout, r.code
}

// An example, and its output if it is given.
var example = regexp.MustCompile("(?m)^```sh\n((?:.*\n)*?)```\n(?:\n```text\n((?:.*\n)*?)```\n)?")

// Runs each sh block of docs/cli.md in order, and compares its output with the text block that follows.
func TestExamples(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(cliDocument)
	if err != nil {
		t.Fatal(err)
	}
	s, examples := newShell(t), 0
	now := example.ReplaceAllStringFunc(string(text), func(match string) string {
		examples++
		m := example.FindStringSubmatch(match)
		out, code := s.run(t, m[1])
		if code != 0 {
			t.Errorf("exit %d of\n%s\n%s", code, m[1], out)
		}
		if out != m[2] && !*update {
			t.Errorf("%sprints\n%sand docs/cli.md shows (go test ./cmd/sawhorse -run TestExamples -update writes it anew)\n%s", m[1], out, m[2])
		}
		if out == "" {
			return "```sh\n" + m[1] + "```\n"
		}
		return "```sh\n" + m[1] + "```\n\n```text\n" + out + "```\n"
	})
	if examples < 10 {
		t.Errorf("only %d examples", examples)
	}
	if *update && !t.Failed() {
		if err := os.WriteFile(cliDocument, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// The lines of the CI job find a rejected rack, also if other racks follow it.
func TestCIJob(t *testing.T) {
	t.Parallel()
	var job struct {
		Jobs map[string]struct {
			Steps []struct{ Name, Uses, Run string }
		}
	}
	for _, section := range document(t, cliDocument) {
		for _, b := range section.blocks {
			if b.language == "yaml" {
				if err := yaml.Unmarshal([]byte(b.text), &job); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	steps := job.Jobs["check"].Steps
	if len(steps) == 0 {
		t.Fatal("there is no job check")
	}
	script := steps[len(steps)-1].Run
	for _, c := range []struct {
		racks map[string]string
		code  int
	}{
		{map[string]string{"a": `{"rack":"a"}`, "b": `{"rack":"b"}`}, 0},
		{map[string]string{"a": `{"rack":"A"}`, "b": `{"rack":"b"}`}, 1},
		{map[string]string{"a": `{"rack":"a"}`, "b": `{"rack":`}, 1},
	} {
		s := newShell(t)
		if err := os.Mkdir(filepath.Join(s.dir, "racks"), 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range c.racks {
			if err := os.WriteFile(filepath.Join(s.dir, "racks", name+".json"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		out, code := s.run(t, script)
		if code != c.code || !strings.Contains(out, "racks/a.json\n") || !strings.Contains(out, "racks/b.json\n") {
			t.Errorf("exit %d, want %d:\n%s", code, c.code, out)
		}
	}
}

// The document describes every command and flag.
func TestDocuments(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(cliDocument)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range root().Commands() {
		if !regexp.MustCompile("(?m)^\\| [^|]*`" + c.Name() + "`").Match(text) {
			t.Errorf("the table of commands in %s does not have %s", cliDocument, c.Name())
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !strings.Contains(string(text), "`--"+f.Name) && !strings.Contains(string(text), "`-"+f.Shorthand) {
				t.Errorf("%s does not mention --%s of %s", cliDocument, f.Name, c.Name())
			}
		})
	}
}
