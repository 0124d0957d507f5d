package params

import (
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "write docs/parameters.md, and instance_types.txt from Karpenter's module, again")

// docs/parameters.md must have the content that the table produces.
func TestDocumentationIsTheTable(t *testing.T) {
	const path = "../../docs/parameters.md"
	if *update {
		if err := os.WriteFile(path, []byte(Markdown()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != Markdown() {
		t.Errorf("docs/parameters.md is not what the table says; run go test ./internal/params -update")
	}
}
