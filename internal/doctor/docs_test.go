package doctor

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tables of docs/doctor.md again")

// The document's tables equal the code's lists.
func TestDocumentationIsTheChecks(t *testing.T) {
	const path, heading = "../../docs/doctor.md", "## The checks\n\n"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	prose, tables, found := strings.Cut(string(text), heading)
	if !found {
		t.Fatalf("docs/doctor.md has no %q", heading)
	}
	if *update {
		if err := os.WriteFile(path, []byte(prose+heading+Markdown()), 0o644); err != nil {
			t.Fatal(err)
		}
		tables = Markdown()
	}
	if tables != Markdown() {
		t.Errorf("docs/doctor.md is not what the checks say; run go test ./internal/doctor -update")
	}
}
