package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

const aboutFile = `FILE (- is stdin) has settings as a JSON object, as YAML, or as lines name=value; the order does not matter, and YAML and
lines may have comments. Names that it leaves out keep their values, or are unset with --prune. The empty text means unset.
`

func diffCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "diff RACK FILE|-, diff RACK@SNAPSHOT [RACK@SNAPSHOT]", Short: "Compare a file of settings, or a snapshot, with the rack",
		Long: aboutFile + `
Prints what differs from the rack's parameters, what is wrong with it, and what it does to each pool's nodes. Nothing is written. It
judges without the cluster; ` + "`sawhorse apply --dry-run`" + ` asks for a dry pass, which reads the cluster.

RACK@3 is the rack's snapshot 3 (` + "`sawhorse history`" + `). It is compared with another one, or with the rack's parameters.` +
			"\n\nExit codes: 0 accepted, 1 refused, 2 wrong use, 3 not known." + aboutCloud,
		Args: toCompare, ValidArgsFunction: completeFile,
	}
	prune := c.Flags().Bool("prune", false, "unset the parameters that FILE leaves out")
	format := outputFlag(c, "text", "json")
	c.RunE = func(c *cobra.Command, args []string) error {
		if _, _, is := strings.Cut(args[0], "@"); is {
			return diffSnapshots(c.Context(), args, *format)
		}
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
	if err := p.show(os.Stdout, format); err != nil || p.Accepted {
		return err
	}
	return refused("")
}

// toCompare checks that the arguments are a rack's name and a file, or one or two snapshots of a rack.
func toCompare(c *cobra.Command, args []string) error {
	if len(args) == 0 || !strings.Contains(args[0], "@") {
		return exactly("RACK", "FILE")(c, args)
	}
	if len(args) > 2 {
		return fmt.Errorf("there are %d arguments; allowed are at most two snapshots", len(args))
	}
	rack, _, _ := strings.Cut(args[0], "@")
	for _, arg := range args {
		of, number, is := strings.Cut(arg, "@")
		if !is || of != rack {
			return fmt.Errorf("%s is no snapshot of rack %s; write %s@NUMBER", params.Quoted(arg), rack, rack)
		}
		if _, err := snapshotNumber(number); err != nil {
			return err
		}
	}
	return rackName(rack)
}

// completeFile completes a rack, or a snapshot of one, and then a file.
func completeFile(c *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if rack, _, is := strings.Cut(word, "@"); is {
		return snapshotsOf(c, rack, rack+"@"), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
	if len(args) == 1 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return completeRack(c, args, word)
}

// proposal is a change that a file of settings asks of a rack.
type proposal struct {
	Rack string `json:"rack"`
	// Differs are the parameters that get another value, by name.
	Differs []difference `json:"differs"`
	answer
	// Pools are the effects on the pools' nodes.
	Pools []plan.Effect `json:"pools"`
	// Kept has sentences about parameters that stay as they are although the file, or the snapshot, has them otherwise.
	Kept []string `json:"kept,omitempty"`
	// tree is what the rack had when the proposal was made, and last its last snapshot, or nil if that is not known.
	tree store.Tree
	last *store.Snapshot
	// problems are those that the rack has without the proposal, and stopped says why a pass would take no step
	// with it: the rack is paused or held.
	problems []params.Problem
	stopped  string
	// expect is the snapshot whose values that were, or 0 if that is not known.
	expect int64
	// inForce means that the last pass found the rack to be as the last snapshot has it. After others, what is in S3 may differ from that.
	inForce bool
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
	if len(tree.Values) == 0 {
		warn("rack %s has no parameters yet: these settings would begin it", w.rack)
	}
	if prune {
		if len(wanted) == 0 {
			return p, unusable{fmt.Errorf("%s has no settings, and --prune would unset all of the rack; allowed is a file with one setting at least",
				called(file))}
		}
		p.prune(tree.Values, wanted)
	}
	return p, looking(w.compare(ctx, &p, tree, wanted, nil))
}

// compare adds to a proposal what differs between the rack's parameters and those that are wanted, and judges the rack as it would be.
// What is in S3 is judged as far as the rack's last snapshot has it, or objects, which are texts by URI. What neither has is left out on
// both sides.
func (w *watcher) compare(ctx context.Context, p *proposal, tree store.Tree, wanted settings, objects map[string]string) error {
	status, err := w.readStatus(ctx)
	if err != nil {
		return err
	}
	p.tree, p.last, p.inForce = tree, w.last(ctx, status), inForce(status)
	inline := func(value string) string {
		uri := strings.TrimSpace(value)
		if p.last != nil && p.last.Objects[uri] != "" {
			return p.last.Objects[uri]
		}
		return cmp.Or(objects[uri], value)
	}
	now, then := map[string]string{}, map[string]string{}
	for name, value := range tree.Values {
		now[name], then[name] = inline(value), inline(value)
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		is, next := normal(tree.Values[name]), normal(wanted[name])
		if is == next {
			continue
		}
		then[name] = inline(next)
		p.Differs = append(p.Differs, difference{name, is, next})
	}
	previous := maps.Clone(now)
	if p.last != nil {
		clear(previous)
		for name, value := range p.last.Params {
			previous[name] = inline(value)
		}
	}
	for name, value := range then {
		if strings.HasPrefix(strings.TrimSpace(value), "s3://") {
			previous[name] = value
		}
	}
	if status != nil && status.Karpenter != "" {
		previous[params.ParamVersion] = status.Karpenter // which it keeps where none is written
	}
	before, _ := input{Rack: w.rack, Params: now, Previous: previous}.outlook()
	after, paused := input{Rack: w.rack, Params: then, Previous: previous}.outlook()
	if p.problems = before.Problems; status != nil {
		p.problems = append(p.problems, status.Problems...) // those too that only a pass sees
	}
	switch {
	case paused:
		p.stopped = "paused"
	case status != nil && slices.Contains(status.Brakes, "hold"):
		p.stopped = "held"
	}
	p.judge(after.answer)
	p.Pools = after.Pools
	p.count(status)
	return nil
}

// judge takes the answer about the rack as it would be. As in a pass, what is wrong already refuses nothing, unless it is of what is set:
// so the brakes can be written to a rack that is wrong elsewhere.
func (p *proposal) judge(of answer) {
	p.answer = of
	p.Accepted = !slices.ContainsFunc(of.Problems, func(problem params.Problem) bool {
		sets := slices.ContainsFunc(p.Differs, func(d difference) bool { return d.Parameter == problem.Parameter && d.Then != params.Unset })
		return sets || !slices.Contains(p.problems, problem)
	})
}

// last returns the last snapshot of a rack with a status, or nil if there is none, or none that can be read.
func (w *watcher) last(ctx context.Context, status *store.Status) *store.Snapshot {
	if status == nil || status.Snapshot == nil {
		return nil
	}
	records := &store.Store{DB: w.table, Name: status.Snapshot.Table}
	last, err := records.Snapshot(ctx, w.rack, status.Snapshot.Number)
	if err != nil {
		warn("%v", unread(fmt.Errorf("what is written counts as in force, and a write in between may not be noticed: %w", err)))
	}
	return last
}

// inForce reports whether the last pass of a rack has put its values into force.
func inForce(status *store.Status) bool {
	return status != nil && (status.State == outcome.StateReconciled || status.State == outcome.StateDegraded)
}

// expected returns the number of the rack's last snapshot if that has the values that the proposal was made from, or 0: then others have
// been written since, or may have been put into S3, and no pass has put them into force yet.
func (w *watcher) expected(p proposal) int64 {
	if p.last == nil || len(p.last.Objects) > 0 && !p.inForce || !maps.Equal(effective(w.rack, p.tree.Values, *p.last), p.last.Params) {
		return 0
	}
	return p.last.Number
}

// meanwhile returns the names of the parameters that were written since a proposal was made. A replica that is behind what was read then
// is asked again.
func (w *watcher) meanwhile(ctx context.Context, p proposal) (names []string, err error) {
	for look := range 2 {
		if look > 0 {
			if err := w.wait(ctx, lag); err != nil {
				return nil, err
			}
		}
		now, err := store.ReadTree(ctx, w.ssm, paths().Params(w.rack))
		if err != nil {
			return nil, err
		}
		if names = newer(p.tree, now); len(names) == 0 {
			break
		}
	}
	return names, nil
}

// newer returns the names of the parameters that one tree has newer than an earlier one, or not any more.
func newer(before, now store.Tree) (names []string) {
	for name, version := range now.Versions {
		if version > before.Versions[name] {
			names = append(names, name)
		}
	}
	for name := range before.Versions {
		if _, is := now.Versions[name]; !is {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// effective returns the values of parameters that a snapshot would have, if the rack's last one is this.
func effective(rack string, values map[string]string, last store.Snapshot) map[string]string {
	return params.Parse(params.Input{Rack: rack, Params: values, Previous: last.Params}).Effective
}

// prune adds the parameters that the file leaves out.
func (p *proposal) prune(now, wanted settings) {
	for _, name := range slices.Sorted(maps.Keys(now)) {
		switch _, named := wanted[name]; {
		case named || normal(now[name]) == params.Unset:
		case slices.Contains(lasting, name):
			p.Kept = append(p.Kept, name+": --prune does not unset it; name it in the file to change it")
		default:
			wanted[name] = params.Unset
		}
	}
}

// count adds how many nodes the pools have, as far as the rack's status says so: it may be older than a pool, or have left some out. A
// pool that had none may have some by now, so that is not said.
func (p *proposal) count(status *store.Status) {
	if status == nil {
		return
	}
	for i := range p.Pools {
		for _, pool := range status.Pools {
			if pool.Pool == p.Pools[i].Pool && p.Pools[i].Nodes == nil && pool.Nodes > 0 {
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
	for _, kept := range p.Kept {
		fmt.Fprintf(to, "kept     %s\n", kept)
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
