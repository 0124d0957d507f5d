package story

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/sawhorse-io/sawhorse/sandbox/chaos/timeline"
)

// recording runs commands in the background, and records each line they print with its time.
type recording struct {
	mu    sync.Mutex
	found []timeline.Moment
	began time.Time
	end   context.CancelFunc
	all   sync.WaitGroup
}

// record starts a recording of commands that run until it is stopped, as `kubectl get --watch` does.
func (s *Script) record(commands ...string) *recording {
	r := &recording{began: time.Now()}
	watching := *s
	watching.ctx, r.end = context.WithCancel(s.ctx)
	for _, command := range commands {
		s.Say("(in the background) $ %s", command)
		r.all.Go(func() { _ = watching.run(command, &lines{to: r.add}, &lines{to: r.add}) })
	}
	return r
}

func (r *recording) add(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.found = append(r.found, timeline.Moment{At: time.Now(), What: line})
}

// stop ends the recording. It returns the recorded moments and the given ones, sorted by time.
func (r *recording) stop(others ...timeline.Moment) []timeline.Moment {
	r.end()
	r.all.Wait()
	all := append(r.found, others...)
	timeline.Sort(all)
	return all
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
