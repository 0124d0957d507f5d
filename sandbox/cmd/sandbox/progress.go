package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"
)

// The supervisor tells `sandbox up` how it gets on in lines on file descriptor 3: any text is progress, the two words
// below say how it ended.
const (
	wordReady  = "ready"
	wordFailed = "failed: "
)

// progress is the supervisor's side. Nobody may be listening.
type progress struct {
	began time.Time
	pipe  io.Writer
}

func newProgress() *progress {
	syscall.CloseOnExec(3) // the children must not keep the pipe open
	return &progress{time.Now(), os.NewFile(3, "progress")}
}

// say reports a phase and how long after the start it was reached.
func (p *progress) say(text string) {
	p.write(fmt.Sprintf("%5.1f s  %s", time.Since(p.began).Seconds(), text))
}

func (p *progress) ready() { p.write(wordReady) }

func (p *progress) failed(err error) {
	p.write(wordFailed + strings.ReplaceAll(err.Error(), "\n", "; "))
}

func (p *progress) write(line string) {
	_, _ = fmt.Fprintln(p.pipe, line) // up may have been killed; the closed standard input tells that
}

// follow is up's side: it shows the progress and returns at the last word, or at the end of the pipe.
func follow(pipe io.Reader, show io.Writer) (ready bool, reason string) {
	lines := bufio.NewScanner(pipe)
	for lines.Scan() {
		switch line := lines.Text(); {
		case line == wordReady:
			return true, ""
		case strings.HasPrefix(line, wordFailed):
			reason = strings.TrimPrefix(line, wordFailed)
		default:
			fmt.Fprintln(show, line)
		}
	}
	return false, reason
}
