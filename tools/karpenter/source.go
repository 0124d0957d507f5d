package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
)

// source is a parsed package of Karpenter's.
type source struct {
	// types are the declared types by name, and values what constants and variables are initialized with.
	types, values map[string]ast.Expr
	// methods are the functions with a receiver, by "type.method".
	methods map[string]*ast.FuncDecl
	// imports are the paths of the imported packages, by the names that the files use for them.
	imports map[string]string
}

// parse parses the Go files of a folder, without tests.
func parse(dir string) (source, error) {
	s := source{
		types: map[string]ast.Expr{}, values: map[string]ast.Expr{}, methods: map[string]*ast.FuncDecl{}, imports: map[string]string{},
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return s, err
	}
	if len(files) == 0 {
		return s, fmt.Errorf("%s has no Go files", dir)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return s, err
		}
		for _, declaration := range file.Decls {
			s.declare(declaration)
		}
	}
	return s, nil
}

func (s source) declare(declaration ast.Decl) {
	switch d := declaration.(type) {
	case *ast.FuncDecl:
		if d.Recv != nil {
			s.methods[nameOf(d.Recv.List[0].Type)+"."+d.Name.Name] = d
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch t := spec.(type) {
			case *ast.ImportSpec:
				path, _ := literal(t.Path)
				name := path[strings.LastIndex(path, "/")+1:]
				if t.Name != nil {
					name = t.Name.Name
				}
				s.imports[name] = path
			case *ast.TypeSpec:
				s.types[t.Name.Name] = t.Type
			case *ast.ValueSpec:
				for i, value := range t.Values {
					s.values[t.Names[i].Name] = value
				}
			}
		}
	}
}

// text returns the text that a constant or a variable is initialized with; empty if there is none.
func (s source) text(name string) string {
	text, _ := literal(s.values[name])
	return text
}

// literal returns the text of a string literal.
func literal(e ast.Expr) (string, bool) {
	basic, ok := e.(*ast.BasicLit)
	if !ok || basic.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(basic.Value)
	return text, err == nil
}

// nameOf returns the name of a type of the same package, of a pointer to it, or of a type with parameters; empty for others.
func nameOf(e ast.Expr) string {
	switch t := e.(type) {
	case *ast.Ident:
		return t.Name
	case *ast.StarExpr:
		return nameOf(t.X)
	case *ast.IndexExpr:
		return nameOf(t.X)
	}
	return ""
}

// inspectAll calls visit for all syntax below a folder, without tests and without the folders named in except.
func inspectAll(root string, except []string, visit func(ast.Node)) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		for _, folder := range except {
			if entry.IsDir() && filepath.ToSlash(relative) == folder {
				return fs.SkipDir
			}
		}
		if entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			visit(n)
			return true
		})
		return nil
	})
}
