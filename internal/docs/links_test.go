package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

const root = "../.." // of the repository

// documents are docs/*.md and the pages beside them, with their text outside of code blocks.
func documents(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(root + "/docs/*.md")
	if err != nil || len(paths) < 10 {
		t.Fatalf("%d documents: the test has lost them (%v)", len(paths), err)
	}
	all := map[string]string{}
	for _, path := range append(paths, root+"/README.md", root+"/CONTRIBUTING.md", root+"/examples/README.md") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Clean(path)] = prose(string(text))
	}
	return all
}

var inline = regexp.MustCompile("`[^`\n]*`")

// prose is a document without its fenced blocks.
func prose(text string) string {
	var out strings.Builder
	fenced := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		} else if !fenced {
			out.WriteString(line)
		}
	}
	return out.String()
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// Every link within the repository leads to a file, and to a heading of it where it names one.
func TestLinks(t *testing.T) {
	all := documents(t)
	links := 0
	for path, text := range all {
		for _, match := range link.FindAllStringSubmatch(inline.ReplaceAllString(text, ""), -1) {
			if strings.Contains(match[1], "://") {
				continue
			}
			links++
			file, anchor, _ := strings.Cut(match[1], "#")
			target := filepath.Clean(path)
			if file != "" {
				target = filepath.Join(filepath.Dir(path), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s: %v", path, match[1], err)
			} else if anchor != "" && !anchors(all[target])[anchor] {
				t.Errorf("%s links to %s: there is no such heading", path, match[1])
			}
		}
	}
	if links < 30 {
		t.Errorf("only %d links: the test does not see them", links)
	}
}

// anchors are the names that GitHub gives a document's headings.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for line := range strings.Lines(text) {
		heading := strings.TrimLeft(line, "#")
		if heading == line || !strings.HasPrefix(heading, " ") {
			continue
		}
		all[strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, strings.TrimSpace(heading))] = true
	}
	return all
}
