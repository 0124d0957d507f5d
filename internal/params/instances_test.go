package params

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The embedded list must have the types in Karpenter's module: those in its VPC limits and in its static prices.
func TestInstanceTypesAreKarpenters(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/aws/karpenter-provider-aws").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "pkg/providers/*/zz_generated.*.go"))
	if err != nil {
		t.Fatal(err)
	}
	literal := regexp.MustCompile(`"([a-z][a-z0-9-]*)\.([a-z0-9-]+)"`)
	sizes := map[string][]string{}
	for _, file := range files {
		if name := filepath.Base(file); !strings.Contains(name, "vpclimits") && !strings.Contains(name, "pricing") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range literal.FindAllSubmatch(text, -1) {
			family, size := string(match[1]), string(match[2])
			if !slices.Contains(sizes[family], size) {
				sizes[family] = append(sizes[family], size)
			}
		}
	}
	var want bytes.Buffer
	var families []string
	for family := range sizes {
		families = append(families, family)
	}
	slices.Sort(families)
	for _, family := range families {
		slices.Sort(sizes[family])
		want.WriteString(family + " " + strings.Join(sizes[family], " ") + "\n")
	}
	if *update {
		if err := os.WriteFile("instance_types.txt", want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile("instance_types.txt"); err != nil || !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%v: instance_types.txt is not what Karpenter's module has; run go test ./internal/params -update", err)
	}
}

func TestArchOf(t *testing.T) {
	for name, want := range map[string]string{
		"a1.large": "arm64", "m7g.large": "arm64", "c6gn.xlarge": "arm64", "im4gn.large": "arm64", "x2gd": "arm64", "g5g.xlarge": "arm64",
		"hpc7g.4xlarge": "arm64", "r8gb.large": "arm64",
		"m6i.large": "amd64", "g5.xlarge": "amd64", "g4dn.xlarge": "amd64", "c7i-flex.large": "amd64", "p4d.24xlarge": "amd64",
		"u-6tb1.metal": "amd64", "t3.micro": "amd64", "m7a": "amd64",
	} {
		if got := ArchOf(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
