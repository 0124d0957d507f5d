package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

const aboutFile = `FILE (- is stdin) has settings as a JSON object, as YAML, or as lines name=value; the order does not matter, and YAML and
lines may have comments. Names that it leaves out keep their values, or are unset with --prune. The empty text means unset.
`

func diffCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "diff RACK FILE|-", Short: "Compare a file of settings with the rack", ValidArgsFunction: completeFile,
		Long: aboutFile + `
Prints what differs from the rack's parameters, what is wrong with it, and what it does to each pool's nodes. Nothing is written. It
judges without the cluster; ` + "`sawhorse apply --dry-run`" + ` does the same, and asks nothing more.` + aboutExit + aboutCloud,
		Args: rackAndFile,
	}
	prune := c.Flags().Bool("prune", false, "unset the parameters that FILE leaves out")
	format := outputFlag(c, "text", "json")
	c.RunE = func(c *cobra.Command, args []string) error {
		return diff(c.Context(), args[0], args[1], *prune, *format)
	}
	return c
}

func diff(ctx context.Context, rack, file string, prune bool, format string) error {
	w, err := newWatcher(ctx, rack)
	if err != nil {
		return looking(err)
	}
	p, err := w.propose(ctx, file, prune)
	if err != nil {
		return err
	}
	if err := p.show(os.Stdout, format); err != nil {
		return err
	}
	return p.refused()
}

// rackAndFile checks that the arguments are a rack's name and a file.
func rackAndFile(_ *cobra.Command, args []string) error {
	switch len(args) {
	case 0:
		return fmt.Errorf("RACK is missing")
	case 1:
		return fmt.Errorf("FILE is missing; - is stdin")
	case 2:
		return rackName(args[0])
	}
	return fmt.Errorf("there are %d arguments; allowed are two, RACK and FILE", len(args))
}

func completeFile(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 1 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// proposal is a change that a file of settings asks of a rack.
type proposal struct {
	Rack string `json:"rack"`
	// Differs are the parameters that get another value, by name.
	Differs []difference `json:"differs"`
	answer
	// Pools are the effects on the pools' nodes.
	Pools []plan.Effect `json:"pools"`
	// kept are parameters that the file leaves out, and that are never unset with the others.
	kept []string
}

// difference is a parameter with its value now and then. An absent one, and one that is to be unset, is unset.
type difference struct {
	Parameter string `json:"parameter"`
	Now       string `json:"now"`
	Then      string `json:"then"`
}

// lasting are the parameters that --prune does not unset: what that does cannot be taken back by writing them again.
var lasting = []string{"cluster_name", "karpenter_auth_mode", "karpenter_enabled", "karpenter_version"}

// propose compares a file of settings with the rack's parameters, and judges the rack as it would be.
func (w *watcher) propose(ctx context.Context, file string, prune bool) (proposal, error) {
	p := proposal{Rack: w.rack, Differs: []difference{}}
	text, err := readFile(file)
	if err != nil {
		return p, unusable{err}
	}
	wanted, err := readSettings(text)
	if err != nil {
		return p, unusable{fmt.Errorf("%s: %w", called(file), err)}
	}
	tree, err := store.ReadTree(ctx, w.ssm, paths().Params(w.rack))
	if err != nil {
		return p, looking(err)
	}
	status, err := w.readStatus(ctx)
	if err != nil {
		return p, looking(err)
	}
	if prune {
		p.prune(tree.Values, wanted)
	}
	then := maps.Clone(tree.Values)
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		now, next := normal(tree.Values[name]), normal(wanted[name])
		if now == next {
			continue
		}
		then[name] = next
		p.Differs = append(p.Differs, difference{name, now, next})
	}
	judged, _ := input{Rack: w.rack, Params: then, Previous: tree.Values}.outlook()
	p.answer, p.Pools = judged.answer, judged.Pools
	p.count(status)
	return p, nil
}

// prune adds the parameters that the file leaves out.
func (p *proposal) prune(now, wanted settings) {
	for _, name := range slices.Sorted(maps.Keys(now)) {
		switch _, named := wanted[name]; {
		case named || normal(now[name]) == params.Unset:
		case slices.Contains(lasting, name):
			p.kept = append(p.kept, name)
		default:
			wanted[name] = params.Unset
		}
	}
}

// count adds how many nodes the pools have, as far as the rack's status says so: it may be older than a pool, or have left some out.
func (p *proposal) count(status *store.Status) {
	if status == nil {
		return
	}
	for i := range p.Pools {
		for _, pool := range status.Pools {
			if pool.Pool == p.Pools[i].Pool && p.Pools[i].Nodes == nil {
				p.Pools[i].Nodes = &pool.Nodes
			}
		}
	}
}

// show prints the proposal.
func (p proposal) show(to io.Writer, format string) error {
	if format == "json" {
		return printJSON(p)
	}
	if len(p.Differs) == 0 {
		fmt.Fprintf(to, "rack %s has these settings: nothing differs\n", p.Rack)
	} else {
		table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "PARAMETER\tNOW\tTHEN")
		for _, d := range p.Differs {
			fmt.Fprintf(table, "%s\t%s\t%s\n", d.Parameter, cell(d.Now), cell(d.Then))
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	for _, name := range p.kept {
		fmt.Fprintf(to, "kept     %s: --prune does not unset it; name it in the file to change it\n", name)
	}
	tell(to, p.answer)
	for _, effect := range p.Pools {
		fmt.Fprintln(to, effect)
	}
	return nil
}

// cell returns a value as the table shows it, on one line of bearable length.
func cell(value string) string {
	const most = 60
	value = plain(strings.Join(strings.Fields(value), " "))
	if letters := []rune(value); len(letters) > most {
		return string(letters[:most-1]) + "…"
	}
	return value
}

// refused returns the error for a proposal with problems.
func (p proposal) refused() error {
	if !p.Accepted {
		return refused("")
	}
	return nil
}
