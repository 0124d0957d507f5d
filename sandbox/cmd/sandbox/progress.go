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

// The supervisor reports its progress to `sandbox up` in lines on file descriptor 3. The two words below report how the
// start ended; any other text is progress.
const (
	wordReady  = "ready"
	wordFailed = "failed: "
)

// progress is the supervisor's side. There may be no reader.
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
	_, _ = fmt.Fprintln(p.pipe, line) // fails if up has been killed, which the closed standard input reports too
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
