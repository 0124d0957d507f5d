package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
)

// mutant is a change of one place in a file. Its text, with the changes switched by their numbers, replaces the old one.
type mutant struct {
	pkg, file  string
	start, end int // offsets
	line, last int // its lines
	what       string
	text       func(number int) string
}

func (m *mutant) String() string {
	file := m.file
	if here, err := os.Getwd(); err == nil {
		file = strings.TrimPrefix(file, here+"/")
	}
	return fmt.Sprintf("%s:%d  %s", file, m.line, m.what)
}

// overlaps reports whether two mutants of a file change the same text.
func (m *mutant) overlaps(other *mutant) bool {
	return m.file == other.file && m.start < other.end && other.start < m.end
}

// swapped has the operators that replace others.
var swapped = map[token.Token]token.Token{
	token.EQL: token.NEQ, token.NEQ: token.EQL, token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.LAND: token.LOR, token.LOR: token.LAND,
}

// find returns the changes that can be made in a file.
func find(pkg, file string, source []byte) ([]*mutant, error) {
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, source, 0)
	if err != nil {
		return nil, err
	}
	var all []*mutant
	add := func(n ast.Node, what string, text func(old string, on string) string) {
		start, end := set.Position(n.Pos()), set.Position(n.End())
		old := string(source[start.Offset:end.Offset])
		all = append(all, &mutant{
			pkg: pkg, file: file, start: start.Offset, end: end.Offset, line: start.Line, last: end.Line, what: what + ": " + short(old),
			text: func(number int) string { return text(old, fmt.Sprintf("mutant__(%d)", number)) },
		})
	}
	negate := func(old, on string) string { return fmt.Sprintf("((%s) != %s)", old, on) }
	drop := func(old, on string) string { return fmt.Sprintf("if !%s { %s }", on, old) }
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			return n.Tok == token.VAR // constants cannot be switched
		case *ast.IfStmt:
			add(n.Cond, "condition negated", negate)
		case *ast.BinaryExpr:
			if to, ok := swapped[n.Op]; ok {
				x, y := part(set, source, n.X), part(set, source, n.Y)
				add(n, fmt.Sprintf("%s for %s", to, n.Op), func(old, on string) string {
					return fmt.Sprintf("(%s && (%s %s %s) || !%s && (%s))", on, x, to, y, on, old)
				})
			}
		case *ast.Ident:
			if n.Name == "true" || n.Name == "false" {
				add(n, "the other truth value", negate)
			}
		case *ast.BasicLit:
			if n.Kind == token.INT {
				add(n, "a number more", func(old, on string) string { return fmt.Sprintf("mutantNumber__(%s, %s)", on, old) })
			}
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE && len(n.Lhs) == 1 {
				add(n, "statement dropped", drop)
			}
		case *ast.IncDecStmt:
			add(n, "statement dropped", drop)
		case *ast.ExprStmt:
			add(n, "statement dropped", drop)
		}
		return true
	})
	return inBlocks(parsed, set, all), nil
}

// inBlocks leaves out the statements that are part of the head of another one.
func inBlocks(file *ast.File, set *token.FileSet, all []*mutant) []*mutant {
	heads := map[int]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		var simple []ast.Stmt
		switch n := n.(type) {
		case *ast.IfStmt:
			simple = []ast.Stmt{n.Init}
		case *ast.ForStmt:
			simple = []ast.Stmt{n.Init, n.Post}
		case *ast.SwitchStmt:
			simple = []ast.Stmt{n.Init}
		case *ast.TypeSwitchStmt:
			simple = []ast.Stmt{n.Init, n.Assign}
		case *ast.CommClause:
			simple = []ast.Stmt{n.Comm}
		}
		for _, s := range simple {
			if s != nil {
				heads[set.Position(s.Pos()).Offset] = true
			}
		}
		return true
	})
	return slices.DeleteFunc(all, func(m *mutant) bool { return heads[m.start] && strings.HasPrefix(m.what, "statement") })
}

func part(set *token.FileSet, source []byte, n ast.Node) string {
	return string(source[set.Position(n.Pos()).Offset:set.Position(n.End()).Offset])
}

// short returns the first line of a text, for the report.
func short(text string) string {
	first, _, more := strings.Cut(text, "\n")
	if more {
		first += " …"
	}
	return first
}

// switches is the file that a package gets. The number of the change that is on comes from the environment.
func switches(name string) string {
	return "package " + name + `

import (
	"os"
	"strconv"
)

var mutantOn__, _ = strconv.Atoi(os.Getenv("` + variable + `"))

func mutant__(number int) bool { return number == mutantOn__ }

func mutantNumber__[T ~int | ~int32 | ~int64 | ~float64](on bool, number T) T {
	if on {
		return number + 1
	}
	return number
}
`
}

const variable = "SAWHORSE_MUTANT"

// apply returns a file's text with its mutants, given by their numbers.
func apply(source []byte, mutants map[int]*mutant) string {
	numbers := make([]int, 0, len(mutants))
	for number := range mutants {
		numbers = append(numbers, number)
	}
	slices.SortFunc(numbers, func(a, b int) int { return mutants[a].start - mutants[b].start })
	var out strings.Builder
	at := 0
	for _, number := range numbers {
		m := mutants[number]
		out.Write(source[at:m.start])
		out.WriteString(m.text(number))
		at = m.end
	}
	out.Write(source[at:])
	return out.String()
}

// lineOf returns the file and the line that a line of the compiler's output begins with.
func lineOf(message string) (file string, line int, ok bool) {
	parts := strings.SplitN(message, ":", 4)
	if len(parts) < 4 {
		return "", 0, false
	}
	line, err := strconv.Atoi(parts[1])
	return parts[0], line, err == nil
}
