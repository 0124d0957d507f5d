package docs

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/params"
)

// docs/security.md has a row for each function, and tells of each parameter what its writer reaches; and of nothing else.
func TestSecurityHasEveryFunctionAndParameter(t *testing.T) {
	folders, err := os.ReadDir(root + "/functions")
	if err != nil {
		t.Fatal(err)
	}
	var functions, parameters []string
	for _, f := range folders {
		functions = append(functions, f.Name())
	}
	for _, p := range params.Table {
		parameters = append(parameters, p.Name)
	}
	slices.Sort(parameters)
	for head, want := range map[string][]string{"| function |": functions, "| parameters |": parameters} {
		if got := firstCells(t, head); !slices.Equal(got, want) {
			t.Errorf("docs/security.md, %s: %v, want %v", head, got, want)
		}
	}
}

var code = regexp.MustCompile("`([a-z_]+)`")

// firstCells are the names in the first column of the table with this head, sorted.
func firstCells(t *testing.T, head string) []string {
	t.Helper()
	text, err := os.ReadFile(root + "/docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "\n"+head)
	if !found {
		t.Fatalf("docs/security.md has no table %s", head)
	}
	table, _, _ = strings.Cut(table, "\n\n")
	names := map[string]int{}
	for row := range strings.Lines(table) {
		if cells := strings.SplitN(row, "|", 3); len(cells) == 3 && cells[0] == "" {
			for _, name := range code.FindAllStringSubmatch(cells[1], -1) {
				names[name[1]]++
			}
		}
	}
	for name, n := range names {
		if n > 1 {
			t.Errorf("docs/security.md has %s %d times", name, n)
		}
	}
	return slices.Sorted(maps.Keys(names))
}
