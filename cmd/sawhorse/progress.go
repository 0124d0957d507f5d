package main

import (
	"fmt"
	"os"
	"time"
)

// progress is a line on the terminal that says what takes long.
type progress struct {
	from time.Time
	said bool
}

// newProgress returns a line that is not shown in the first two seconds.
func newProgress() *progress { return &progress{from: time.Now().Add(2 * time.Second)} }

// say shows another text on the line. Only terminals have one.
func (p *progress) say(text string) {
	if time.Now().After(p.from) && terminal(os.Stderr) {
		p.said = true
		fmt.Fprintf(os.Stderr, "\r\x1b[K%s…", text)
	}
}

// end clears the line.
func (p *progress) end() {
	if p.said {
		p.said = false
		fmt.Fprint(os.Stderr, "\r\x1b[K")
	}
}
