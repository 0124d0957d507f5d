package docs

import (
	"os"
	"strings"
	"testing"
)

// docs/security.md has a row for each function, and for nothing else.
func TestSecurityHasEveryFunction(t *testing.T) {
	text, err := os.ReadFile(root + "/docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "| function |")
	if !found {
		t.Fatal("docs/security.md has no table of the functions")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	folders, err := os.ReadDir(root + "/functions")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		if !strings.Contains(table, "\n| `"+f.Name()+"` |") {
			t.Errorf("docs/security.md has no row for the function %s", f.Name())
		}
	}
	if rows := strings.Count(table, "\n| `"); rows != len(folders) {
		t.Errorf("docs/security.md has %d rows, and there are %d functions", rows, len(folders))
	}
}
