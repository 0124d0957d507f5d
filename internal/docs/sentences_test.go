package docs

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// sentence is one thing that Sawhorse says to the operator about a parameter.
type sentence struct {
	kind, parameter, text, path string
}

// makers are the functions that make a problem or a warning of a format, by their names.
var makers = map[string]string{
	"problem": "problem", "hindrance": "problem", "disallowed": "problem", "NewProblem": "problem", "Reject": "problem", "warning": "warning", "warn": "warning", "Warn": "warning", "Happened": "warning",
}

// sentences are all that the sources can say, each once.
func (s *source) sentences(t *testing.T) []sentence {
	t.Helper()
	var all []sentence
	add := func(found sentence) {
		// A suggestion that is there in some cases only is left out; where the sentence ends with one, it stays.
		found.text = strings.ReplaceAll(found.text, "<suggestion>,", ",")
		if cut, ok := strings.CutSuffix(found.text, "<suggestion>"); ok && !strings.HasSuffix(cut, "; ") {
			found.text = cut
		}
		if !slices.ContainsFunc(all, func(known sentence) bool {
			return known.text == found.text && known.parameter == found.parameter && known.kind == found.kind
		}) {
			all = append(all, found)
		}
	}
	s.nodes(func(f file, in string, n ast.Node) {
		switch n := n.(type) {
		case *ast.CallExpr:
			if kind := makers[called(n)]; kind != "" && makers[in] == "" {
				add(s.made(t, f, kind, n))
			}
		case *ast.CompositeLit:
			if found, ok := s.written(f, in, n); ok {
				add(found)
			}
		}
	})
	return all
}

// made is the sentence of a call of a maker: the first argument that is a sentence is the format, the very first the parameter.
func (s *source) made(t *testing.T, f file, kind string, call *ast.CallExpr) sentence {
	t.Helper()
	for i, arg := range call.Args {
		if text := s.words(f.pkg, arg); strings.Contains(text, " ") && !strings.HasPrefix(text, "<") || text == "%s" || strings.HasPrefix(text, "%s %s") {
			found := sentence{kind: kind, text: s.format(f.pkg, call.Args[i:]), path: f.path}
			if i > 0 {
				found.parameter = s.words(f.pkg, call.Args[0])
			}
			return found
		}
	}
	t.Errorf("%s: a call of %s without a sentence in it", f.path, called(call))
	return sentence{}
}

// written is the sentence of a Problem that is written out, without a maker.
func (s *source) written(f file, in string, n *ast.CompositeLit) (sentence, bool) {
	fields := map[string]ast.Expr{}
	for _, e := range n.Elts {
		if pair, ok := e.(*ast.KeyValueExpr); ok {
			if key, ok := pair.Key.(*ast.Ident); ok {
				fields[key.Name] = pair.Value
			}
		}
	}
	if fields["Message"] == nil || fields["Parameter"] == nil || makers[in] != "" {
		return sentence{}, false
	}
	kind := "problem"
	if strings.Contains(strings.ToLower(in), "advi") {
		kind = "warning"
	}
	return sentence{kind, s.words(f.pkg, fields["Parameter"]), s.words(f.pkg, fields["Message"]), f.path}, true
}
