package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/sawhorse-io/sawhorse/internal/store"
)

// nodesPoll is the time between two looks at the status. Sawhorse itself looks at the nodes every five minutes.
const nodesPoll = 10 * time.Second

// follow shows how far the nodes have followed the parameters, until the last outdated node is gone and all pools are
// Ready.
func (w *watcher) follow(ctx context.Context, out io.Writer, show func(store.Status)) error {
	for {
		status, err := w.readStatus(ctx)
		if err != nil {
			return err
		}
		if status == nil || status.Rollout == nil {
			fmt.Fprintf(out, "Karpenter is off in rack %s: there are no nodes to follow\n", w.rack)
			return nil
		}
		show(*status)
		unready := func(p store.Pool) bool { return !p.Ready }
		if r := status.Rollout; r.Ended != "" && status.Pools.Outdated() == 0 && !slices.ContainsFunc(status.Pools, unready) {
			fmt.Fprintf(out, "the nodes follow generation %d%s\n", r.Generation, took(*r))
			return nil
		}
		if err := w.wait(ctx, nodesPoll); err != nil {
			return err
		}
	}
}

// took describes how long a rollout took.
func took(r store.Progress) string {
	started, err := time.Parse(time.RFC3339, r.Started)
	ended, bad := time.Parse(time.RFC3339, r.Ended)
	if err != nil || bad != nil {
		return ""
	}
	return fmt.Sprintf(" since %s, %s after its pass began", r.Ended, ended.Sub(started))
}

// terminal reports whether a file is a terminal, where lines can be drawn again.
func terminal(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// bars returns a function that draws a bar for each pool over those it drew before.
func bars(out io.Writer) func(store.Status) {
	drawn := 0
	return func(s store.Status) {
		if drawn > 0 {
			fmt.Fprintf(out, "\x1b[%dA\x1b[J", drawn) // up to the first line, and clear the rest
		}
		fmt.Fprint(out, "\x1b[?7l") // a line that is too long is cut off: as two rows, the next drawing would miss it
		defer fmt.Fprint(out, "\x1b[?7h")
		width := 0
		for _, p := range s.Pools {
			width = max(width, len(p.Pool))
		}
		if drawn = len(s.Pools); drawn == 0 {
			drawn = 1
			fmt.Fprintln(out, "the nodes have not been looked at yet")
		}
		for _, p := range s.Pools {
			fmt.Fprintf(out, "%-*s  %s  %s\n", width, p.Pool, bar(p), about(p))
		}
		for _, w := range s.Waiting {
			drawn++
			fmt.Fprintf(out, "waiting  %s: %s\n", w, plain(w.Reason))
		}
	}
}

// bar draws how many of a pool's nodes are neither outdated nor retiring.
func bar(p store.Pool) string {
	const width = 20
	full := width
	if p.Nodes > 0 {
		full = width * (p.Nodes - p.Outdated - p.Retiring) / p.Nodes
	}
	return strings.Repeat("█", full) + strings.Repeat("░", width-full)
}

// changes returns a function that prints a line for each pool, and for what pods wait for, if there is something new, for files
// and pipes.
func changes(out io.Writer, now func() time.Time) func(store.Status) {
	said := []string{}
	return func(s store.Status) {
		var lines []string
		for _, p := range s.Pools {
			line := fmt.Sprintf("%-20s %s", p.Pool, about(p))
			lines = append(lines, line)
		}
		for _, w := range s.Waiting {
			lines = append(lines, fmt.Sprintf("%-20s %s: %s", "waiting", w, plain(w.Reason)))
		}
		for _, line := range lines {
			if !slices.Contains(said, line) {
				fmt.Fprintf(out, "%s  %s\n", now().UTC().Format(time.TimeOnly), line)
			}
		}
		said = lines
	}
}

// moving describes a migration in words.
func moving(m store.Migrating) string {
	text := fmt.Sprintf("migrating  %d nodes of %d node groups are to be emptied", m.Nodes, m.Groups)
	if m.Held != "" {
		text += ", held since " + m.Since + ": " + plain(m.Held)
	}
	return text
}

// about describes a pool in words.
func about(p store.Pool) string {
	text := fmt.Sprintf("%d nodes", p.Nodes)
	if p.Nodes == 1 {
		text = "1 node"
	}
	if p.Outdated > 0 {
		text += fmt.Sprintf(", %d outdated", p.Outdated)
	}
	if p.Retiring > 0 {
		text += fmt.Sprintf(", %d retiring", p.Retiring)
	}
	if p.Rotating > 0 {
		text += fmt.Sprintf(", %d rotating", p.Rotating)
	}
	if !p.Ready {
		text += ", not Ready"
	}
	if p.Since != "" {
		text += " since " + p.Since
	}
	if p.Reason != "" {
		text += ": " + plain(p.Reason)
	}
	if p.Held != "" {
		text += ", held: " + plain(p.Held)
	}
	return text
}
