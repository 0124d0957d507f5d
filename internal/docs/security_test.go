package docs

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
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

var (
	code     = regexp.MustCompile("`([a-z_]+)`")
	testName = regexp.MustCompile("`(Test[A-Za-z0-9]+)`")
	testFunc = regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9]+)\(`)
)

// Each row of what a parameter reaches names at least one test, and each test that the page names exists.
func TestSecurityNamesTestsThatExist(t *testing.T) {
	there := tests(t)
	for row := range strings.Lines(table(t, "| parameters |")) {
		if strings.HasPrefix(row, "| `") && !testName.MatchString(row) {
			t.Errorf("docs/security.md names no test of the row %s", row)
		}
	}
	for _, match := range testName.FindAllStringSubmatch(security(t), -1) {
		if !there[match[1]] {
			t.Errorf("docs/security.md names %s, which does not exist", match[1])
		}
	}
}

// tests are the names of all test functions of the project, the end-to-end scripts' among them.
func tests(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, folder := range []string{"internal", "cdk", "cmd", "events", "functions", "statemachine", "tools", "sandbox"} {
		err := filepath.WalkDir(root+"/"+folder, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			source, err := os.ReadFile(path)
			for _, match := range testFunc.FindAllStringSubmatch(string(source), -1) {
				names[match[1]] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return names
}

// firstCells are the names in the first column of the table with this head, sorted.
func firstCells(t *testing.T, head string) []string {
	t.Helper()
	names := map[string]int{}
	for row := range strings.Lines(table(t, head)) {
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

func security(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(root + "/docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// table returns the rows of the table of docs/security.md that begins with this head.
func table(t *testing.T, head string) string {
	t.Helper()
	_, rows, found := strings.Cut(security(t), "\n"+head)
	if !found {
		t.Fatalf("docs/security.md has no table %s", head)
	}
	rows, _, _ = strings.Cut(rows, "\n\n")
	return rows
}
