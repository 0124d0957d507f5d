package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"
	"github.com/spf13/cobra"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/canonical"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

const (
	// mostChange is the longest value that Parameter Store takes, in bytes.
	mostChange = 8192
	// unanswered is how long apply waits for a change to be answered: a pass that waits looks every few seconds, and one that is not
	// waiting ends sooner.
	unanswered = 10 * time.Minute
)

// application is how apply is to go about it.
type application struct {
	prune, dryRun, yes, json bool
	note                     string
}

func applyCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "apply RACK FILE|-", Short: "Write a file of settings to the rack, as one change", ValidArgsFunction: completeFile,
		Long: aboutFile + `
Prints what differs and what it does to nodes, asks on a terminal, writes the rack's parameter change, and follows the passes until it
is done. Settings that are refused are not written. --prune does not unset ` + strings.Join(lasting, ", ") + `.

--dry-run writes nothing: it puts the request for a dry pass on the stack's event bus, and prints what that says of the rack as it would
be, as the cluster is. Without the right to put events there it says so, and judges without the cluster. If the stack has a bus with
another name than ` + ownership.Bus + `, set SAWHORSE_BUS.

Exit codes: 0 done, or nothing differs; 1 refused, failed, or not confirmed; 2 wrong use; 3 not known.` + aboutCloud,
		Args: exactly("RACK", "FILE"),
	}
	var how application
	c.Flags().BoolVar(&how.prune, "prune", false, "unset the parameters that FILE leaves out")
	c.Flags().BoolVar(&how.dryRun, "dry-run", false, "only print what would be done, as a dry pass judges it")
	c.Flags().BoolVar(&how.yes, "yes", false, "do not ask; needed where there is no terminal")
	format := outputFlag(c, "text", "json")
	c.Flags().StringVar(&how.note, "note", "", "`TEXT` that the rack's status shows with the change")
	c.RunE = func(c *cobra.Command, args []string) error {
		how.json = *format == "json"
		w, err := newWatcher(c.Context(), args[0])
		if err != nil {
			return looking(err)
		}
		return w.apply(c.Context(), args[1], how)
	}
	return c
}

func (w *watcher) apply(ctx context.Context, file string, how application) error {
	p, err := w.propose(ctx, file, how.prune)
	if err != nil {
		return err
	}
	return w.carry(ctx, p, how, nil)
}

// carried is the JSON output of apply and rollback.
type carried struct {
	proposal
	// DryRun is the answer of the dry pass; absent if none was asked for, or none has answered.
	DryRun *events.Pass `json:"dryRun,omitempty"`
	// Change is what became of the change; absent if none was written, or if no pass has answered it.
	Change *store.ChangeStatus `json:"change,omitempty"`
	// Status is the rack's status after the pass that followed; absent if none was waited for.
	Status *store.Status `json:"status,omitempty"`
}

// carry shows a proposal, asks, writes it as one change, after the texts that it names in S3, and follows it. With JSON as format, stdout
// has one object at the end, and what it prints before goes to stderr.
func (w *watcher) carry(ctx context.Context, p proposal, how application, objects map[string]string) error {
	if !how.json {
		return w.write(ctx, &carried{proposal: p}, how, objects, os.Stdout)
	}
	done := carried{proposal: p}
	w.show = func(s standing) error {
		done.Status = s.Status
		return nil
	}
	end := w.write(ctx, &done, how, objects, os.Stderr)
	if err := printJSON(done); err != nil {
		return err
	}
	return end
}

func (w *watcher) write(ctx context.Context, done *carried, how application, objects map[string]string, to io.Writer) error {
	if how.dryRun && done.Accepted && len(done.Differs) > 0 {
		if len(objects) > 0 {
			warn("judged without the cluster: a pass could not read what is not in S3 yet")
		} else {
			done.DryRun = w.rehearse(ctx, &done.proposal)
		}
	}
	p := done.proposal
	if err := p.show(to, "text"); err != nil {
		return err
	}
	if done.DryRun != nil {
		showSteps(to, *done.DryRun, p.stopped)
	}
	switch {
	case !p.Accepted:
		return refused("")
	case how.dryRun || len(p.Differs) == 0:
		return nil
	}
	p.expect = w.expected(p)
	if err := w.confirm(how.yes); err != nil {
		return err
	}
	if err := w.locate(ctx); err != nil { // before the write, because nobody could follow it otherwise
		return looking(err)
	}
	switch names, err := w.meanwhile(ctx, p); {
	case err != nil:
		return looking(err)
	case len(names) > 0:
		return refused("somebody else has written " + strings.Join(names, ", ") + " meanwhile; nothing was written; run it again")
	}
	if err := w.upload(ctx, objects); err != nil {
		return err
	}
	before, err := w.readStatus(ctx)
	if err != nil {
		return looking(err)
	}
	version, err := w.put(ctx, p.change(how.note))
	if err != nil {
		return err
	}
	done.Change, err = w.written(ctx, version, before, to)
	return err
}

// confirm asks on the terminal.
func (w *watcher) confirm(yes bool) error {
	if yes {
		return nil
	}
	if terminal(os.Stdin) {
		fmt.Fprintf(os.Stderr, "Write this to rack %s? Only yes writes it: ", w.rack)
		switch answer, err := bufio.NewReader(os.Stdin).ReadString('\n'); {
		case strings.TrimSpace(answer) == "yes":
			return nil
		case err == nil:
			return refused("nothing was written")
		}
	}
	return misused("there is no terminal on which to ask; add --yes to write without asking, or --dry-run to write nothing")
}

// change is the value of the parameter change for a proposal.
func (p proposal) change(note string) string {
	set, unset := map[string]any{}, []any{}
	for _, d := range p.Differs {
		if d.Then == params.Unset {
			unset = append(unset, d.Parameter)
		} else {
			set[d.Parameter] = d.Then
		}
	}
	value := map[string]any{}
	if len(set) > 0 {
		value["set"] = set
	}
	if len(unset) > 0 {
		value["unset"] = unset
	}
	if note != "" {
		value["note"] = note
	}
	if p.expect > 0 {
		value["expect"] = p.expect
	}
	return string(canonical.JSON(value))
}

// put writes the parameter change, and returns its version.
func (w *watcher) put(ctx context.Context, value string) (int64, error) {
	name := paths().Change(w.rack)
	if len(value) > mostChange {
		return 0, refused(fmt.Sprintf("the change has %d bytes, and Parameter Store takes %d: put the longest values into S3 and write "+
			"s3://BUCKET/KEY in their places, or apply the file in parts", len(value), mostChange))
	}
	out, err := w.ssm.PutParameter(ctx, &ssm.PutParameterInput{
		Name: &name, Value: &value, Type: types.ParameterTypeString, Overwrite: new(true), Tier: types.ParameterTierIntelligentTiering,
	})
	if err != nil {
		return 0, fmt.Errorf("parameter %s: write: %w", name, err)
	}
	return out.Version, nil
}

// written waits until a version of the change is answered, and then for the passes that follow it. It returns the answer. before is the
// status before the write, or nil: if the parameter was deleted before, the last change that it has may have a later version.
func (w *watcher) written(ctx context.Context, version int64, before *store.Status, to io.Writer) (*store.ChangeStatus, error) {
	fmt.Fprintf(to, "written as version %d of %s\n", version, paths().Change(w.rack))
	waiting := newProgress()
	defer waiting.end()
	for began := w.now(); ; {
		waiting.say("waiting for a pass to answer the change")
		status, err := w.readStatus(ctx)
		if err != nil {
			return nil, looking(err)
		}
		if status != nil && status.Change != nil && status.Change.Version >= version && !sameChange(status, before) {
			waiting.end()
			switch c := status.Change; {
			case c.Version > version:
				return nil, undecided(fmt.Sprintf("version %d of the change has come after it; `sawhorse status %s` shows what became of that",
					c.Version, w.rack))
			case c.Outcome == store.ChangeWritten:
				return c, looking(w.watch(ctx, func(line string) { fmt.Fprintln(to, line) }))
			case c.Outcome != store.ChangeWriting:
				return c, unwritten(*c, to)
			}
		}
		if w.now().Sub(began) > unanswered {
			return nil, undecided(fmt.Sprintf("no pass has answered it for %s; `sawhorse watch %s` follows the next one", unanswered, w.rack))
		}
		if err := w.wait(ctx, time.Second); err != nil {
			return nil, err
		}
	}
}

// sameChange reports whether a status tells of the version of the parameter change that an earlier one, which may be nil, tells of.
func sameChange(status, before *store.Status) bool {
	return before != nil && before.Change != nil && status.Change.Version == before.Change.Version &&
		status.Change.Modified.Equal(before.Change.Modified)
}

// unwritten prints why a change was not written.
func unwritten(c store.ChangeStatus, to io.Writer) error {
	for _, p := range c.Problems {
		fmt.Fprintf(to, "problem  %s\n", line(p))
	}
	if c.Outcome == store.ChangeRefused {
		return refused("the change is refused, and nothing was changed")
	}
	return refused("the change was given up: what could not be put back is named above")
}
