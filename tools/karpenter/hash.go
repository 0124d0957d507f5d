package main

import (
	"fmt"
	"go/ast"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/karpenter"
)

// hash describes the hash of a kind from the API package that declares it: from what its method Hash passes to
// hashstructure, and from the tags of the fields below.
func hash(dir, kind string) (karpenter.Hash, error) {
	parsed, err := parse(dir)
	if err != nil {
		return karpenter.Hash{}, err
	}
	w := &walk{source: parsed, kind: kind}
	w.Version = parsed.text(kind + "HashVersion")
	method := parsed.methods[kind+".Hash"]
	if w.Version == "" || method == nil {
		return w.Hash, fmt.Errorf("%s: %s has no method Hash, or no constant %sHashVersion", filepath.ToSlash(dir), kind, kind)
	}
	for _, term := range terms(method) {
		if err := w.term(method, term); err != nil {
			return w.Hash, fmt.Errorf("%s: the hash of %s: %w", filepath.ToSlash(dir), kind, err)
		}
	}
	if len(w.Covers) == 0 {
		return w.Hash, fmt.Errorf("%s: the hash of %s covers nothing", filepath.ToSlash(dir), kind)
	}
	slices.Sort(w.Covers)
	w.Covers = slices.Compact(w.Covers)
	slices.Sort(w.Ignores)
	w.Ignores = slices.DeleteFunc(w.Ignores, func(path string) bool { return slices.Contains(w.Covers, path) })
	return w.Hash, nil
}

// terms returns the values that a method Hash passes to hashstructure.Hash.
func terms(method *ast.FuncDecl) (all []ast.Expr) {
	ast.Inspect(method, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		function, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || function.Sel.Name != "Hash" || nameOf(function.X) != "hashstructure" {
			return true
		}
		if list, ok := call.Args[0].(*ast.CompositeLit); ok {
			all = list.Elts
		} else {
			all = call.Args[:1]
		}
		return false
	})
	return all
}

// walk collects the paths of a kind's hash.
type walk struct {
	source
	karpenter.Hash
	kind string
}

// term adds one value of a hash: a part of the object like in.Spec.Template, its text like in.Spec.Kubelet.String(), a
// field that a method of the object resolves like in.AMIFamily(), or a parameter like lo.FromPtr(caBundle).
func (w *walk) term(method *ast.FuncDecl, term ast.Expr) error {
	receiver := method.Recv.List[0].Names[0].Name
	call, isCall := term.(*ast.CallExpr)
	if !isCall {
		fields, ok := chain(term, receiver)
		if !ok {
			return fmt.Errorf("the generator does not know a value of type %T", term)
		}
		path, declared, err := w.resolve(fields)
		if err != nil {
			return err
		}
		w.fields(path, declared)
		return nil
	}
	called := nameOf(call.Fun)
	if method, ok := call.Fun.(*ast.SelectorExpr); ok {
		called = method.Sel.Name
		if fields, ok := chain(method.X, receiver); ok {
			if len(fields) == 0 {
				fields = []string{"Spec", called}
			}
			path, _, err := w.resolve(fields)
			w.Covers = append(w.Covers, path)
			return err
		}
	}
	for _, argument := range call.Args {
		for _, parameter := range method.Type.Params.List {
			for _, name := range parameter.Names {
				if nameOf(argument) == name.Name {
					w.Besides = append(w.Besides, name.Name)
					return nil
				}
			}
		}
	}
	return fmt.Errorf("the generator does not know what the call of %s adds", called)
}

// chain returns the fields in a selection like in.Spec.Template.
func chain(e ast.Expr, receiver string) ([]string, bool) {
	switch t := e.(type) {
	case *ast.Ident:
		return nil, t.Name == receiver
	case *ast.SelectorExpr:
		fields, ok := chain(t.X, receiver)
		return append(fields, t.Sel.Name), ok
	}
	return nil, false
}

// resolve returns the path and the type of a field of the kind, given by the names in Go.
func (w *walk) resolve(fields []string) (path string, declared ast.Expr, err error) {
	declared = ast.NewIdent(w.kind)
	for _, name := range fields {
		structure, ok := w.types[nameOf(declared)].(*ast.StructType)
		if !ok {
			return "", nil, fmt.Errorf("the type of %s is no struct of the package", path)
		}
		index := slices.IndexFunc(structure.Fields.List, func(f *ast.Field) bool { return len(f.Names) == 1 && f.Names[0].Name == name })
		if index < 0 {
			return "", nil, fmt.Errorf("%s has no field %s", path, name)
		}
		field := structure.Fields.List[index]
		json, _, _ := tags(field)
		path, declared = join(path, json), field.Type
	}
	return path, declared, nil
}

// fields adds the fields of a type, or the path itself if the type has none in this package or encodes itself.
func (w *walk) fields(path string, declared ast.Expr) {
	if list, ok := declared.(*ast.ArrayType); ok {
		w.fields(path+"[]", list.Elt)
		return
	}
	if pointer, ok := declared.(*ast.StarExpr); ok {
		w.fields(path, pointer.X)
		return
	}
	name := nameOf(declared)
	structure, ok := w.types[name].(*ast.StructType)
	if !ok || w.methods[name+".MarshalJSON"] != nil {
		w.Covers = append(w.Covers, path)
		return
	}
	for _, field := range structure.Fields.List {
		json, inline, hash := tags(field)
		switch {
		case inline:
			w.fields(path, field.Type)
		case hash == "ignore":
			w.Ignores = append(w.Ignores, join(path, json))
		default:
			w.fields(join(path, json), field.Type)
		}
	}
}

// tags returns a field's name in JSON, whether its fields stand in place of it, and its tag for the hash.
func tags(field *ast.Field) (json string, inline bool, hash string) {
	var tag reflect.StructTag
	if field.Tag != nil {
		text, _ := strconv.Unquote(field.Tag.Value)
		tag = reflect.StructTag(text)
	}
	json, _, _ = strings.Cut(tag.Get("json"), ",")
	return json, len(field.Names) == 0 && json == "", tag.Get("hash")
}

func join(path, name string) string { return strings.TrimPrefix(path+"."+name, ".") }
