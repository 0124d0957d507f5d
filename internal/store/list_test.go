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
		must(t, s.Enlist(t.Context(), rack))
	}
	must(t, s.Delist(t.Context(), "b"))
	listed := func(want ...string) {
		t.Helper()
		if got, err := s.Racks(t.Context()); err != nil || !slices.Equal(got, want) {
			t.Errorf("%v, %v; want %v", got, err, want)
		}
	}
	listed("a", "a-1", "c")
	if there, err := s.Listed(t.Context(), "b"); err != nil || there {
		t.Errorf("%v, %v", there, err)
	}
}
