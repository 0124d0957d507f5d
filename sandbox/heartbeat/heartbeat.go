// Package heartbeat adds status lines to the output of a long run, so that the output and its
// logs always show progress.
package heartbeat

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// silence is the time without output after which the writer writes a status line. With the 5 s that the status function
// may take, there is a line at least every 15 s.
const silence = 10 * time.Second

// Writer passes writes on to its output. If nothing is written, it prints how long the run has taken and
// what it is doing.
type Writer struct {
	began time.Time
	beat  *time.Timer

	mu      sync.Mutex // guards the fields below
	to      io.Writer
	at      func() string
	stopped bool
}

// New starts monitoring an output, until Stop.
func New(to io.Writer, at string) *Writer {
	w := &Writer{began: time.Now(), to: to}
	w.At(at)
	w.beat = time.AfterFunc(silence, w.tell)
	return w
}

// At sets what the run is doing from now on.
func (w *Writer) At(at string) { w.Ask(func() string { return at }) }

// Ask sets a function that returns what the run is doing. The writer calls it for each status line. It may take 5 s.
func (w *Writer) Ask(at func() string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = at
}

// Write passes the text on.
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

// Stop stops the status lines. Writes are still passed on.
func (w *Writer) Stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	w.beat.Stop()
}

// tell writes a status line.
func (w *Writer) tell() {
	w.mu.Lock()
	at := w.at
	w.mu.Unlock()
	is := at() // without the lock, because others keep writing meanwhile
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.stopped {
		_, _ = w.pass(fmt.Appendf(nil, "… %.0f s: %s\n", time.Since(w.began).Seconds(), is))
	}
}
