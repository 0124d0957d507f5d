package architecture

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// supply has what brings code of others onto the machine, and what such a command must have besides. An empty text
// means that the command must not be used at all.
var supply = []struct {
	command *regexp.Regexp
	needs   string
	why     string
}{
	{regexp.MustCompile(`\bnpm (ci|exec|i|install|update|rebuild)\b|\bnpx\b`), "npm ci --ignore-scripts",
		"packages run no scripts, and come by the lock"},
	{regexp.MustCompile(`\bpip3? (install|download|wheel)\b|/pip install\b`), "--require-hashes --no-deps",
		"packages come by their checksums"},
	{regexp.MustCompile(`\bgo (get|install) |\bgo run \S+@|-mod=mod\b`), "", "modules come by go.mod and go.sum"},
	{regexp.MustCompile(`\b(GONOSUMDB|GONOSUMCHECK|GOPRIVATE|GOINSECURE|GOFLAGS=-insecure|GOSUMDB)\b`), "",
		"Go compares checksums of all modules"},
	{regexp.MustCompile(`\b(curl|wget)\b.*\|\s*(ba)?sh\b`), "", "what is downloaded is not run"},
}

// Every path by which packages and modules come onto the machine goes by a lock with checksums, and runs none of them. The
// paths are the Makefile, what CI runs, and all scripts.
func TestPackagesComeByLockAndChecksum(t *testing.T) {
	used := make([]int, len(supply))
	for name, text := range scripts(t) {
		for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", "")) {
			if strings.HasPrefix(strings.TrimSpace(line), "#") {
				continue
			}
			for i, s := range supply {
				if !s.command.MatchString(line) {
					continue
				}
				used[i]++
				if s.needs == "" || !strings.Contains(line, s.needs) {
					t.Errorf("%s: %s: in %q", name, s.why, strings.TrimSpace(line))
				}
			}
		}
	}
	for i, s := range supply {
		if s.needs != "" && used[i] == 0 {
			t.Errorf("no line has %v: the test has lost the commands", s.command)
		}
	}
}

// scripts returns the texts of the Makefile, of what CI runs, and of all scripts of the repository, by name.
func scripts(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if slices.Contains([]string{".git", ".cache", "node_modules", "cdk.out", "dist"}, entry.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if ext := filepath.Ext(name); name == "Makefile" || ext == ".sh" || ext == ".py" || filepath.Dir(name) == ".ci" {
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			all[filepath.ToSlash(name)] = string(text)
		}
		return nil
	})
	for _, name := range []string{"Makefile", ".ci/run", "sandbox/cdk.sh", "tools/audit.py", "tools/acceptance.sh"} {
		if all[name] == "" {
			t.Errorf("the test has lost %s", name)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Every package in npm's lock has a checksum, and none wants to run a script when it is installed: the CDK works without.
func TestTheLockOfNPMHasChecksums(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	var lock struct {
		Packages map[string]struct {
			Integrity        string
			HasInstallScript bool
			Optional         bool
		}
	}
	if err := json.Unmarshal(text, &lock); err != nil {
		t.Fatal(err)
	}
	if len(lock.Packages) < 2 {
		t.Fatalf("%d packages", len(lock.Packages))
	}
	for name, p := range lock.Packages {
		if name != "" && !strings.HasPrefix(p.Integrity, "sha512-") || p.HasInstallScript && !p.Optional {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// CI runs the checks whose sources are on the network, and goes on where these cannot be reached.
func TestCIRunsTheChecksOfTheSupply(t *testing.T) {
	text := "\n" + scripts(t)[".ci/run"]
	for _, check := range []string{"\nmake audit UNREACHED=pass\n", "\nmake karpenter-verify UNREACHED=pass\n", "\nset -euo pipefail\n"} {
		if !strings.Contains(text, check) {
			t.Errorf(".ci/run does not have %q", strings.TrimSpace(check))
		}
	}
}
