package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// pkg is a package as go list prints it, and its tests.
type pkg struct {
	ImportPath, Dir, Name              string
	GoFiles, TestGoFiles, XTestGoFiles []string
	Deps, TestImports, XTestImports    []string

	dependsOn map[string]bool // the packages that its tests depend on
	binary    string          // empty until the tests are built
	limit     time.Duration   // for one run of them
	refused   error           // why they cannot judge
}

func list(patterns []string) ([]*pkg, error) {
	out, err := output("go", append([]string{"list", "-json"}, patterns...)...)
	if err != nil {
		return nil, err
	}
	var all []*pkg
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		p := &pkg{}
		if err := decoder.Decode(p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
}

// world has the chosen mutants and the packages whose tests judge them.
type world struct {
	dir, overlay string
	replace      map[string]string // the changed files by the names of those that they replace; the compiler names the former
	mutants      []*mutant
	tests        []*pkg
	slow         time.Duration
}

// prepare chooses the mutants and builds the tests with them.
func prepare(packages []*pkg, o options) (*world, error) {
	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return nil, err
	}
	w := &world{dir: dir, slow: o.slow}
	var all []*mutant
	sources := map[string][]byte{}
	for _, p := range packages {
		for _, name := range p.GoFiles {
			file := filepath.Join(p.Dir, name)
			if sources[file], err = os.ReadFile(file); err != nil {
				return nil, err
			}
			found, err := find(p.ImportPath, file, sources[file])
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		}
	}
	random := rand.New(rand.NewPCG(o.seed, 0))
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	fmt.Printf("%d changes are possible in %d packages\n", len(all), len(packages))
	if err := w.choose(all, o.n, packages, sources); err != nil {
		return nil, err
	}
	w.tests, err = judges(o.judges, packages)
	return w, err
}

// choose takes mutants that do not overlap until n of them compile together.
func (w *world) choose(all []*mutant, n int, packages []*pkg, sources map[string][]byte) error {
	var taken []*mutant
	for {
		for len(taken) < n && len(all) > 0 {
			next := all[0]
			if all = all[1:]; !slices.ContainsFunc(taken, next.overlaps) {
				taken = append(taken, next)
			}
		}
		if err := w.write(taken, packages, sources); err != nil {
			return err
		}
		args := []string{"build", "-gcflags=-e", "-overlay", w.overlay}
		for _, p := range packages {
			args = append(args, p.ImportPath)
		}
		out, err := exec.Command("go", args...).CombinedOutput()
		if err == nil {
			w.mutants = taken
			return nil
		}
		before := len(taken)
		for message := range strings.Lines(string(out)) {
			if file, line, ok := lineOf(message); ok {
				taken = slices.DeleteFunc(taken, func(m *mutant) bool {
					return filepath.Base(w.replace[m.file]) == filepath.Base(file) && m.line <= line && line <= m.last
				})
			}
		}
		if len(taken) == before {
			return fmt.Errorf("it does not compile, and no change explains it:\n%s", out)
		}
	}
}

// write writes the changed files, and the description of them that the go command reads.
func (w *world) write(taken []*mutant, packages []*pkg, sources map[string][]byte) error {
	w.replace = map[string]string{}
	write := func(file, text string) error {
		w.replace[file] = filepath.Join(w.dir, fmt.Sprintf("%d.go", len(w.replace)))
		return os.WriteFile(w.replace[file], []byte(text), 0o600)
	}
	for file, source := range sources {
		mine := map[int]*mutant{}
		for i, m := range taken {
			if m.file == file {
				mine[i+1] = m
			}
		}
		if len(mine) > 0 {
			if err := write(file, apply(source, mine)); err != nil {
				return err
			}
		}
	}
	for _, p := range packages {
		if slices.ContainsFunc(taken, func(m *mutant) bool { return m.pkg == p.ImportPath }) {
			if err := write(filepath.Join(p.Dir, "mutant__.go"), switches(p.Name)); err != nil {
				return err
			}
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": w.replace})
	if err != nil {
		return err
	}
	w.overlay = filepath.Join(w.dir, "overlay.json")
	return os.WriteFile(w.overlay, text, 0o600)
}

// judges returns the packages whose tests depend on one of the changed packages.
func judges(patterns []string, changed []*pkg) (found []*pkg, err error) {
	all, err := list([]string{"./..."})
	if err != nil {
		return nil, err
	}
	deps := map[string][]string{}
	for _, p := range all {
		deps[p.ImportPath] = p.Deps
	}
	tests, err := list(patterns)
	for _, p := range tests {
		p.dependsOn = map[string]bool{}
		for _, direct := range slices.Concat([]string{p.ImportPath}, p.TestImports, p.XTestImports) {
			p.dependsOn[direct] = true
			for _, dep := range deps[direct] {
				p.dependsOn[dep] = true
			}
		}
		if len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 &&
			slices.ContainsFunc(changed, func(c *pkg) bool { return p.dependsOn[c.ImportPath] }) {
			found = append(found, p)
		}
	}
	return found, err
}

// judge returns the package whose tests notice a mutant. Those of its own package come first. If none does, although those of
// its own package, or all, could not be asked, the mutant has not survived: then judge returns why it is not judged.
func (w *world) judge(number int, m *mutant) (by, notJudged string) {
	others := func(p *pkg) bool { return p.ImportPath != m.pkg }
	judges := slices.DeleteFunc(slices.Clone(w.tests), others)
	for _, p := range w.tests {
		if others(p) && p.dependsOn[m.pkg] {
			judges = append(judges, p)
		}
	}
	var refused []*pkg
	for _, p := range judges {
		if w.build(p); p.refused == nil && w.notices(p, number) {
			return p.ImportPath, ""
		}
		if p.refused != nil {
			refused = append(refused, p)
		}
	}
	switch {
	case len(judges) == 0:
		return "", m.pkg + ": no tests depend on it"
	case len(refused) == len(judges), len(refused) > 0 && !others(refused[0]):
		return "", fmt.Sprintf("%s: %v", refused[0].ImportPath, refused[0].refused)
	}
	return "", ""
}

// build builds a package's tests with all mutants, if that has not been done. They can judge if they pass with none on.
func (w *world) build(p *pkg) {
	if p.binary != "" {
		return
	}
	p.binary = filepath.Join(w.dir, strings.ReplaceAll(p.ImportPath, "/", "_")+".test")
	if _, err := output("go", "test", "-vet=off", "-c", "-overlay", w.overlay, "-o", p.binary, p.ImportPath); err != nil {
		p.refused = fmt.Errorf("its tests do not build: %s", strings.Join(strings.Fields(err.Error()), " "))
		return
	}
	p.limit = w.slow
	began := time.Now()
	p.refused = w.test(p, 0)
	p.limit = 10*time.Second + 4*time.Since(began)
}

// notices reports whether a package's tests fail with a mutant on. If they reach the time limit, that may be the machine's
// fault: then they must pass without the mutant within the same limit, or they can judge nothing any more.
func (w *world) notices(p *pkg, number int) bool {
	err := w.test(p, number)
	if errors.Is(err, context.DeadlineExceeded) {
		p.refused = w.test(p, 0)
	}
	return err != nil && p.refused == nil
}

// test runs a package's tests with one mutant on; 0 means none. Tests that are skipped have noticed nothing and missed nothing,
// so they must not be.
func (w *world) test(p *pkg, number int) error {
	ctx, end := context.WithTimeout(context.Background(), p.limit)
	defer end()
	command := exec.CommandContext(ctx, p.binary, "-test.failfast", "-test.v")
	command.Dir, command.WaitDelay = p.Dir, time.Second
	command.Env = append(os.Environ(), fmt.Sprintf("%s=%d", variable, number))
	out, err := command.Output()
	_, failed, _ := strings.Cut(string(out), "--- FAIL: ")
	skipped := strings.Count(string(out), "--- SKIP: ")
	switch {
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("its tests take longer than %v: %w", p.limit, ctx.Err())
	case err != nil:
		return fmt.Errorf("its tests fail: %w: %s", err, short(failed))
	case skipped > 0:
		return fmt.Errorf("%d of its tests are skipped", skipped)
	}
	return nil
}

func output(name string, args ...string) ([]byte, error) {
	var stderr bytes.Buffer
	command := exec.Command(name, args...)
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", name, err, stderr.String())
	}
	return out, nil
}
