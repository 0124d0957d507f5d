package main

import (
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
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
	w := prepared(t, options{n: 2}, map[string]string{
		"sample.go": "package sample\n\nfunc f(x float64) float64 { return x * 100 }\n\nfunc g() bool { return true }\n",
	})
	if len(w.mutants) != 1 || w.mutants[0].what != "the other truth value: true" {
		t.Error(w.mutants)
	}
}

// Tests that do not all pass without the change say nothing about it: it counts neither as noticed nor as survived, nor is it
// dropped.
func TestNotJudged(t *testing.T) {
	const passes = "if !g() { t.Error() }"
	for _, c := range []struct {
		name, body   string
		slow, limit  time.Duration
		by, reported string
	}{
		{"they pass", passes, time.Minute, time.Minute, "sample", ""},
		{"they do not build", "g(1)", time.Minute, time.Minute, "", "sample: its tests do not build"},
		{"they fail", "if g() { t.Error() }", time.Minute, time.Minute, "", "sample: its tests fail: exit status 1: TestG ("},
		{"they are skipped", "t.Skip()", time.Minute, time.Minute, "", "sample: 1 of its tests are skipped"},
		{"they take too long", passes, 0, time.Minute, "", "sample: its tests take longer than 0s"},
		{"they take too long now", passes, time.Minute, 0, "", "sample: its tests take longer than 0s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := prepared(t, options{n: 1, slow: c.slow}, map[string]string{
				"sample.go":      "package sample\n\nfunc g() bool { return true }\n",
				"sample_test.go": "package sample\n\nimport \"testing\"\n\nfunc TestG(t *testing.T) { " + c.body + " }\n",
			})
			w.build(w.tests[0])
			w.tests[0].limit = c.limit
			by, reported := w.judge(1, w.mutants[0])
			if by != c.by || !strings.HasPrefix(reported, c.reported) || (reported == "") != (c.reported == "") {
				t.Errorf("noticed by %q, not judged %q; want %q, %q", by, reported, c.by, c.reported)
			}
		})
	}
}

// prepared has the changes of a module with these files, and its tests.
func prepared(t *testing.T, o options, files map[string]string) *world {
	t.Helper()
	t.Chdir(t.TempDir())
	files["go.mod"] = "module sample\n\ngo 1.26\n"
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	packages, err := list([]string{"."})
	if err != nil {
		t.Fatal(err)
	}
	o.judges = []string{"."}
	w, err := prepare(packages, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(w.dir) })
	return w
}
