package store

import (
	"slices"
	"testing"
)

// The list is sorted by name, whatever else is in the table. A rack is on it once, until it is removed.
func TestTheListOfTheRacks(t *testing.T) {
	s, cloud := store()
	cloud.Table.Items["rack#other lease"] = key("other", "lease")
	for _, rack := range []string{"c", "a-1", "b", "a-1", "a"} {
		must(t, s.Enlist(t.Context(), rack, rack == "c"))
	}
	must(t, s.Delist(t.Context(), "b"))
	listed := func(want ...string) {
		t.Helper()
		if got, held, err := s.Racks(t.Context()); err != nil || !slices.Equal(got, want) || !slices.Equal(held, []string{"c"}) {
			t.Errorf("%v, held %v, %v; want %v", got, held, err, want)
		}
	}
	listed("a", "a-1", "c")
	for rack, want := range map[string][2]bool{"a": {true, false}, "b": {false, false}, "c": {true, true}} {
		if there, held, err := s.Listed(t.Context(), rack); err != nil || there != want[0] || held != want[1] {
			t.Errorf("%s: %v, held %v, %v", rack, there, held, err)
		}
	}
}
