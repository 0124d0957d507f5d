// Package heartbeat keeps the output of a long run from falling silent: a log, too, is to show that something goes on, and what.
package heartbeat

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// silence is how long nothing may be written before the writer writes a line itself. It has some seconds to find out what to say: no
// reader waits longer than 15 s.
const silence = 10 * time.Second

// Writer passes on what is written to it. Where nothing is, it tells how long the run has gone on and what it is at.
type Writer struct {
	began time.Time
	beat  *time.Timer

	mu      sync.Mutex // of what follows
	to      io.Writer
	at      func() string
	stopped bool
}

// New begins to watch over an output, until Stop.
func New(to io.Writer, at string) *Writer {
	w := &Writer{began: time.Now(), to: to}
	w.At(at)
	w.beat = time.AfterFunc(silence, w.tell)
	return w
}

// At says what the run is at from now on.
func (w *Writer) At(at string) { w.Ask(func() string { return at }) }

// Ask has the writer ask what the run is at, for each line that it writes itself. The answer may take 5 s.
func (w *Writer) Ask(at func() string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = at
}

// Write passes on.
func (w *Writer) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pass(text)
}

func (w *Writer) pass(text []byte) (int, error) {
	if !w.stopped {
		w.beat.Reset(silence)
	}
	return w.to.Write(text)
}

// Stop ends the watch; what is written is still passed on.
func (w *Writer) Stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	w.beat.Stop()
}

// tell writes the writer's own line.
func (w *Writer) tell() {
	w.mu.Lock()
	at := w.at
	w.mu.Unlock()
	is := at() // without the lock: others go on writing meanwhile
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.stopped {
		_, _ = w.pass(fmt.Appendf(nil, "… %.0f s: %s\n", time.Since(w.began).Seconds(), is))
	}
}
