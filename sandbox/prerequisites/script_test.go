package prerequisites

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// machine is what the script finds on its PATH: the behaviour of each tool, by name, including the free disk space.
type machine map[string]string

func good() machine {
	return machine{
		"go": "echo go version go1.26.0 linux/amd64", "node": "echo v20.11.1", "npm": "true",
		"python3": `case "$2" in *version_info*) echo 3.11;; esac`,
		"df":      "printf 'Filesystem 1024-blocks Used Available Capacity Mounted\\nx 1 1 99999999 1%% /\\n'",
	}
}

// run runs a copy of the script on that machine, in a checkout of its own.
func (m machine) run(t *testing.T) (output string, code int) {
	t.Helper()
	root := t.TempDir()
	path := filepath.Join(root, "path")
	for _, dir := range []string{path, filepath.Join(root, "sandbox")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, tool := range []string{"sh", "sed", "awk", "mkdir", "dirname"} {
		real, err := exec.LookPath(tool)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(real, filepath.Join(path, tool)); err != nil {
			t.Fatal(err)
		}
	}
	for tool, body := range m {
		if err := os.WriteFile(filepath.Join(path, tool), []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile("../prerequisites.sh")
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(root, "sandbox", "prerequisites.sh")
	if err := os.WriteFile(script, text, 0o755); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(script)
	command.Env = []string{"PATH=" + path}
	out, err := command.CombinedOutput()
	if err != nil && command.ProcessState == nil {
		t.Fatal(err)
	}
	return string(out), command.ProcessState.ExitCode()
}

func TestTheScriptIsSilentOnAGoodMachine(t *testing.T) {
	if out, code := good().run(t); out != "" || code != 0 {
		t.Errorf("exit %d: %s", code, out)
	}
}

// The script prints one sentence that says what to install or to free, and exits with 1.
func TestTheScriptNamesWhatIsMissing(t *testing.T) {
	for _, c := range []struct{ tool, body, want string }{
		{"go", "", "Go is missing; install Go 1.21 or newer."},
		{"go", "echo go version go1.20.14 linux/amd64", "Go 1.20 is too old; install Go 1.21 or newer."},
		{"go", "echo nonsense", "Go of unknown version is too old; install Go 1.21 or newer."},
		{"node", "", "Node.js is missing; install Node.js 20"},
		{"node", "echo v18.19.0", "Node.js 18.19 is too old; install Node.js 20"},
		{"npm", "", "npm is missing; install it"},
		{"python3", "", "Python is missing; install Python 3.11"},
		{"python3", "echo 3.9", "Python 3.9 is too old; install Python 3.11"},
		{"python3", "exit 1", "python3 does not run; install Python 3.11"},
		{"python3", `case "$2" in *version_info*) echo 3.12;; *) exit 1;; esac`,
			"Python 3.12 cannot make virtual environments; install its venv module"},
		{"df", "printf 'Filesystem 1024-blocks Used Available Capacity Mounted\\nx 1 1 512000 99%% /\\n'",
			"has 500 MB free; free some space, 1024 MB at least."},
	} {
		m := good()
		if m[c.tool] = c.body; c.body == "" {
			delete(m, c.tool)
		}
		out, code := m.run(t)
		if code != 1 || !strings.Contains(out, c.want) || strings.Count(out, "\n") != 1 {
			t.Errorf("%s %q: exit %d: %s", c.tool, c.body, code, out)
		}
	}
}
