package docs

import (
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// spoken are the placeholders of expressions whose own name would say little to a reader.
var spoken = map[string]string{
	"err": "reason", "t": "type", "b": "budget", "at": "path", "uri": "value", "hops": "number", "count": "number", "first": "n", "disk": "GiB",
	"text": "value", "short": "value", "shown": "value", "kindOf": "kind of JSON", "len": "number", "String": "amount", "what": "thing",
	"DidYouMean": "suggestion", "suggestion": "suggestion", "instead": "suggestion", "others": "suggestion", "agree": "what to do", "gibs": "GiB", "display": "family", "remedy": "what to do", "reasons": "reason",
	"Subject": "kind/namespace/name", "subject": "kind/namespace/name", "ArchOf": "arch", "health": "reason", "note": "reason", "Note": "reason", "ErrorMessage": "reason",
	"found": "names", "all": "names", "foreign": "names", "compact": "names", "contested": "who", "shared": "names", "named": "value", "owned": "ids",
	"busy": "pods", "waiting": "thing", "left": "names", "movers": "number", "figures": "figures of the shortage", "oidcissuer": "issuer", "lacking": "policies",
	"Claim": "rack", "groupNames": "names", "Nodes": "number", "elements": "element", "wrong": "reason", "InputOffset": "number", "p": "name",
	"OIDCIssuer": "issuer", "Format": "time", "written": "value", "previous": "value", "Disk": "GiB", "drain": "duration",
}

// words is what an expression says to a reader: its text, with <placeholders> for what is not known before.
func (s *source) words(pkg string, e ast.Expr) string {
	if text, ok := literal(e); ok {
		return text
	}
	switch e := e.(type) {
	case *ast.BinaryExpr:
		if e.Op != token.ADD {
			return s.product(pkg, e)
		}
		return s.words(pkg, e.X) + s.words(pkg, e.Y)
	case *ast.Ident:
		if value, ok := s.constants[pkg+"."+e.Name]; ok {
			return s.words(pkg, value)
		}
		return placeholder(e.Name)
	case *ast.SelectorExpr:
		if of, ok := e.X.(*ast.Ident); ok {
			if value, ok := s.constants[of.Name+"."+e.Sel.Name]; ok {
				return s.words(of.Name, value)
			}
		}
		return placeholder(e.Sel.Name)
	case *ast.CallExpr:
		return s.callWords(pkg, e)
	case *ast.StarExpr:
		return s.words(pkg, e.X)
	case *ast.UnaryExpr:
		return s.words(pkg, e.X)
	case *ast.IndexExpr:
		return s.words(pkg, e.X)
	}
	return placeholder("value")
}

// product is the value of constants that are multiplied or shifted.
func (s *source) product(pkg string, e *ast.BinaryExpr) string {
	x, errX := strconv.Atoi(s.words(pkg, e.X))
	y, errY := strconv.Atoi(s.words(pkg, e.Y))
	switch {
	case errX == nil && errY == nil && e.Op == token.MUL:
		return strconv.Itoa(x * y)
	case errX == nil && errY == nil && e.Op == token.SHL:
		return strconv.Itoa(x << y)
	}
	return placeholder("number")
}

func (s *source) callWords(pkg string, call *ast.CallExpr) string {
	name := called(call)
	switch {
	case (name == "Sprintf" || name == "Errorf") && len(call.Args) > 0:
		return s.format(pkg, call.Args)
	case name == "New" && len(call.Args) == 1:
		return s.words(pkg, call.Args[0])
	case (name == "short" || name == "Join" || name == "TrimSpace" || name == "TrimPrefix" || name == "some") && len(call.Args) > 0:
		return s.words(pkg, call.Args[0])
	}
	in := pkg
	if f, ok := call.Fun.(*ast.SelectorExpr); ok {
		if of, ok := f.X.(*ast.Ident); ok && s.functions[of.Name+"."+name] != nil {
			in = of.Name
		}
	}
	if returned := s.functions[in+"."+name]; returned != nil && spoken[name] == "" {
		if said := s.words(in, returned); strings.Contains(said, " ") {
			return said
		}
	}
	return placeholder(name)
}

var verb = regexp.MustCompile(`%[-+#0-9.]*[a-zA-Z%]`)

// format is a format string with its arguments in their places.
func (s *source) format(pkg string, args []ast.Expr) string {
	next := 0
	return verb.ReplaceAllStringFunc(s.words(pkg, args[0]), func(v string) string {
		if v == "%%" {
			return "%"
		}
		next++
		if next >= len(args) {
			return placeholder("value")
		}
		said := s.words(pkg, args[next])
		if strings.HasSuffix(v, "q") {
			return `"` + said + `"`
		}
		return said
	})
}

func placeholder(name string) string {
	for _, spelled := range []string{name, strings.ToLower(name[:1]) + name[1:]} {
		if better, ok := spoken[spelled]; ok {
			return "<" + better + ">"
		}
	}
	var out strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 && !unicode.IsUpper(rune(name[i-1])) {
			out.WriteByte(' ')
		}
		out.WriteRune(unicode.ToLower(r))
	}
	return "<" + out.String() + ">"
}
