package resource_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/resource"
	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

// scene is a rack's records, and what the calls of a step have written.
type scene struct {
	*testing.T
	cloud *awsfake.Cloud
	made  []string
}

func (s *scene) open() *resource.Writer {
	s.Helper()
	w, err := resource.Open(s.Context(), &store.Store{DB: s.cloud.Table}, "demo", "step", s.cloud.Now)
	if err != nil {
		s.Fatal(err)
	}
	return w
}

// write makes one call of a step, which read and wants a value. The write may fail.
func (s *scene) write(aspect, read, value string, failed error) {
	s.Helper()
	w := s.open()
	err := w.Write(s.Context(), resource.Write{Aspect: aspect, Read: read, Value: value, Do: func(context.Context) error {
		s.made = append(s.made, value)
		return failed
	}})
	if _, err = w.End(s.Context(), err); !errors.Is(err, errors.Unwrap(failed)) && !errors.Is(err, failed) {
		s.Fatal(err)
	}
}

// wrote checks what has been written since the last check.
func (s *scene) wrote(want ...string) {
	s.Helper()
	if !slices.Equal(s.made, want) {
		s.Errorf("wrote %q, want %q", s.made, want)
	}
	s.made = nil
}

func TestWhatWasWrittenIsNotJudgedByAnOlderRead(t *testing.T) {
	s := &scene{T: t, cloud: awsfake.New()}
	t.Log("what is read as wanted is not written, and not recorded")
	s.write("a", "1", "1", nil)
	if s.wrote(); len(s.cloud.Writes()) > 0 {
		t.Errorf("%v", s.cloud.Writes())
	}
	t.Log("set, and unset: the read is older than both")
	s.write("a", "1", "2", nil)
	s.write("a", "1", "1", nil)
	s.wrote("2", "1")
	t.Log("nothing more to do")
	s.cloud.Forget()
	s.write("a", "1", "1", nil)
	if s.wrote(); len(s.cloud.Writes()) > 0 {
		t.Errorf("%v", s.cloud.Writes())
	}
	t.Log("a read that differs is repaired, whatever was written")
	s.write("a", "2", "1", nil)
	s.wrote("1")
	t.Log("after the lag the read counts")
	s.write("a", "1", "2", nil)
	s.cloud.Pass(resource.Lag)
	s.write("a", "1", "1", nil)
	s.wrote("2")
}

// A call that ends before it has recorded that a write was made, or whose write failed, makes it again.
func TestAWriteThatMayNotHaveBeenMadeIsMadeAgain(t *testing.T) {
	lost := errors.New("lost")
	s := &scene{T: t, cloud: awsfake.New()}
	s.write("a", "1", "2", lost)
	s.write("a", "2", "2", nil)
	s.wrote("2", "2")
	for n := 1; n <= 3; n++ { // the read of the record, the record before the write, and the one after it
		s := &scene{T: t, cloud: awsfake.New()}
		s.cloud.FailAt(n, awsfake.Throttling)
		w, err := resource.Open(t.Context(), &store.Store{DB: s.cloud.Table}, "demo", "step", s.cloud.Now)
		if err == nil {
			err = w.Write(t.Context(), resource.Write{Aspect: "a", Read: "1", Value: "2", Do: func(context.Context) error {
				s.made = append(s.made, "2")
				return nil
			}})
			_, err = w.End(t.Context(), err)
		}
		if !errors.Is(err, awsfake.Throttling) || len(s.made) > 0 != (n == 3) {
			t.Errorf("call %d failed: %v, wrote %v", n, err, s.made)
		}
		s.made = nil
		if s.write("a", "1", "1", nil); n == 3 { // taken back
			s.wrote("1")
		} else {
			s.wrote()
		}
	}
}

// What was removed is known by the time at which the first of the attempts to remove it began, or since then to make it again.
func TestRemoved(t *testing.T) {
	lost := errors.New("lost")
	s := &scene{T: t, cloud: awsfake.New()}
	known := func(what string, begun, at time.Time) {
		t.Helper()
		near := func(a, b time.Time) bool { return a.Sub(b).Abs() < 20*time.Second } // each call of the fake takes a second
		if r, is := s.open().Removed("a"); !is || !near(r.Begun, begun) || !near(r.At, at) {
			t.Errorf("%s: %v, %+v, want %v and %v", what, is, r, begun, at)
		}
	}
	unknown := func(what string) {
		t.Helper()
		if r, is := s.open().Removed("a"); is {
			t.Errorf("%s: %+v", what, r)
		}
	}
	unknown("before any")
	s.write("a", "", "there", nil)
	unknown("made")
	s.cloud.Pass(resource.Lag)

	first := s.cloud.Now()
	for range 2 {
		s.write("a", "there", "", lost)
		s.cloud.Pass(time.Minute)
	}
	known("answers lost", first, first.Add(time.Minute))
	s.write("a", "there", "", nil)
	known("removed", first, first.Add(2*time.Minute))
	s.write("a", "", "there", resource.NotMade(lost))
	known("a creation that was not made", first, first.Add(2*time.Minute))
	s.cloud.Pass(time.Minute)
	made := s.cloud.Now()
	s.write("a", "", "there", lost)
	known("a creation that may have been made", made, made)
	s.write("a", "", "there", nil)
	known("made again", made, made)
	s.cloud.Pass(resource.Lag)
	unknown("after the lag")
}

// A write that AWS has refused leaves the record as it was.
func TestAWriteThatWasNotMade(t *testing.T) {
	failed := errors.New("failed")
	s := &scene{T: t, cloud: awsfake.New()}
	s.write("a", "", "there", resource.NotMade(failed))
	if s.open().Recent("a") {
		t.Error("it counts as written")
	}
	s.write("a", "", "there", nil)
	s.write("a", "there", "", resource.NotMade(failed))
	if w := s.open(); !w.Confirms("a", "there") || !w.Created("a") {
		t.Error("it does not count as written before")
	}
}

// A wait does not hide that the record could not be written.
func TestAWaitDoesNotHideAFailure(t *testing.T) {
	s := &scene{T: t, cloud: awsfake.New()}
	w := s.open()
	write := resource.Write{Aspect: "a", Value: "1", Do: func(context.Context) error { return nil }}
	if err := w.Write(t.Context(), write); err != nil {
		t.Fatal(err)
	}
	s.cloud.FailAt(1, awsfake.Throttling)
	if progress, err := w.End(t.Context(), outcome.Wait(time.Second, "x")); !errors.Is(err, awsfake.Throttling) {
		t.Errorf("%+v, %v", progress, err)
	}
}

func TestWhatIsThere(t *testing.T) {
	failed := errors.New("failed")
	type write struct {
		value string
		err   error
	}
	for what, c := range map[string]struct {
		writes           []write
		created, deleted bool
		unseen           bool // beside what was created
	}{
		"never written":                     {},
		"created":                           {writes: []write{{"x", nil}}, created: true},
		"perhaps created":                   {writes: []write{{"x", failed}}, created: true},
		"deleted":                           {writes: []write{{"", nil}}, deleted: true},
		"perhaps deleted, long ago created": {writes: []write{{"", failed}}, unseen: true},
		"created and deleted":               {writes: []write{{"x", nil}, {"", nil}}, deleted: true},
		"created and perhaps deleted":       {writes: []write{{"x", nil}, {"", failed}}, created: true},
		"deleted and created again":         {writes: []write{{"", nil}, {"x", nil}}, created: true},
	} {
		s := &scene{T: t, cloud: awsfake.New()}
		for _, one := range c.writes {
			s.write("the/a", "other", one.value, one.err)
		}
		w := s.open()
		if w.Created("the/a") != c.created || w.Deleted("the/a") != c.deleted ||
			slices.Equal(w.Unseen("the/"), []string{"a"}) != (c.created || c.unseen) || w.Recent("the/a") != (len(c.writes) > 0) {
			t.Errorf("%s: created %v, deleted %v, unseen %v", what, w.Created("the/a"), w.Deleted("the/a"), w.Unseen("the/"))
		}
		s.cloud.Pass(resource.Lag)
		if w := s.open(); w.Created("the/a") || w.Deleted("the/a") || w.Recent("the/a") {
			t.Errorf("%s: it counts after the lag", what)
		}
	}
}

// The parts of a resource that was deleted and made again are not judged by a read, which may be one of the former.
func TestPartsOfAResourceThatWasMadeAgain(t *testing.T) {
	s := &scene{T: t, cloud: awsfake.New()}
	s.write("role", "there", "", nil)
	s.write("role", "", "there", nil)
	s.made = nil
	s.write("role/policy", "p", "p", nil)
	s.wrote("p")
	s.write("role/policy", "p", "p", nil)
	s.write("role2/policy", "p", "p", nil)
	s.wrote()
	w := s.open()
	again := resource.Write{
		Aspect: "entry", Value: "there", Parts: map[string]string{"/tags": "t"}, Do: func(context.Context) error { return nil },
	}
	if err := w.Write(t.Context(), again); err != nil || !w.Confirms("entry/tags", "t") || w.Confirms("entry/tags", "u") {
		t.Errorf("what the creation sets too: %v", err)
	}
}

// What cannot be written again without harm is judged when the read is no older than the write.
func TestOutdated(t *testing.T) {
	failed := errors.New("failed")
	for what, c := range map[string]struct {
		play         func(*scene)
		read, wanted string
		want         bool
	}{
		"nothing written":                 {func(*scene) {}, "1", "0", false},
		"the value before":                {func(s *scene) { s.write("a", "1", "0", nil) }, "1", "0", true},
		"the value":                       {func(s *scene) { s.write("a", "1", "0", nil) }, "0", "1", false},
		"somebody else's":                 {func(s *scene) { s.write("a", "1", "0", nil) }, "2", "0", false},
		"one of two before":               {func(s *scene) { s.write("a", "1", "0", nil); s.write("a", "0", "3", nil) }, "0", "3", true},
		"perhaps written, wanted":         {func(s *scene) { s.write("a", "1", "0", failed) }, "1", "0", false},
		"perhaps written, seen":           {func(s *scene) { s.write("a", "1", "0", failed) }, "0", "0", false},
		"perhaps written, to take back":   {func(s *scene) { s.write("a", "1", "0", failed) }, "1", "1", true},
		"perhaps taken back, seen before": {func(s *scene) { s.write("a", "1", "0", nil); s.write("a", "0", "1", failed) }, "1", "1", true},
	} {
		s := &scene{T: t, cloud: awsfake.New()}
		c.play(s)
		if got := s.open().Outdated("a", c.read, c.wanted); got != c.want {
			t.Errorf("%s: outdated %v", what, got)
		}
	}
}

// The clocks of two calls of a step may differ. By one that is ahead, what it has written is not judged by a read for longer; by one
// that is behind by the Lag, not at all: the next read decides, and a later audit repairs what that leaves behind.
func TestClocksThatDiffer(t *testing.T) {
	for ahead, judged := range map[time.Duration]time.Duration{
		0: resource.Lag, 10 * time.Minute: resource.Lag + 10*time.Minute, -time.Minute: resource.Lag - time.Minute, -10 * time.Minute: 0,
	} {
		cloud := awsfake.New()
		records, now := &store.Store{DB: cloud.Table}, cloud.Now()
		open := func(at time.Time) *resource.Writer {
			w, err := resource.Open(t.Context(), records, "demo", "step", func() time.Time { return at })
			if err != nil {
				t.Fatal(err)
			}
			return w
		}
		w := open(now.Add(ahead))
		err := w.Write(t.Context(), resource.Write{Aspect: "a", Value: "1", Do: func(context.Context) error { return nil }})
		if _, err := w.End(t.Context(), err); err != nil {
			t.Fatal(err)
		}
		for after, recent := range map[time.Duration]bool{0: judged > 0, judged - time.Second: judged > 0, judged: false} {
			if w := open(now.Add(after)); w.Recent("a") != recent || w.Confirms("a", "") == recent {
				t.Errorf("%v ahead, %v later: recent %t, want %t", ahead, after, w.Recent("a"), recent)
			}
		}
	}
}
