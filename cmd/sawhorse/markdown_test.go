package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// section is a part of a document under a heading of the second level.
type section struct {
	title  string
	blocks []block
	// prose has the lines outside the blocks.
	prose []string
}

// block is a fenced block of a document.
type block struct {
	language, text string
	// behind is the first line of prose after the block; empty if another block follows.
	behind string
}

var fence = regexp.MustCompile("^```([a-z]*)$")

func document(t testing.TB, path string) []section {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all := []section{{}}
	var in *block
	waiting := false // for the prose after a block
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		at := &all[len(all)-1]
		switch match := fence.FindStringSubmatch(line); {
		case in != nil && line == "```":
			at.blocks, in, waiting = append(at.blocks, *in), nil, true
		case in != nil:
			in.text += line + "\n"
		case match != nil:
			in, waiting = &block{language: match[1]}, false
		case strings.HasPrefix(line, "## "):
			all, waiting = append(all, section{title: line[3:]}), false
		case line != "":
			if at.prose = append(at.prose, line); waiting {
				at.blocks[len(at.blocks)-1].behind = line
			}
			waiting = false
		}
	}
	if in != nil {
		t.Fatalf("%s: a block has no end", path)
	}
	return all
}
