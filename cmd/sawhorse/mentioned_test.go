package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// mentioned matches the program's name at the start of a command line, with what follows it: at the start of a line or
// of a code span, or after a prompt, a pipe or the like.
var mentioned = regexp.MustCompile("(?m)(?:^|[`|;(] ?|\\$ |&& |then |run: )(?:\\.cache/bin/)?sawhorse ([a-z-][^`|;)\n]*)")

// Every command line in the documents uses an existing command, and flags that this command has.
func TestCommandLinesOfDocuments(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for _, path := range append(paths, "../../README.md", "../../examples/README.md") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range mentioned.FindAllStringSubmatch(string(text), -1) {
			words := strings.Fields(match[1])
			lines++
			c, _, err := root().Find(words)
			if err != nil {
				t.Errorf("%s: %q: %v", path, match[0], err)
				continue
			}
			for _, word := range words[1:] {
				flag, _, _ := strings.Cut(word, "=")
				long, isLong := strings.CutPrefix(flag, "--")
				switch {
				case isLong && long != "" && c.Flags().Lookup(long) == nil,
					!isLong && len(flag) > 1 && flag[0] == '-' && (len(flag) > 2 || c.Flags().ShorthandLookup(flag[1:]) == nil):
					t.Errorf("%s: %q: %s has no flag %s", path, match[0], c.Name(), flag)
				}
			}
		}
	}
	if lines < 40 {
		t.Errorf("only %d command lines: the test does not see them", lines)
	}
}

// write matches a command that writes a parameter. A mere mention of put-parameter has no --name.
var write = regexp.MustCompile("aws ssm put-parameter[^`\n]* --name [^`\n]*")

// Every command that writes a parameter, in the documents and in the program's messages, gives the type. SSM
// requires the type for a parameter that does not exist, as in a rack that has not been registered, and accepts it
// for one that exists.
func TestWritesGiveTheType(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	paths = append(paths, "../../README.md", "../../examples/README.md")
	for _, root := range []string{"../../internal", "../../cmd", "../../functions", "../../cdk"} {
		if err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
				paths = append(paths, path)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	writes := 0
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, command := range write.FindAllString(string(text), -1) {
			writes++
			if !strings.Contains(command, " --type String ") {
				t.Errorf("%s: a parameter that does not exist cannot be written without --type String: %s", path, command)
			}
		}
	}
	if writes < 40 {
		t.Errorf("only %d commands that write a parameter: the test does not see them", writes)
	}
}
