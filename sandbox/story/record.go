package story

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// moment is something that happened while a recording ran.
type moment struct {
	at   time.Time
	what string
}

// recording runs commands next to the story, and keeps each line they print with the moment when it came.
type recording struct {
	mu    sync.Mutex
	found []moment
	began time.Time
	end   context.CancelFunc
	all   sync.WaitGroup
}

// record starts a recording of commands that go on printing, as `kubectl get --watch` does.
func (t *Teller) record(commands ...string) *recording {
	r := &recording{began: time.Now()}
	watching := *t
	watching.ctx, r.end = context.WithCancel(t.ctx)
	for _, command := range commands {
		t.Say("(in the background) $ %s", command)
		r.all.Go(func() { _ = watching.run(command, &lines{to: r.add}, &lines{to: r.add}) })
	}
	return r
}

func (r *recording) add(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.found = append(r.found, moment{time.Now(), line})
}

// stop ends the recording and gives what it has, in order, with what is added of other sources.
func (r *recording) stop(others ...moment) []moment {
	r.end()
	r.all.Wait()
	for _, m := range others {
		if m.at.After(r.began) {
			r.found = append(r.found, m)
		}
	}
	slices.SortStableFunc(r.found, func(a, b moment) int { return a.at.Compare(b.at) })
	return r.found
}

// trail is what has changed something in AWS, as CloudTrail would tell it: caller, service, action and path.
func (t *Teller) trail() []moment {
	var found []moment
	for line := range strings.Lines(t.Ask(`curl -s "$AWS_ENDPOINT_URL/_sandbox/trail"`)) {
		at, what, _ := strings.Cut(strings.TrimSpace(line), " ")
		parsed, err := time.Parse(time.RFC3339Nano, at)
		if err != nil {
			t.fail("the trail has a line %q", line)
			return nil
		}
		found = append(found, moment{parsed, "AWS " + what})
	}
	return found
}

// lines calls a function with each whole line.
type lines struct {
	to   func(string)
	rest []byte
}

func (l *lines) Write(text []byte) (int, error) {
	l.rest = append(l.rest, text...)
	for {
		line, rest, whole := bytes.Cut(l.rest, []byte("\n"))
		if !whole {
			return len(text), nil
		}
		l.to(string(line))
		l.rest = rest
	}
}

// first is when something was first seen from a moment on; the zero time if never.
func first(all []moment, from time.Time, is func(string) bool) time.Time {
	for _, m := range all {
		if !m.at.Before(from) && is(m.what) {
			return m.at
		}
	}
	return time.Time{}
}

// last is when something was last seen; the zero time if never.
func last(all []moment, is func(string) bool) time.Time {
	for _, m := range slices.Backward(all) {
		if is(m.what) {
			return m.at
		}
	}
	return time.Time{}
}

// inOrder holds if both moments were seen, the one before the other.
func (t *Teller) inOrder(what string, before, after time.Time) {
	switch {
	case before.IsZero() || after.IsZero():
		t.fail("%s: not both were seen (%s, %s)", what, clock(before), clock(after))
	case after.Before(before):
		t.fail("%s: it was the other way round (%s, %s)", what, clock(before), clock(after))
	default:
		t.hold(fmt.Sprintf("%s (%s, %s)", what, clock(before), clock(after)))
	}
}

func clock(at time.Time) string {
	if at.IsZero() {
		return "never"
	}
	return at.Local().Format("15:04:05.000")
}
