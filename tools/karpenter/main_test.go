package main

import (
	"bytes"
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/karpenter"
)

var update = flag.Bool("update", false, "generate the default version again")

// The default version is what the generator makes of the modules that the repository's go.sum verifies. `make karpenter-verify` does the
// same for all versions, whose modules it has to download.
func TestDefaultIsTheModules(t *testing.T) {
	version := karpenter.Default().Version
	from := modules{provider: moduleDir(t, providerModule), core: moduleDir(t, coreModule)}
	if !strings.HasSuffix(from.provider, "@v"+version) {
		t.Fatalf("the module is %s, the default version is %s", filepath.Base(from.provider), version)
	}
	_, from.coreVersion, _ = strings.Cut(filepath.Base(from.core), "@v")
	want := filepath.Join(catalogue, version)
	target := want
	if !*update {
		target = t.TempDir()
	}
	if err := write(target, version, from); err != nil {
		t.Fatal(err)
	}
	files := read(t, target)
	if len(files) < 15 {
		t.Fatalf("%d files: the test has lost them", len(files))
	}
	for name, text := range files {
		if have, err := os.ReadFile(filepath.Join(want, name)); err != nil || !bytes.Equal(have, text) {
			t.Errorf("%s/%s is not what the module says (run this test with -update): %v", version, name, err)
		}
	}
	for _, chart := range []string{"karpenter", "karpenter-crd"} {
		for name := range read(t, filepath.Join(want, chart)) {
			if files[filepath.Join(chart, name)] == nil {
				t.Errorf("%s/%s/%s is not in the module", version, chart, name)
			}
		}
	}
}

// The recorded checksums of the default version are those of the repository's go.sum.
func TestSumsAreThoseOfGoSum(t *testing.T) {
	sums, err := os.ReadFile("../../go.sum")
	if err != nil {
		t.Fatal(err)
	}
	recorded, err := os.ReadFile(filepath.Join(catalogue, karpenter.Default().Version, sumsFile))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(recorded)) {
		if !strings.Contains(string(sums), line) {
			t.Errorf("go.sum does not have %s", line)
		}
	}
}

// Every version was made from the modules whose checksums it records: of each module, of its go.mod and of its content. Go
// asks no checksum database for what is recorded.
func TestEveryVersionHasItsSums(t *testing.T) {
	for _, r := range karpenter.All() {
		recorded, err := os.ReadFile(filepath.Join(catalogue, r.Version, sumsFile))
		if err != nil {
			t.Fatal(err)
		}
		want := []string{providerModule + " v" + r.Version, coreModule + " v" + r.Core}
		if r.Kubelet() != nil {
			want = append(want, kubeletModule+` v\S+`)
		}
		if lines := strings.Count(string(recorded), "\n"); lines != 2*len(want) {
			t.Errorf("%s: %d lines", r.Version, lines)
		}
		for _, module := range want {
			for _, of := range []string{"", "/go.mod"} {
				if !regexp.MustCompile(`(?m)^` + module + of + ` h1:[A-Za-z0-9+/]{43}=$`).Match(recorded) {
					t.Errorf("%s: no checksum of %s%s", r.Version, module, of)
				}
			}
		}
	}
}

func read(t *testing.T, root string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		all[name], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func moduleDir(t *testing.T, module string) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-C", "../..", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		t.Fatalf("go list -m %s: %v", module, err)
	}
	return strings.TrimSpace(string(out))
}

func TestRunRefuses(t *testing.T) {
	err := run("v1.14", "", "")
	if want := `VERSION is "v1.14"; it must be a released version such as 1.14.3`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
