package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mentioned is the program's name where a command line begins, with what follows it: at the beginning of a line or of a code
// span, or behind a prompt, a pipe or the like.
var mentioned = regexp.MustCompile("(?m)(?:^|[`|;(] ?|\\$ |&& |then |run: )(?:\\.cache/bin/)?sawhorse ([a-z-][^`|;)\n]*)")

// Every command line in the documents names a command that there is, and flags that this command has.
func TestCommandLinesOfDocuments(t *testing.T) {
	paths, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for _, path := range append(paths, "../../README.md") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range mentioned.FindAllStringSubmatch(string(text), -1) {
			words := strings.Fields(match[1])
			if words[0] == "help" {
				continue
			}
			lines++
			c, known := find(words[0])
			if !known {
				t.Errorf("%s: %q: there is no command %s", path, match[0], words[0])
				continue
			}
			for _, word := range words[1:] {
				if flag, _, _ := strings.Cut(word, "="); len(flag) > 1 && flag[0] == '-' && !slices.Contains(c.flags, flag) {
					t.Errorf("%s: %q: %s has no flag %s", path, match[0], c.name, flag)
				}
			}
		}
	}
	if lines < 40 {
		t.Errorf("only %d command lines: the test does not see them", lines)
	}
}
