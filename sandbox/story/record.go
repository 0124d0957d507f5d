package story

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sawhorse-io/sawhorse/sandbox/chaos/timeline"
)

// recording runs commands in the background, and records each line they print with its time.
type recording struct {
	script *Script
	mu     sync.Mutex
	found  []timeline.Moment
	failed []string // the commands that ended before they were stopped
	began  time.Time
	end    context.CancelFunc
	all    sync.WaitGroup
}

// record starts a recording of commands that run until it is stopped, as `kubectl get --watch` does.
func (s *Script) record(commands ...string) *recording {
	r := &recording{script: s, began: time.Now()}
	watching := *s
	watching.ctx, r.end = context.WithCancel(s.ctx)
	watching.patience = 24 * time.Hour // it ends when it is stopped
	for _, command := range commands {
		s.Say("(in the background) $ %s", command)
		r.all.Go(func() {
			err := watching.run(command, &lines{to: r.add}, &lines{to: r.add})
			if watching.ctx.Err() == nil {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.failed = append(r.failed, fmt.Sprintf("`%s` ended by itself: %v", command, err))
			}
		})
	}
	return r
}

func (r *recording) add(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.found = append(r.found, timeline.Moment{At: time.Now(), What: line})
}

// seen returns the moments that were recorded until now. A command that has ended by itself fails the check, because it saw no more.
func (r *recording) seen() []timeline.Moment {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.failed) > 0 {
		r.script.fail("the recording: %s", r.failed)
	}
	return slices.Clone(r.found)
}

// stop ends the recording. It returns the recorded moments and the given ones, sorted by time.
func (r *recording) stop(others ...timeline.Moment) []timeline.Moment {
	r.end()
	r.all.Wait()
	all := append(r.seen(), others...)
	timeline.Sort(all)
	return all
}

// availability records how many pods of apps are available. Reads now and then would miss that for a moment there were fewer.
type availability struct {
	*recording
	apps []app
}

// recordAvailable starts the recording, which has begun when it returns.
func (s *Script) recordAvailable(apps ...app) availability {
	a := availability{s.record(`kubectl -n shop get deployments --watch --output-watch-events ` +
		`-o jsonpath='{.object.metadata.name} available={.object.status.availableReplicas}{"\n"}'`), apps}
	s.Await("the recording has begun", func() string {
		text := fmt.Sprint(a.seen())
		for _, one := range apps {
			if !strings.Contains(text, one.name+" available=") {
				return one.name + " was not seen"
			}
		}
		return ""
	}, "", time.Minute)
	return a
}

// stop ends the recording, if it has begun.
func (a availability) stop() {
	if a.recording != nil {
		a.recording.stop()
	}
}

// missing returns how many pods of one app were not available at once, at most, until now.
func (a availability) missing() (most int) {
	if a.recording == nil {
		return 0 // the chapter that begins it has failed
	}
	for _, m := range a.seen() {
		for _, one := range a.apps {
			if available, is := strings.CutPrefix(m.What, one.name+" available="); is { // no field is 0
				most = max(most, one.replicas-number(available))
			}
		}
	}
	return most
}

// trail returns the calls that changed something in AWS, as CloudTrail has them: caller, service, action and path.
func (s *Script) trail() []timeline.Moment {
	var text string
	s.sandbox(http.MethodGet, "trail", nil, &text)
	found, err := timeline.Trail(text)
	if err != nil {
		s.fail("%v", err)
	}
	return found
}

// lines calls a function with each complete line.
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

// inOrder checks that both moments were recorded, and in that order, within the accuracy of a watch.
func (s *Script) inOrder(what string, before, after time.Time) {
	switch {
	case before.IsZero() || after.IsZero():
		s.fail("%s: not both were seen (%s, %s)", what, timeline.Clock(before), timeline.Clock(after))
	case after.Before(before.Add(-timeline.Lag)):
		s.fail("%s: it was the other way round (%s, %s)", what, timeline.Clock(before), timeline.Clock(after))
	default:
		s.pass(fmt.Sprintf("%s (%s, %s)", what, timeline.Clock(before), timeline.Clock(after)))
	}
}
