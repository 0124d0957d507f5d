package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/rack"
)

func statusCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "status RACK", Short: "Print the rack's status", Args: onlyRack, ValidArgsFunction: cobra.NoFileCompletions,
		Long: "Prints the rack's status. If a pass is running, it first prints what that pass is doing." + aboutPasses + aboutCloud,
	}
	wait := c.Flags().Bool("wait", false, "wait until a pass that has seen the current parameters has ended, and print the status then")
	c.RunE = func(c *cobra.Command, args []string) error {
		w, err := newWatcher(c.Context(), args[0])
		if err != nil {
			return err
		}
		switch located := w.locate(c.Context()); {
		case located != nil && *wait:
			return located
		case located != nil:
			return w.statusAlone(c.Context(), located)
		case *wait:
			return w.watch(c.Context(), func(string) {})
		}
		return w.status(c.Context())
	}
	return c
}

// status prints the status, and returns an error if it does not reflect the last write.
func (w *watcher) status(ctx context.Context) error {
	running, err := w.passes.running(ctx)
	if err != nil {
		return w.statusAlone(ctx, err)
	}
	found, err := w.find(ctx, nil)
	if err != nil {
		return err
	}
	switch unseen := found.unseen(); {
	case running != nil:
		fmt.Println(running.doing())
		if found.status != nil {
			_ = show(*found.status) // that of an earlier pass; its result does not count
		}
		return undecided("a pass of rack " + w.rack + " is running; `sawhorse status " + w.rack + " --wait` waits for its end")
	case len(unseen) > 0:
		if found.status != nil {
			_ = show(*found.status)
		}
		return undecided("no pass has seen " + strings.Join(unseen, ", ") + " yet; `sawhorse status " + w.rack + " --wait` waits for one")
	}
	return w.conclude(found)
}

// statusAlone is for users who may read the rack's parameters but not its passes.
func (w *watcher) statusAlone(ctx context.Context, why error) error {
	status, err := w.readStatus(ctx)
	if err != nil {
		return err
	}
	if status == nil {
		return why
	}
	warn("whether a pass is running is not known: %v", why)
	return show(*status)
}

// doing returns what a pass is doing.
func (p *pass) doing() string {
	text := fmt.Sprintf("a pass is running since %s: step %s", p.started.UTC().Format(time.RFC3339), p.step)
	if !p.since.IsZero() {
		text += " since " + p.since.UTC().Format(time.RFC3339)
	}
	if p.note != "" {
		text += ": " + p.note
	}
	return text
}

func decodeStatus(text string) (*rack.Status, error) {
	var status rack.Status
	err := json.Unmarshal([]byte(text), &status)
	return &status, err
}

// show prints a status for people. It returns an error, for scripts, if the rack does not match its parameters.
func show(s rack.Status) error {
	fmt.Printf("%s  generation %d  %s  %.1f s\n", s.State, s.Generation, s.Time, s.DurationSeconds)
	list := func(title string, problems []params.Problem) {
		for _, p := range problems {
			fmt.Printf("%s  %s\n", title, line(p))
		}
	}
	list("problem", s.Problems)
	list("warning", s.Warnings)
	if f := s.Failure; f != nil {
		where := ""
		if f.Step != "" { // otherwise it is not known how far the pass came
			where = "step " + f.Step + ": "
		}
		fmt.Printf("failure  %s%s: %s\n         %s\n", where, f.Error, f.Reason, f.Remedy)
	}
	for _, step := range s.Steps {
		fmt.Printf("due      %s\n", step)
	}
	for _, p := range s.Pools {
		fmt.Println(p)
	}
	for _, c := range s.Changed {
		fmt.Printf("changed  %s\n", c)
	}
	if s.Omitted > 0 {
		fmt.Printf("and %d more, complete in the rack's record and in the event\n", s.Omitted)
	}
	if s.State == rack.Rejected || s.State == rack.Failed {
		return fmt.Errorf("rack %s is %s", s.Rack, s.State)
	}
	return nil
}
