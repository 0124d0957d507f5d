package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

// comparison is what differs between a snapshot of a rack and another one, or what the rack has now.
type comparison struct {
	Rack string `json:"rack"`
	// From and To are the numbers of snapshots. To is 0 for what the rack has now.
	From    int64     `json:"from"`
	To      int64     `json:"to,omitempty"`
	Differs []altered `json:"differs"`
}

// altered is a parameter with its value before and after. One that has its default is unset.
type altered struct {
	Parameter string `json:"parameter"`
	From      string `json:"from"`
	To        string `json:"to"`
	// Text means that the value is the same s3:// URI and the text behind it another one.
	Text bool `json:"text,omitempty"`
}

// diffSnapshots compares one snapshot, or two, that arguments name as RACK@NUMBER.
func diffSnapshots(ctx context.Context, args []string, format string) error {
	rack, _, _ := strings.Cut(args[0], "@")
	w, err := newWatcher(ctx, rack)
	if err != nil {
		return looking(err)
	}
	var numbers []int64
	for _, arg := range args {
		_, text, _ := strings.Cut(arg, "@")
		number, err := snapshotNumber(text)
		if err != nil {
			return wrongUse{err}
		}
		numbers = append(numbers, number)
	}
	c, err := w.comparison(ctx, numbers)
	switch {
	case err != nil:
		return looking(err)
	case format == "json":
		return printJSON(c)
	}
	return c.show(os.Stdout)
}

func (w *watcher) comparison(ctx context.Context, numbers []int64) (comparison, error) {
	c := comparison{Rack: w.rack, From: numbers[0], Differs: []altered{}}
	records, status, err := w.snapshots(ctx)
	if err != nil {
		return c, err
	}
	from, err := w.snapshot(ctx, records, c.From)
	if err != nil {
		return c, err
	}
	var to store.Values
	if len(numbers) > 1 {
		c.To = numbers[1]
		other, err := w.snapshot(ctx, records, c.To)
		if err != nil {
			return c, err
		}
		to = other.Values
	} else if to, err = w.values(ctx, records, status); err != nil {
		return c, err
	}
	value := func(of store.Values, name string) string {
		if text, is := of.Params[name]; is {
			return normal(text)
		}
		return params.Unset
	}
	for _, name := range from.Differ(to) {
		a := altered{Parameter: name, From: value(from.Values, name), To: value(to, name)}
		a.Text = a.From == a.To
		c.Differs = append(c.Differs, a)
	}
	return c, nil
}

// values returns what the rack's parameters have now. Of what they name in S3, the last snapshot has the texts: whoever may read the
// snapshots need not have the right to read S3.
func (w *watcher) values(ctx context.Context, records *store.Store, status *store.Status) (store.Values, error) {
	last, err := w.snapshot(ctx, records, status.Snapshot.Number)
	if err != nil {
		return store.Values{}, err
	}
	tree, err := store.ReadTree(ctx, w.ssm, paths().Params(w.rack))
	if err != nil {
		return store.Values{}, err
	}
	if len(last.Objects) > 0 && !inForce(status) {
		warn("the last pass of rack %s was %s, and what is in S3 counts as it was in snapshot %d: it may have changed since", w.rack,
			status.State, last.Number)
	}
	return store.Values{Params: effective(w.rack, tree.Values, *last), Objects: last.Objects}, nil
}

func (c comparison) show(to io.Writer) error {
	if len(c.Differs) == 0 {
		fmt.Fprintln(to, "nothing differs")
		return nil
	}
	table, other := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0), "NOW"
	if c.To > 0 {
		other = fmt.Sprint("@", c.To)
	}
	fmt.Fprintf(table, "PARAMETER\t@%d\t%s\n", c.From, other)
	for _, d := range c.Differs {
		after := cell(d.To)
		if d.Text {
			after = "another text"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", d.Parameter, cell(d.From), after)
	}
	return table.Flush()
}
