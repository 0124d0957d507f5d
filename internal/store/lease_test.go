package store

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

// lease stores the record as the state machine leaves it.
func lease(cloud *awsfake.Cloud, numbers map[string]int64, owner string) {
	record := key("demo", "lease")
	for name, n := range numbers {
		record[name] = number(n)
	}
	if owner != "" {
		record["owner"] = text(owner)
	}
	cloud.Table.Items["rack#demo lease"] = record
}

func TestRenew(t *testing.T) {
	for _, c := range []struct {
		what    string
		numbers map[string]int64
		want    Lease
	}{
		{"the first request", map[string]int64{"requested": 1}, Lease{Requested: 1}},
		{"a later one", map[string]int64{"requested": 7, "served": 5}, Lease{Requested: 7, Served: 5}},
		{"full is waiting", map[string]int64{"requested": 7, "served": 5, "fullAt": 6}, Lease{Requested: 7, Served: 5, Full: true}},
		{"full was served", map[string]int64{"requested": 7, "served": 6, "fullAt": 6}, Lease{Requested: 7, Served: 6}},
		{"force is waiting",
			map[string]int64{"requested": 7, "served": 5, "forceroomAt": 7, "forcenew_defaultsAt": 6, "forceversionAt": 5, "fullAt": 5,
				"forceretire_gpu_aAt": 7, "forceretire_AAt": 7, "forceretire_At": 7},
			Lease{Requested: 7, Served: 5, Force: map[string]int64{"room": 7, "new-defaults": 6, "retire:gpu-a": 7}}},
	} {
		s, cloud := store()
		lease(cloud, c.numbers, "me")
		got, err := s.Renew(t.Context(), "demo", "me", clock)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, %v; want %+v", c.what, got, err, c.want)
		}
		if expires, want := awsfake.Text(cloud.Table.Items["rack#demo lease"],
			"expires"), fmt.Sprint(clock.Add(3*time.Minute).Unix()); expires != want {
			t.Errorf("%s: expires %s, want %s", c.what, expires, want)
		}
	}
}

// A pass that is no longer the owner changes nothing.
func TestRenewOfALostLease(t *testing.T) {
	for what, owner := range map[string]string{"taken over": "other", "freed": ""} {
		s, cloud := store()
		lease(cloud, map[string]int64{"requested": 1, "expires": 5}, owner)
		if _, err := s.Renew(t.Context(), "demo", "me", clock); !errors.Is(err, ErrLeaseLost) {
			t.Errorf("%s: %v", what, err)
		}
		if got := awsfake.Text(cloud.Table.Items["rack#demo lease"], "expires"); got != "5" {
			t.Errorf("%s: expires became %s", what, got)
		}
	}
	s, _ := store()
	if _, err := s.Renew(t.Context(), "demo", "me", clock); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("no lease at all: %v", err)
	}
}

func TestRequestIsSeenByTheOwner(t *testing.T) {
	s, cloud := store()
	lease(cloud, map[string]int64{"requested": 7, "served": 6}, "me")
	must(t, s.Request(t.Context(), "demo"))
	if got, err := s.Renew(t.Context(), "demo", "me", clock); err != nil || got.Requested != 8 || got.Served != 6 {
		t.Errorf("%+v, %v", got, err)
	}
	cloud.FailAt(1, awsfake.Throttling)
	keepsCause(t, s.Request(t.Context(), "demo"), "rack demo: ")
}

func TestRenewThatFailsIsNoLostLease(t *testing.T) {
	s, cloud := store()
	cloud.FailAt(1, awsfake.Throttling)
	_, err := s.Renew(t.Context(), "demo", "me", clock)
	keepsCause(t, err, "rack demo: ")
	if errors.Is(err, ErrLeaseLost) {
		t.Error("a throttled call counts as a lost lease: the pass would end silently")
	}
}

func TestFree(t *testing.T) {
	for _, c := range []struct {
		what    string
		numbers map[string]int64
		owner   string
		remain  bool
		after   string
	}{
		{"died before it served", map[string]int64{"requested": 3, "served": 2}, "me", true, ""},
		{"nothing remains", map[string]int64{"requested": 3, "served": 3}, "me", false, ""},
		{"another pass has it", map[string]int64{"requested": 3, "served": 2}, "other", false, "other"},
		{"it released the rack itself", map[string]int64{"requested": 3, "served": 3}, "", false, ""},
		{"freed before, and then the notice was handled again", map[string]int64{"requested": 3, "served": 2}, "", true, ""},
	} {
		s, cloud := store()
		lease(cloud, c.numbers, c.owner)
		remain, err := s.Free(t.Context(), "demo", "me", clock)
		record := cloud.Table.Items["rack#demo lease"]
		if quiet, want := awsfake.Text(record, "quiet"), fmt.Sprint(clock.Unix()); (quiet == want) != (c.owner == "me") {
			t.Errorf("%s: quiet is %q", c.what, quiet)
		}
		if err != nil || remain != c.remain || awsfake.Text(record, "owner") != c.after || awsfake.Text(record, "requested") != "3" {
			t.Errorf("%s: remain %v, %v, record %v", c.what, remain, err, record)
		}
	}
}

// An execution that is stopped while it waits has no call in flight, but an earlier one may have.
func TestFreeKeepsAnEarlierQuiet(t *testing.T) {
	s, cloud := store()
	lease(cloud, map[string]int64{"requested": 3, "served": 2, "quiet": clock.Unix()}, "me")
	if remain, err := s.Free(t.Context(), "demo", "me", time.Time{}); !remain || err != nil {
		t.Errorf("%v, %v", remain, err)
	}
	record := cloud.Table.Items["rack#demo lease"]
	if quiet := awsfake.Text(record, "quiet"); quiet != fmt.Sprint(clock.Unix()) || awsfake.Text(record, "owner") != "" {
		t.Errorf("quiet %s, owner %s", quiet, awsfake.Text(record, "owner"))
	}
}

func TestFreeMakesNoRecord(t *testing.T) {
	s, cloud := store()
	if remain, err := s.Free(t.Context(), "demo", "me", clock); remain || err != nil || len(cloud.Table.Items) > 0 {
		t.Errorf("%v, %v, %v", remain, err, cloud.Table.Items)
	}
}
