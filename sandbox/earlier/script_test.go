// Package earlier tests sandbox/earlier.sh, which chooses the commit from which the upgrade test starts.
// It has only tests.
package earlier

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// checkout is a small repository with what the script reads and calls: functions, a package that they import and one
// that they do not.
type checkout struct{ dir string }

var files = map[string]string{
	"go.mod": "module m\n", "go.sum": "", "cdk.json": "{}", ".gitignore": "/.cache/\n", "README.md": "1",
	"functions/a/main.go": "package main\n\nimport _ \"m/internal/used\"\n\nfunc main() {}\n",
	"internal/used/u.go":  "package used\n",
	"internal/used/e.go":  "package used\n\nimport _ \"embed\"\n\n//go:embed text\nvar text string\n", "internal/used/text": "1",
	"internal/unused/u.go": "package unused\n",
	"cdk/main.go":          "package main\n\nfunc main() {}\n", "cdk/bundle/main.go": "package main\n\nfunc main() {}\n",
	"sandbox/cdk.sh": "#!/bin/sh\nmkdir cdk.new && touch cdk.new/manifest.json\n",
}

func begin(t *testing.T) checkout {
	t.Helper()
	c := checkout{t.TempDir()}
	for name, text := range files {
		c.write(t, name, text)
	}
	for _, script := range []string{"earlier.sh", "architecture.sh"} {
		text, err := os.ReadFile("../" + script)
		if err != nil {
			t.Fatal(err)
		}
		c.write(t, "sandbox/"+script, string(text))
	}
	c.git(t, "init", "--quiet")
	c.commit(t)
	return c
}

func (c checkout) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(c.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

func (c checkout) git(t *testing.T, arguments ...string) string {
	t.Helper()
	command := exec.Command("git", append([]string{"-C", c.dir, "-c", "user.name=a", "-c", "user.email=a@example.com"}, arguments...)...)
	command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v: %s", arguments, err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit commits all changes, and returns the commit's id.
func (c checkout) commit(t *testing.T) string {
	t.Helper()
	c.git(t, "add", "--all")
	c.git(t, "commit", "--quiet", "--message", "one")
	return c.git(t, "rev-parse", "HEAD")
}

// earlier runs the script. It returns the commit that the script has built, or its error output.
func (c checkout) earlier(t *testing.T, environment ...string) (commit, said string) {
	t.Helper()
	command := exec.Command(filepath.Join(c.dir, "sandbox/earlier.sh"))
	var errors strings.Builder
	command.Env, command.Stderr = append(os.Environ(), environment...), &errors
	out, err := command.Output()
	if err != nil {
		return "", errors.String()
	}
	folder := strings.TrimSpace(string(out))
	if _, err := os.Stat(filepath.Join(folder, "manifest.json")); err != nil {
		t.Fatal(err)
	}
	return filepath.Base(filepath.Dir(folder)), errors.String()
}

func (c checkout) expect(t *testing.T, why, want string, environment ...string) {
	t.Helper()
	if got, said := c.earlier(t, environment...); got != want {
		t.Errorf("%s: %q, not %s: %s", why, got, want, said)
	}
}

func (c checkout) refuses(t *testing.T, why, sentence string, environment ...string) {
	t.Helper()
	if got, said := c.earlier(t, environment...); got != "" || !strings.Contains(said, sentence) {
		t.Errorf("%s: %q, %s", why, got, said)
	}
}

// The earlier commit is the newest one with a different stack. Changes of comments, tests, documents and packages that the
// functions do not import do not count.
func TestTheEarlierCommit(t *testing.T) {
	c := begin(t)
	c.refuses(t, "one commit", "name another one with UPGRADE_FROM")
	first := c.git(t, "rev-parse", "HEAD")
	c.write(t, "internal/used/u.go", "package used\n\nconst New = 1\n")
	second := c.commit(t)
	for _, name := range []string{
		"README.md", "internal/unused/u.go", "internal/used/u_test.go", "internal/used/testdata/x", "internal/used/notes.json",
	} {
		c.write(t, name, "package used\n")
	}
	third := c.commit(t)
	c.expect(t, "all is committed", first)
	c.write(t, "internal/used/u.go", "package used\n\n// New is a number.\nconst New = 1\n")
	c.expect(t, "a comment is changed", first)
	c.write(t, "internal/used/u.go", "package used\n\nconst New = 2\n")
	c.expect(t, "a function is changed", third)
	c.expect(t, "a commit is named", second, "UPGRADE_FROM=HEAD~1")
	c.refuses(t, "a commit is named that there is not", "there is no commit v9", "UPGRADE_FROM=v9")
	c.git(t, "checkout", "--quiet", "internal/used/u.go")
	c.write(t, "internal/used/text", "2")
	c.expect(t, "what a function embeds is changed", third)
	c.write(t, "internal/used/u.go", "no Go")
	c.refuses(t, "the sources cannot be read", "expected 'package'")
}

// For a shallow clone, the script says how to fetch the history. It skips nothing.
func TestAShallowClone(t *testing.T) {
	c := begin(t)
	c.write(t, "internal/used/u.go", "package used\n\nconst New = 1\n")
	c.commit(t)
	clone := checkout{filepath.Join(t.TempDir(), "clone")}
	c.git(t, "clone", "--quiet", "--depth", "1", "file://"+c.dir, clone.dir)
	clone.refuses(t, "depth 1", "git fetch --unshallow")
	clone.git(t, "fetch", "--quiet", "--unshallow")
	clone.expect(t, "unshallowed", c.git(t, "rev-parse", "HEAD~1"))
}
