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
	files []*ast.File
	// types are the declared types by name, and constants those with a text.
	types     map[string]ast.Expr
	constants map[string]string
	// methods are the functions with a receiver, by "type.method".
	methods map[string]*ast.FuncDecl
}

// parse parses the Go files of a folder, without tests.
func parse(dir string) (source, error) {
	s := source{types: map[string]ast.Expr{}, constants: map[string]string{}, methods: map[string]*ast.FuncDecl{}}
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
		s.files = append(s.files, file)
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
			case *ast.TypeSpec:
				s.types[t.Name.Name] = t.Type
			case *ast.ValueSpec:
				for i, name := range t.Names {
					if i < len(t.Values) && d.Tok == token.CONST {
						if text, ok := literal(t.Values[i]); ok {
							s.constants[name.Name] = text
						}
					}
				}
			}
		}
	}
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

// imports returns the paths that a file imports, by the names it uses for them.
func imports(file *ast.File) map[string]string {
	all := map[string]string{}
	for _, spec := range file.Imports {
		path, _ := literal(spec.Path)
		name := path[strings.LastIndex(path, "/")+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		all[name] = path
	}
	return all
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
