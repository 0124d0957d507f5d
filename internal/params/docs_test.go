package params

import (
	"flag"
	"os"
	"testing"
)

var updateDocs = flag.Bool("update-docs", false, "write docs/parameters.md anew")

// docs/parameters.md must have the content that the table produces.
func TestDocumentationIsTheTable(t *testing.T) {
	const path = "../../docs/parameters.md"
	if *updateDocs {
		if err := os.WriteFile(path, []byte(Markdown()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != Markdown() {
		t.Errorf("docs/parameters.md is not what the table says; run go test ./internal/params -update-docs")
	}
}
