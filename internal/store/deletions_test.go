package store

import (
	"testing"
	"time"
)

func TestDeletions(t *testing.T) {
	store, _ := store()
	now := time.Date(2026, 1, 2, 3, 4, 5, 678, time.FixedZone("x", 3600))
	if at, err := store.Deletion(t.Context(), "demo", "queue"); err != nil || !at.IsZero() {
		t.Errorf("before any: %v, %v", at, err)
	}
	for _, at := range []time.Time{now, now.Add(time.Minute)} {
		if err := store.NoteDeletion(t.Context(), "demo", "queue", at); err != nil {
			t.Fatal(err)
		}
		if got, err := store.Deletion(t.Context(), "demo", "queue"); err != nil || !got.Equal(at.Truncate(time.Second)) {
			t.Errorf("%v, %v, want %v", got, err, at)
		}
	}
	if err := store.End(t.Context(), "demo", ""); err != nil {
		t.Fatal(err)
	}
	if at, err := store.Deletion(t.Context(), "demo", "queue"); err != nil || at.IsZero() {
		t.Errorf("with the rack's records the deletion has gone: %v, %v", at, err)
	}
	if at, err := store.Deletion(t.Context(), "other", "queue"); err != nil || !at.IsZero() {
		t.Errorf("another rack: %v, %v", at, err)
	}
}
