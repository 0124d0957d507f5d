package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/sawhorse-io/sawhorse/internal/store"
)

func historyCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "history RACK", Short: "List the rack's snapshots", Args: exactly("RACK"), ValidArgsFunction: completeRack,
		Long: `Lists the snapshots of the rack, the last one first: the values that were in force, since when, who wrote what changed, and
how many nodes that replaced. sawhorse diff RACK@NUMBER compares one with the rack, and sawhorse rollback RACK NUMBER goes back to it.

Exit codes: 0 printed, 1 the rack has no snapshot, 2 wrong use, 3 AWS could not be read.` + aboutCloud,
	}
	format := outputFlag(c, "text", "json")
	c.RunE = func(c *cobra.Command, args []string) error {
		w, err := newWatcher(c.Context(), args[0])
		if err != nil {
			return looking(err)
		}
		return looking(w.history(c.Context(), *format))
	}
	return c
}

func (w *watcher) history(ctx context.Context, format string) error {
	records, _, err := w.snapshots(ctx)
	if err != nil {
		return err
	}
	waiting := newProgress()
	waiting.say("reading the snapshots")
	all, err := store.History(ctx, records, w.rack, format == "json")
	waiting.end()
	switch {
	case err != nil:
		return unread(err)
	case format == "json":
		return printJSON(all)
	}
	return listSnapshots(os.Stdout, all)
}

// snapshots returns the records that have the rack's snapshots, and the rack's status, which has the last one.
func (w *watcher) snapshots(ctx context.Context) (*store.Store, *store.Status, error) {
	status, err := w.readStatus(ctx)
	switch {
	case err != nil:
		return nil, nil, err
	case status == nil || status.Snapshot == nil:
		return nil, nil, refused(fmt.Sprintf("rack %s has no snapshot: a pass that is Reconciled makes the first one; "+
			"`sawhorse status %s` shows what became of the last pass", w.rack, w.rack))
	}
	return &store.Store{DB: w.table, Name: status.Snapshot.Table}, status, nil
}

// unread adds what is missing if the snapshots may not be read.
func unread(err error) error {
	return fmt.Errorf("%w; the stack's policy for operators of the rack has the right to read its snapshots", err)
}

// snapshot reads one snapshot of the rack.
func (w *watcher) snapshot(ctx context.Context, records *store.Store, number int64) (*store.Snapshot, error) {
	found, err := records.Snapshot(ctx, w.rack, number)
	switch {
	case err != nil:
		return nil, unread(err)
	case found == nil:
		return nil, refused(fmt.Sprintf("rack %s has no snapshot %d; `sawhorse history %s` lists those that it has", w.rack, number, w.rack))
	}
	return found, nil
}

// listSnapshots prints snapshots as a table.
func listSnapshots(to io.Writer, all []store.Summary) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SNAPSHOT\tTIME\tKARPENTER\tCHANGED\tNODES\tBY\tNOTE")
	for _, s := range all {
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n",
			s.Number, s.Time.Format(time.RFC3339), cmp.Or(s.Karpenter, "off"), changedIn(s), replacedBy(s), writersOf(s), cell(cmp.Or(s.Note, "-")))
	}
	return table.Flush()
}

// changedIn returns the names of the parameters that a snapshot has changed.
func changedIn(s store.Summary) string {
	const most = 3
	var names []string
	for _, c := range s.Changed {
		names = append(names, c.Parameter)
	}
	switch {
	case len(names) == 0:
		return "-"
	case len(names) > most:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most-1], ", "), len(names)-most+1)
	}
	return strings.Join(names, ", ")
}

// replacedBy returns how many nodes Karpenter had to replace for a snapshot.
func replacedBy(s store.Summary) string {
	switch {
	case s.More && s.Nodes == 0:
		return "some"
	case s.More:
		return fmt.Sprintf("%d or more", s.Nodes)
	}
	return fmt.Sprint(s.Nodes)
}

// writersOf returns who wrote what a snapshot has changed, by the last part of their ARNs.
func writersOf(s store.Summary) string {
	var all []string
	seen := map[string]bool{"": true}
	for _, c := range s.Changed {
		if !seen[c.By] {
			all = append(all, c.By[strings.LastIndex(c.By, ":")+1:])
		}
		seen[c.By] = true
	}
	if len(all) == 0 {
		return "-"
	}
	return cell(strings.Join(all, ", "))
}
