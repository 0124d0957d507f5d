package docs

import (
	"go/ast"
	"regexp"
	"strings"
	"testing"
)

var (
	command   = regexp.MustCompile(`terminate-instances|delete-nodegroup|delete-auto-scaling-group|kubectl delete node`)
	takesAway = regexp.MustCompile(`(?i)\b(delete|terminate|remove|end)\b`)
	capacity  = regexp.MustCompile(`(?i)\b(node groups?|scaling groups?|nodepools?|nodes?|instances?|capacity|pools?)\b`)
)

// failed is a node group that EKS gave up making: nothing runs on it, and EKS makes it anew only when it is gone.
const failed = "node group <copy>: create as a copy of <group>: EKS gave up"

// No remedy is to take away nodes, or what launches them: whoever follows one on a bad day must not make it a worse one.
func TestNoRemedyTakesCapacityAway(t *testing.T) {
	s := readSource(t, "internal", "cmd", "statemachine")
	s.nodes(func(f file, _ string, n ast.Node) {
		if text, ok := n.(*ast.BasicLit); ok && command.MatchString(text.Value) {
			t.Errorf("%s: %s", f.path, text.Value)
		}
	})
	for _, said := range s.sentences(t) {
		_, remedy := split(said.text, "; ", ". ", ": ", ", or ")
		if takesAway.MatchString(remedy) && capacity.MatchString(said.text) {
			t.Errorf("%s: %q", said.path, said.text)
		}
	}
	for _, failure := range s.failures() {
		_, remedy := split(failure, "; ", ". ")
		if takesAway.MatchString(remedy) && capacity.MatchString(failure) && !strings.HasPrefix(failure, failed) {
			t.Errorf("%q", failure)
		}
	}
	for _, remedies := range []map[string]string{furtherRemedies, lookAt, failureRemedies} {
		for about, remedy := range remedies {
			if takesAway.MatchString(remedy) && capacity.MatchString(about+remedy) {
				t.Errorf("%q: %q", about, remedy)
			}
		}
	}
}
