package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// The page of the sandbox has a row for each end-to-end script, and no row for what is none.
func TestSandboxPageHasEveryScript(t *testing.T) {
	scripts := regexp.MustCompile(`(?m)^func Test([A-Z][A-Za-z]+)\(t \*testing\.T\)`)
	var want []string
	for _, pattern := range []string{"../../sandbox/e2e/*_test.go", "../../sandbox/e2e/[^s]*/*_test.go"} { // stage has no scripts
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %v", pattern, files, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, found := range scripts.FindAllStringSubmatch(string(text), -1) {
				want = append(want, found[1])
			}
		}
	}
	page, err := os.ReadFile("../../docs/sandbox.md")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, found := range regexp.MustCompile("(?m)^\\| `([A-Z][A-Za-z]+)` \\| ").FindAllStringSubmatch(string(page), -1) {
		got = append(got, found[1])
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the page has\n%v, the scripts are\n%v", got, want)
	}
}
