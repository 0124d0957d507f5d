package docs

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "../.." // of the repository

// source is the Go code that speaks to users: its files, and what its constants and its functions of one return say.
type source struct {
	files     []file
	constants map[string]ast.Expr // by package and name: "names.TagRack"
	functions map[string]ast.Expr // what a function of one statement, or its last one, returns
}

type file struct {
	path, pkg string
	tree      *ast.File
}

// readSource parses what is below the folders, without tests and what serves them.
func readSource(t *testing.T, folders ...string) *source {
	t.Helper()
	s := &source{constants: map[string]ast.Expr{}, functions: map[string]ast.Expr{}}
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if entry.IsDir() && slices.Contains([]string{"testdata", "awsfake", "k8sfake", "k8stest"}, entry.Name()) {
				return fs.SkipDir
			}
			if entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return nil
			}
			tree, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			relative, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			s.add(file{filepath.ToSlash(relative), tree.Name.Name, tree})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(s.files) < 80 {
		t.Fatalf("%d files: the test has lost the sources", len(s.files))
	}
	return s
}

func (s *source) add(f file) {
	s.files = append(s.files, f)
	for _, declaration := range f.tree.Decls {
		switch d := declaration.(type) {
		case *ast.GenDecl:
			if d.Tok != token.CONST {
				continue
			}
			for _, spec := range d.Specs {
				value := spec.(*ast.ValueSpec)
				for i, name := range value.Names {
					if i < len(value.Values) {
						s.constants[f.pkg+"."+name.Name] = value.Values[i]
					}
				}
			}
		case *ast.FuncDecl:
			if d.Body == nil || len(d.Body.List) == 0 {
				continue
			}
			if last, ok := d.Body.List[len(d.Body.List)-1].(*ast.ReturnStmt); ok && len(last.Results) == 1 {
				s.functions[f.pkg+"."+d.Name.Name] = last.Results[0]
			}
		}
	}
}

// calls visits every call in every file, with the function that it stands in.
func (s *source) calls(visit func(f file, in string, call *ast.CallExpr)) {
	s.nodes(func(f file, in string, n ast.Node) {
		if call, ok := n.(*ast.CallExpr); ok {
			visit(f, in, call)
		}
	})
}

func (s *source) nodes(visit func(f file, in string, n ast.Node)) {
	for _, f := range s.files {
		for _, declaration := range f.tree.Decls {
			in := ""
			if d, ok := declaration.(*ast.FuncDecl); ok {
				in = d.Name.Name
			}
			ast.Inspect(declaration, func(n ast.Node) bool {
				if n != nil {
					visit(f, in, n)
				}
				return true
			})
		}
	}
}

// called is the name of what a call calls, without its package or receiver.
func called(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

// literal is the text of a string literal, or of several with plus signs between them.
func literal(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return e.Value, e.Kind == token.INT
		}
		return constant.StringVal(constant.MakeFromLiteral(e.Value, e.Kind, 0)), true
	case *ast.BinaryExpr:
		left, a := literal(e.X)
		right, b := literal(e.Y)
		return left + right, a && b && e.Op == token.ADD
	}
	return "", false
}
