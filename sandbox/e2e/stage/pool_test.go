package stage

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Long scripts run first, and else the order is that of the tests.
func TestLongScriptsRunFirst(t *testing.T) {
	p := New(t.TempDir(), "e2e")
	first, long, last := &turn{}, &turn{[]Trait{Spoils, Long}}, &turn{[]Trait{Untouched}}
	p.waiting = []*turn{first, long, last}
	var order []*turn
	for len(p.waiting) > 0 {
		next := p.next()
		order = append(order, next)
		p.waiting = slices.DeleteFunc(p.waiting, func(t *turn) bool { return t == next })
	}
	if !slices.Equal(order, []*turn{long, first, last}) {
		t.Errorf("%v", order)
	}
}

// Two runs at once do not share a folder, and the second one leaves it alone. A run removes what an earlier one has left.
func TestTwoRunsDoNotShareAFolder(t *testing.T) {
	root := t.TempDir()
	left := filepath.Join(root, ".cache", "e2e", "3", "decisions.jsonl")
	if err := os.MkdirAll(filepath.Dir(left), 0o700); err != nil {
		t.Fatal(err)
	}
	first, second := New(root, "e2e"), New(root, "e2e")
	if err := first.claim(); err != nil {
		t.Fatal(err)
	}
	if names, err := os.ReadDir(filepath.Join(root, ".cache", "e2e")); err != nil || len(names) != 0 {
		t.Errorf("left: %v, %v", names, err)
	}
	if err := second.claim(); err == nil || !strings.Contains(err.Error(), "another run") {
		t.Errorf("second run: %v", err)
	}
}
