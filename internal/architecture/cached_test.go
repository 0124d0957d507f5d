package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	// above finds the way up with which a path in a text begins.
	above = regexp.MustCompile(`(?:^|[^\w./])((?:\.\./)*\.\.)(?:/|$)`)
	// installed are the interpreters of the sandbox's Python packages. What they run is in the test's own module, where the test
	// can look at it.
	installed = regexp.MustCompile(`\.cache/(ministack|venv)/bin/python$`)
	// fresh are the flags with which go test takes nothing from its cache.
	fresh = regexp.MustCompile(` -(count=1|update|release|bench)\b`)
	// inModule is how a line of the Makefile says in which module it runs go test.
	inModule = regexp.MustCompile(`\bcd (\S+) &&|\bgo test -C (\S+)`)
	// without is the list of all packages of a module but some.
	without = regexp.MustCompile(`\$\$\(go list \./\.\.\. \| grep -vE '([^']+)'\)`)
)

// testRun is a line of the Makefile that runs go test.
type testRun struct {
	line, module string
	packages     []string       // as go test takes them
	not          *regexp.Regexp // packages that it leaves out, or nil
}

// has is whether the run is of a package. dir is its folder in the module, "." for the module's own.
func (r testRun) has(module, dir string) bool {
	return r.module == module && (r.not == nil || !r.not.MatchString("/"+dir)) && slices.ContainsFunc(r.packages, func(pattern string) bool {
		whole, all := strings.CutSuffix(pattern, "...")
		whole = path.Clean(whole)
		return dir == whole || all && (whole == "." || strings.HasPrefix(dir, whole+"/"))
	})
}

// Go's cache of test results does not know of files outside of a test's module: it gives the old result after such a file has changed.
// So the Makefile runs a package each time if a test of it names a path that begins above its module.
func TestWhatReadsFilesOfAnotherModuleRunsEachTime(t *testing.T) {
	runs, seen := testRuns(t), map[string]bool{}
	for _, file := range goFiles(t, root) {
		if !strings.HasSuffix(file, "_test.go") {
			continue
		}
		module, dir := moduleOf(file)
		name := pathAbove(t, file, dir)
		if name == "" {
			continue
		}
		seen[path.Join(module, dir)] = true
		each := false
		for _, r := range runs {
			switch {
			case !r.has(module, dir):
			case fresh.MatchString(r.line):
				each = true
			default:
				t.Errorf("%s: %s is outside of its module, and Go's cache may have the results of the Makefile's %q", file, name, r.line)
			}
		}
		if !each {
			t.Errorf("%s: %s is outside of its module, and the Makefile does not run its package with -count=1", file, name)
		}
	}
	if len(seen) < 5 || len(runs) < 10 {
		t.Errorf("%d runs, and packages %v: the test has lost them", len(runs), seen)
	}
}

// testRuns returns the runs of go test in the Makefile, without that of a fuzz target, which has no cache.
func testRuns(t *testing.T) (all []testRun) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(content), "\\\n", "")
	_, units, _ := strings.Cut(text, "\nUNIT_PACKAGES ?= ")
	units, _, _ = strings.Cut(units, "\n")
	text = strings.ReplaceAll(text, "$(UNIT_PACKAGES)", units)
	for line := range strings.Lines(text) {
		_, arguments, found := strings.Cut(strings.TrimSpace(line), "go test ")
		if !found || !strings.HasPrefix(line, "\t") || strings.Contains(line, " -fuzz ") {
			continue
		}
		r := testRun{line: strings.TrimSpace(line), module: "."}
		if m := inModule.FindStringSubmatch(line); m != nil {
			r.module = m[1] + m[2]
		}
		if m := without.FindStringSubmatch(line); m != nil {
			r.not = regexp.MustCompile(strings.ReplaceAll(m[1], "$$", "$"))
			arguments = strings.Replace(arguments, m[0], "./...", 1)
		}
		for _, word := range strings.Fields(arguments) {
			if word == "." || strings.HasPrefix(word, "./") {
				r.packages = append(r.packages, word)
			}
		}
		if len(r.packages) == 0 {
			t.Errorf("which packages does %q test?", r.line)
		}
		all = append(all, r)
	}
	return all
}

// moduleOf returns the folder of a file's module, and that of its package in it.
func moduleOf(file string) (module, dir string) {
	for module = path.Dir(file); module != "."; module = path.Dir(module) {
		if _, err := os.Stat(filepath.Join(root, module, "go.mod")); err == nil {
			break
		}
	}
	if module == "." {
		return module, path.Dir(file)
	}
	return module, path.Clean("." + strings.TrimPrefix(path.Dir(file), module))
}

// pathAbove returns a text of the file, whose package has the folder dir in its module, that is a path out of the module.
func pathAbove(t *testing.T, file, dir string) (name string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	depth := 0
	for ; dir != "."; dir = path.Dir(dir) {
		depth++
	}
	ast.Inspect(parsed, func(node ast.Node) bool {
		literal, ok := node.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return true
		}
		text, err := strconv.Unquote(literal.Value)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range above.FindAllStringSubmatch(text, -1) {
			if strings.Count(m[1], "..") > depth && !installed.MatchString(text) {
				name = literal.Value
			}
		}
		return true
	})
	return name
}
