package outcome_test

import (
	"testing"
	"time"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

// A step that stops after it has applied a setting and before it has recorded that applies the setting again. That is
// no contest.
func TestStoppedBeforeTheNote(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	arbiter := outcome.Arbiter{Contests: awsfake.NewContests(), Now: func() time.Time { return now }}
	for i := range 5 {
		ruling, err := arbiter.Rule(t.Context(), "demo", "x", "0")
		if err != nil || !ruling.Write || ruling.Contested() {
			t.Fatalf("%d: %+v, %v", i, ruling, err)
		}
	}
}

// A new wanted value starts without a contest, and so does a setting whose contest was withdrawn.
func TestAnotherWish(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	arbiter := outcome.Arbiter{Contests: awsfake.NewContests(), Now: func() time.Time { return now }}
	rule := func(wanted string) outcome.Ruling {
		t.Helper()
		ruling, err := arbiter.Rule(t.Context(), "demo", "x", wanted)
		if err == nil && ruling.Write {
			err = arbiter.Made(t.Context(), "demo", "x", wanted, ruling)
		}
		if err != nil {
			t.Fatal(err)
		}
		return ruling
	}
	for _, wanted := range []string{"0", "1", "0", "1", "0"} {
		if ruling := rule(wanted); !ruling.Write || ruling.Contested() {
			t.Errorf("%s: %+v", wanted, ruling)
		}
	}
	rule("0")
	if ruling := rule("0"); ruling.Write || !ruling.Contested() {
		t.Errorf("the second time: %+v", ruling)
	}
	if err := arbiter.Withdraw(t.Context(), "demo", "x"); err != nil {
		t.Fatal(err)
	}
	if ruling := rule("0"); !ruling.Write || ruling.Contested() {
		t.Errorf("after it was withdrawn: %+v", ruling)
	}
}

// The generations of a rack whose lease has expired begin again, so a pass that is forced may have a lower one than the last was.
func TestForcedAfterTheLeaseHasExpired(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, generation := range []int64{3, 401} {
		contests := awsfake.NewContests()
		was := outcome.Contest{Wanted: "0", Written: now.Add(-time.Hour), Times: 2, Noticed: true, Forced: 400}
		if err := outcome.Record(t.Context(), contests.Replace, "demo", "x", was); err != nil {
			t.Fatal(err)
		}
		for _, forced := range []int64{0, 400, generation} {
			arbiter := outcome.Arbiter{Contests: contests, Now: func() time.Time { return now }, Once: true, Forced: forced}
			ruling, err := arbiter.Rule(t.Context(), "demo", "x", "0")
			if err != nil || ruling.Write != (forced == generation) {
				t.Errorf("forced in %d: %+v, %v", forced, ruling, err)
			}
		}
	}
}
