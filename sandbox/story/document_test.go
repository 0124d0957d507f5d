package story

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A command may go on over lines, until bash would run it; what follows it is its output.
func TestTyped(t *testing.T) {
	got := Typed("$ echo 'a\nb' |\n    cat\na\nb\n$ cat <<E\nx\nE\nx\n$ true \\\n  --yes\n")
	want := []Typing{{"echo 'a\nb' |\n    cat", "a\nb\n"}, {"cat <<E\nx\nE", "x\n"}, {"true \\\n  --yes", ""}}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A document that shows another output than its command prints fails, and so does a command that fails silently.
func TestDocument(t *testing.T) {
	for _, c := range []struct{ session, failure string }{
		{"$ printf 'a   1\\nb 2\\nc 3\\n'\na 1\n…\nc …\n", ""},
		{"$ echo '19:56:46 x 2026-11-26T19:56:46Z 102.4 s 4m'\n00:00:01  x  2020-01-01T00:00:00Z  1.0 s  59s\n", ""},
		{"$ echo refused; false\nrefused\n", ""},
		{"$ echo a\nb\n", `what it prints: wanted "b", got "a"`},
		{"$ echo a\n", `what it prints: wanted "", got "a"`},
		{"$ printf 'a\\nb\\n'\na\n", `what it prints: wanted "a", got "a\nb"`},
		{"$ false\n", "`false` ended with exit status 1"},
		{"", `wanted "some", got "none"`},
	} {
		path := filepath.Join(t.TempDir(), "document.md")
		if err := os.WriteFile(path, []byte("# Title\n\n```console\n"+c.session+"```\n\n## End\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		s, output := played(t, Document(path))
		switch failures := strings.Join(s.Failures(), "\n"); {
		case c.failure == "" && (failures != "" || s.Passed() == 0):
			t.Errorf("%q: %s", c.session, output)
		case c.failure != "" && !strings.Contains(failures, c.failure):
			t.Errorf("%q: got %q, want %q", c.session, failures, c.failure)
		}
	}
}
