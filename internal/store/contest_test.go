package store

import (
	"reflect"
	"testing"
	"time"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

// A contest is stored in the form that the releases before and after this one read: another would be none to them, and they would
// set back once more what others hold, which can replace nodes.
func TestTheFormOfAContest(t *testing.T) {
	s, cloud := store()
	item := awsfake.Item{"pk": text("rack#demo"), "sk": text("contest#pin/a/b"),
		"contest": text(`{"wanted":"y","written":"2026-01-02T03:04:05Z","times":2,"noticed":true}`)}
	cloud.Table.Items["rack#demo contest#pin/a/b"] = item
	want := outcome.Contest{Wanted: "y", Written: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Times: 2, Noticed: true}
	got, err := outcome.ReadContest(t.Context(), s.Contests(), "demo", "pin/a/b")
	if err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	must(t, outcome.Record(t.Context(), s.Contests().Replace, "demo", "pin/a/b", want))
	if written := cloud.Table.Items["rack#demo contest#pin/a/b"]; !reflect.DeepEqual(written, item) {
		t.Errorf("%v, want %v", written, item)
	}
	if got, err := outcome.ReadContest(t.Context(), s.Contests(), "demo", "pin/a/c"); err != nil || got != (outcome.Contest{}) {
		t.Errorf("another subject: %+v, %v", got, err)
	}
}
