package store

import (
	"testing"
	"time"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

// A contest is stored as last saved, for each rack and subject. If there is none, the result is the zero Contest.
func TestContests(t *testing.T) {
	s := &Store{DB: awsfake.New().Table, Name: "sawhorse"}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	must(t, s.SaveContest(t.Context(), "demo", "pin/a/b", outcome.Contest{Wanted: "x", Written: at}))
	must(t, s.SaveContest(t.Context(), "demo", "pin/a/b", outcome.Contest{Wanted: "y", Written: at, Times: 2, Noticed: true}))
	must(t, s.SaveContest(t.Context(), "demo", "pin/a/c", outcome.Contest{Wanted: "z"}))
	must(t, s.ForgetContest(t.Context(), "demo", "pin/a/c"))
	for _, c := range []struct {
		rack, subject string
		want          outcome.Contest
	}{
		{"demo", "pin/a/b", outcome.Contest{Wanted: "y", Written: at, Times: 2, Noticed: true}},
		{"demo", "pin/a/c", outcome.Contest{}},
		{"other", "pin/a/b", outcome.Contest{}},
	} {
		if got, err := s.Contest(t.Context(), c.rack, c.subject); err != nil || got != c.want {
			t.Errorf("%s %s: %+v, %v; want %+v", c.rack, c.subject, got, err, c.want)
		}
	}
}
