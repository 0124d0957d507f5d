package main

import (
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"
)

const sample = `package sample

const most = 3

func f(n int, on bool) (sum int, err error) {
	for i := 0; i < n && !on; i++ {
		sum += i
	}
	if err := g(); err != nil {
		return 0, err
	}
	on = true
	g()
	return sum, nil
}
`

// Every kind of change is found, none in a constant or in the head of a statement.
func TestFind(t *testing.T) {
	found, err := find("sample", "sample.go", []byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range found {
		got = append(got, strings.TrimPrefix(m.String(), "sample.go:"))
	}
	want := []string{
		"6  a number more: 0", "6  || for &&: i < n && !on", "6  <= for <: i < n", "7  statement dropped: sum += i",
		"9  condition negated: err != nil", "9  == for !=: err != nil", "10  a number more: 0", "12  statement dropped: on = true",
		"12  the other truth value: true", "13  statement dropped: g()",
	}
	slices.Sort(got)
	if slices.Sort(want); !slices.Equal(got, want) {
		t.Errorf("%q\nwant\n%q", got, want)
	}
}

// With all changes in it and all off, the file is Go that can be parsed. Each change can be switched on by its number.
func TestApply(t *testing.T) {
	found, err := find("sample", "sample.go", []byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	chosen := map[int]*mutant{}
	for i, m := range found {
		if !slices.ContainsFunc(found[:i], m.overlaps) {
			chosen[i+1] = m
		}
	}
	text := apply([]byte(sample), chosen)
	if _, err := parser.ParseFile(token.NewFileSet(), "sample.go", text, 0); err != nil {
		t.Errorf("%v in\n%s", err, text)
	}
	for number, m := range chosen {
		if !strings.Contains(text, m.text(number)) {
			t.Errorf("%s is not in\n%s", m, text)
		}
	}
	if strings.Count(text, "\n") != strings.Count(sample, "\n") {
		t.Error("the lines have moved, so the compiler's errors would be taken for those of other changes")
	}
}

// A change that the compiler refuses is left out.
func TestAChangeThatDoesNotCompile(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"go.mod":    "module sample\n\ngo 1.26\n",
		"sample.go": "package sample\n\nfunc f(x float64) float64 { return x * 100 }\n\nfunc g() bool { return true }\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	packages, err := list([]string{"."})
	if err != nil {
		t.Fatal(err)
	}
	w, err := prepare(packages, options{n: 2, judges: []string{"."}})
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(w.dir)
	if len(w.mutants) != 1 || w.mutants[0].what != "the other truth value: true" {
		t.Error(w.mutants)
	}
}
