package docs

import (
	"go/ast"
	"slices"
	"strings"
)

// reasons are the parts of sentences that say what is wrong with a value: errors of package params, what an s3:// value leads to,
// and what is wrong with a change request.
type reasons struct{ values, documents, requests []string }

func (s *source) reasons() reasons {
	var found reasons
	add := func(list *[]string, text string) {
		if strings.Contains(text, " ") && !slices.Contains(*list, text) {
			*list = append(*list, text)
		}
	}
	sort := func(text string) {
		switch first, _, _ := strings.Cut(text, " "); first {
		case "which", "in":
			add(&found.values, text)
		case "is", "has", "leads":
			add(&found.documents, text)
		}
	}
	s.nodes(func(f file, _ string, n ast.Node) {
		switch n := n.(type) {
		case *ast.CallExpr:
			name := called(n)
			switch {
			case f.pkg == "params" && (name == "Errorf" || name == "New"):
				sort(s.callWords(f.pkg, n))
			case f.pkg == "params" && name == "flaw" && len(n.Args) > 1:
				add(&found.documents, s.format(f.pkg, n.Args[1:]))
			}
		case *ast.CompositeLit:
			for _, e := range n.Elts {
				if pair, ok := e.(*ast.KeyValueExpr); ok && f.pkg == "validate" {
					if key, ok := pair.Key.(*ast.Ident); ok && key.Name == "Problem" {
						add(&found.documents, s.words(f.pkg, pair.Value))
					}
				}
			}
		case *ast.FuncDecl:
			if f.path == "internal/rack/changes.go" {
				for _, text := range s.texts(f.pkg, n) {
					if strings.HasPrefix(text, "has ") || strings.HasPrefix(text, "sets ") || strings.HasPrefix(text, "unsets ") || strings.HasPrefix(text, "is larger") {
						add(&found.requests, text)
					}
				}
			}
		}
	})
	return found
}

// texts are the formatted texts below a node, and the literals that are in none.
func (s *source) texts(pkg string, in ast.Node) (all []string) {
	ast.Inspect(in, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if called(n) == "Sprintf" {
				all = append(all, s.format(pkg, n.Args))
				return false
			}
		case *ast.BasicLit:
			if text, ok := literal(n); ok {
				all = append(all, text)
			}
		}
		return true
	})
	return all
}

// waits are what each step waits for, by the step's package.
func (s *source) waits() map[string][]string {
	all := map[string][]string{}
	s.calls(func(f file, _ string, call *ast.CallExpr) {
		if called(call) != "NotYet" || len(call.Args) < 2 {
			return
		}
		text := s.format(f.pkg, call.Args[1:])
		if strings.Trim(text, "<>abcdefghijklmnopqrstuvwxyz/: ") == "" && !strings.Contains(strings.Trim(text, "<>"), " ") || slices.Contains(all[f.pkg], text) {
			return // nothing but placeholders
		}
		all[f.pkg] = append(all[f.pkg], text)
	})
	for _, list := range all {
		slices.Sort(list)
	}
	return all
}

// failures are the errors of steps that are no wrapped ones: what only Sawhorse itself can say.
func (s *source) failures() (all []string) {
	s.calls(func(f file, in string, call *ast.CallExpr) {
		ours := strings.HasPrefix(f.path, "internal/steps/") || f.pkg == "handler" || f.pkg == "rack"
		if !ours || in == "" || called(call) != "Errorf" {
			return // what stands outside functions is a sign between them, and has a name
		}
		if format := s.words(f.pkg, call.Args[0]); strings.Contains(format, "%w") {
			return
		}
		if text := s.callWords(f.pkg, call); strings.Contains(text, " ") && !slices.Contains(all, text) {
			all = append(all, text)
		}
	})
	slices.Sort(all)
	return all
}
