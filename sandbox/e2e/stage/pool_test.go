package stage

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Scripts that need a new sandbox run first, those that spoil theirs last. Long ones run before short ones, and else the order is that
// of the tests.
func TestOrderOfScripts(t *testing.T) {
	p := New(t.TempDir(), "e2e")
	short, next, long := &turn{}, &turn{}, &turn{[]Trait{Long}}
	spoils, longSpoils := &turn{[]Trait{Spoils}}, &turn{[]Trait{Long, Spoils}}
	untouched, used := &turn{[]Trait{Untouched}}, &turn{[]Trait{Long, Untouched, Spoils}}
	p.waiting = []*turn{spoils, short, longSpoils, untouched, next, used, long}
	var order []*turn
	for len(p.waiting) > 0 {
		next := p.next()
		order = append(order, next)
		p.waiting = slices.DeleteFunc(p.waiting, func(t *turn) bool { return t == next })
	}
	if want := []*turn{untouched, used, long, short, next, longSpoils, spoils}; !slices.Equal(order, want) {
		t.Errorf("%v, want %v", order, want)
	}
}

// A sandbox that is released waits for the next script. When none waits it ends, even while other scripts run, and what is idle at
// the end ends at once.
func TestASandboxEndsWhenNoScriptWaits(t *testing.T) {
	t.Setenv(Alone, "")
	p, ended := New(t.TempDir(), "e2e"), make(chan int, 9)
	p.waiting, p.running = []*turn{{}}, 3
	one := func(number int, end func() error) *sandbox { return &sandbox{number: number, end: end} }
	release := func(number int) {
		t.Helper()
		if err := p.release(one(number, func() error { ended <- number; return nil }), false); err != nil {
			t.Fatal(err)
		}
	}
	release(1)
	p.waiting = nil
	release(2)
	if len(p.idle) != 1 || p.idle[0].number != 1 || len(ended) != 1 || <-ended != 2 || p.running != 1 {
		t.Errorf("idle: %v, running: %d", p.idle, p.running)
	}

	var both sync.WaitGroup
	both.Add(2)
	together := func() error { both.Done(); both.Wait(); return errors.New("ended") }
	p.idle = []*sandbox{one(1, together), one(3, together)}
	if err := p.endIdle(); err == nil || err.Error() != "ended\nended" {
		t.Errorf("both have ended with: %v", err)
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
