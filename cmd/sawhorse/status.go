package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

func statusCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "status RACK", Short: "Print the rack's status", Args: exactly("RACK"), ValidArgsFunction: completeRack,
		Long: "Prints the rack's status. If a pass is running, it first prints what that pass is doing." + aboutPasses + aboutCloud,
	}
	wait := c.Flags().Bool("wait", false, "wait until a pass that has seen the current parameters has ended, and print the status then")
	format := outputFlag(c, "text", "json")
	c.RunE = func(c *cobra.Command, args []string) error {
		return looking(status(c.Context(), args[0], *wait, *format == "json"))
	}
	return c
}

func status(ctx context.Context, name string, wait, json bool) error {
	w, err := newWatcher(ctx, name)
	if err != nil {
		return err
	}
	if json {
		w.show = func(s standing) error { return printJSON(s) }
	}
	switch located := w.locate(ctx); {
	case located != nil && wait:
		return located
	case located != nil:
		return w.statusAlone(ctx, located)
	case wait:
		return w.watch(ctx, func(string) {})
	}
	return w.status(ctx)
}

// standing is the JSON output of status.
type standing struct {
	Rack string `json:"rack"`
	// Status is the rack's status as its last pass wrote it; null if there is none.
	Status *store.Status `json:"status"`
	// Running is the pass that runs now. The status is then that of an earlier pass.
	Running *store.Running `json:"running,omitempty"`
	// Unseen lists the parameters whose last write no pass has seen.
	Unseen []string `json:"unseen,omitempty"`
	// Unknown is the reason why it is not known whether a pass is running.
	Unknown string `json:"unknown,omitempty"`
}

func (w *watcher) print(s standing) error {
	if w.show != nil {
		return w.show(s)
	}
	if s.Running != nil {
		fmt.Println(doing(*s.Running))
	}
	if s.Status != nil {
		show(*s.Status)
	}
	return nil
}

// status prints the status, and returns an error if it does not reflect the last write.
func (w *watcher) status(ctx context.Context) error {
	pass, err := w.passes.running(ctx)
	if err != nil {
		return w.statusAlone(ctx, err)
	}
	found, err := w.find(ctx, nil)
	if err != nil {
		return err
	}
	s := standing{Rack: w.rack, Status: found.status, Unseen: found.unseen()}
	switch {
	case pass != nil:
		s.Running = &store.Running{
			Execution: pass.execution, Started: pass.started.UTC(), Step: pass.step, Since: pass.since.UTC(), Note: pass.note,
		}
		s.Unseen = nil // it may have seen them
		return cmp.Or(w.print(s), w.unended())
	case len(s.Unseen) > 0:
		return cmp.Or(w.print(s), error(undecided("no pass has seen "+strings.Join(s.Unseen, ", ")+
			" yet; `sawhorse status "+w.rack+" --wait` waits for one")))
	}
	return cmp.Or(w.conclude(found), degraded(found.status))
}

// degraded returns an error if the rack is degraded. Only status asks: the result of a pass is another matter.
func degraded(s *store.Status) error {
	if s == nil || s.State != outcome.StateDegraded {
		return nil
	}
	return refused(fmt.Sprintf("rack %s is Degraded: a pool is not Ready, its nodes do not register, or pods wait for nodes that cannot be "+
		"launched", s.Rack))
}

// unended is the error that says that the status is not that of the pass that runs.
func (w *watcher) unended() error {
	return undecided("a pass of rack " + w.rack + " is running; `sawhorse status " + w.rack + " --wait` waits for its end")
}

// statusAlone is for users who may read the rack's parameters but not its passes. They see a pass once the status has it.
func (w *watcher) statusAlone(ctx context.Context, why error) error {
	status, err := w.readStatus(ctx)
	if err != nil {
		return err
	}
	if status == nil {
		return why
	}
	warn("whether a pass is running is not known: %v", why)
	s := standing{Rack: w.rack, Status: status, Running: status.Running, Unknown: why.Error()}
	if s.Running != nil {
		return cmp.Or(w.print(s), w.unended())
	}
	return cmp.Or(w.print(s), result(*status), degraded(status), error(undecided("")))
}

// doing describes what a pass is doing.
func doing(r store.Running) string {
	text := fmt.Sprintf("a pass is running since %s: step %s", r.Started.Format(time.RFC3339), r.Step)
	if !r.Since.IsZero() {
		text += " since " + r.Since.Format(time.RFC3339)
	}
	if r.Note != "" {
		text += ": " + plain(r.Note)
	}
	return text
}

// result returns an error if the rack does not match its parameters.
func result(s store.Status) error {
	if s.State == outcome.StateRejected || s.State == outcome.StateFailed {
		return refused(fmt.Sprintf("rack %s is %s", s.Rack, s.State))
	}
	return nil
}

// show prints a status for people.
func show(s store.Status) {
	fmt.Printf("%s  generation %d  %s  %.1f s", s.State, s.Generation, s.Time, s.DurationSeconds)
	if s.Karpenter != "" {
		fmt.Printf("  Karpenter %s", s.Karpenter)
	}
	fmt.Println()
	for _, name := range s.Brakes {
		fmt.Printf("brake    %s\n", name)
	}
	list := func(title string, problems []params.Problem) {
		for _, p := range problems {
			fmt.Printf("%s  %s\n", title, line(p))
		}
	}
	list("problem", s.Problems)
	list("warning", s.Warnings)
	if c := s.Change; c != nil {
		fmt.Println(strings.TrimSpace(fmt.Sprintf("change   version %d  %s  %s", c.Version, c.Outcome, plain(c.Note))))
		list("        ", c.Problems)
	}
	if f := s.Failure; f != nil {
		where := ""
		if f.Step != "" { // otherwise it is not known how far the pass came
			where = "step " + f.Step + ": "
		}
		fmt.Printf("failure  %s%s: %s\n         %s\n", where, f.Error, plain(f.Reason), f.Remedy)
	}
	for _, step := range s.Steps {
		fmt.Printf("due      %s\n", step)
	}
	for _, p := range s.Pools {
		fmt.Printf("pool     %s  %s\n", p.Pool, about(p))
	}
	for _, l := range s.Latest {
		text := fmt.Sprintf("image    %s is %s since %s", l.Alias, l.Image, l.Since)
		if l.Older > 0 {
			text += fmt.Sprintf("; nodes with an older one: %d", l.Older)
		}
		fmt.Println(text)
	}
	for _, w := range s.Waiting {
		fmt.Printf("waiting  %s: %s\n", w, plain(w.Reason))
	}
	if m := s.Migrating; m != nil {
		fmt.Println(moving(*m))
	}
	for _, p := range s.Effects {
		fmt.Println(p)
	}
	for _, c := range s.Changed {
		fmt.Printf("changed  %s\n", c)
	}
	if s.Omitted > 0 {
		fmt.Printf("and %d more, complete in the rack's records\n", s.Omitted)
	}
}
