package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	module = "github.com/sawhorse-io/sawhorse/"
	sdk    = "github.com/aws/aws-sdk-go-v2/service/"
)

// iamNames maps the SDK's names of services to IAM's, where they differ.
var iamNames = map[string]string{"eventbridge": "events", "sfn": "states"}

// routine is one function or method of the project: the names that it uses, its calls of AWS, and the methods of the
// store of records that it uses.
type routine struct {
	place  string
	names  []string
	calls  []string
	stored []string
}

// stores are the names under which code holds the store of records, as a whole or behind an interface of a step.
var stores = []string{"Store", "Records", "records", "Versions", "Contests", "Baselines", "Checkpoints"}

// sources has all routines of a package, by name. Methods of different types may share a name.
type sources struct {
	imports  []string
	routines map[string][]routine
}

// parsed parses a package of the project. A call is identified by its input: &eks.DescribeClusterInput{…} is
// eks:DescribeCluster.
func parsed(t *testing.T, dir string) sources {
	t.Helper()
	s := sources{routines: map[string][]routine{}}
	files, err := fs.Glob(os.DirFS(".."), dir+"/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %v, %v", dir, files, err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", name), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		services := map[string]string{}
		for _, spec := range file.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if own, ours := strings.CutPrefix(path, module); ours {
				s.imports = append(s.imports, own)
			} else if service, aws := strings.CutPrefix(path, sdk); aws && !strings.Contains(service, "/") {
				services[service] = service
				if prefix := iamNames[service]; prefix != "" {
					services[service] = prefix
				}
			}
		}
		for _, declaration := range file.Decls {
			r := routine{place: name}
			ast.Inspect(declaration, func(n ast.Node) bool { return r.note(n, services) })
			key := ""
			if f, ok := declaration.(*ast.FuncDecl); ok {
				key = f.Name.Name
				r.place += " " + key
			}
			s.routines[key] = append(s.routines[key], r)
		}
	}
	return s
}

func (r *routine) note(n ast.Node, services map[string]string) bool {
	switch n := n.(type) {
	case *ast.Ident:
		r.names = append(r.names, n.Name)
	case *ast.SelectorExpr:
		of, _ := n.X.(*ast.Ident)
		if field, ok := n.X.(*ast.SelectorExpr); ok {
			of = field.Sel
		}
		if of != nil && slices.Contains(stores, of.Name) {
			r.stored = append(r.stored, n.Sel.Name)
		}
	case *ast.CompositeLit:
		if of, ok := n.Type.(*ast.SelectorExpr); ok {
			operation, input := strings.CutSuffix(of.Sel.Name, "Input")
			if from, ok := of.X.(*ast.Ident); ok && input && services[from.Name] != "" {
				r.calls = append(r.calls, services[from.Name]+":"+operation)
			}
		}
	}
	return true
}

// asked returns the AWS calls that a function may make: action -> positions in the source.
func asked(t *testing.T, function string) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for _, r := range reached(t, function) {
		for _, call := range r.calls {
			if !slices.Contains(found[call], r.place) {
				found[call] = append(found[call], r.place)
			}
		}
	}
	return found
}

// reached returns the routines that a function may run. It follows names within the packages that the function imports,
// so it may find too many but not too few.
func reached(t *testing.T, function string) (found []routine) {
	t.Helper()
	all, seen := map[string]sources{}, map[string]bool{}
	var load func(dir string)
	load = func(dir string) {
		if _, done := all[dir]; done {
			return
		}
		s := parsed(t, dir)
		all[dir] = s
		for _, i := range s.imports {
			load(i)
		}
	}
	load("functions/" + function)
	todo := []string{"main", ""} // "" stands for code outside of functions
	for len(todo) > 0 {
		name := todo[0]
		todo = todo[1:]
		if seen[name] {
			continue
		}
		seen[name] = true
		for _, s := range all {
			for _, r := range s.routines[name] {
				todo = append(todo, r.names...)
				found = append(found, r)
			}
		}
	}
	return found
}
