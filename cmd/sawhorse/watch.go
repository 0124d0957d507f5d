package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	smithytime "github.com/aws/smithy-go/time"
	"github.com/spf13/cobra"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

const (
	// lag is how long a new execution may be missing from Step Functions' list, and a write from what Parameter Store
	// returns. Both are eventually consistent.
	lag = 3 * time.Second
	// patience is how long a write may be without a pass. Parameter Store's event starts one within seconds, or has
	// been lost.
	patience = 30 * time.Second
	// silence is how long watch prints nothing before it prints that a pass is still running. The next
	// poll adds some seconds.
	silence = 12 * time.Second
)

func watchCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "watch RACK", Short: "Follow a pass until it ends", Args: exactly("RACK"), ValidArgsFunction: completeRack,
		Long: `Prints a line for each step, until a pass that has seen the current parameters has ended, and then the status. That pass may
already have ended. With --nodes, it then goes on until Karpenter has replaced the last outdated node.` + aboutPasses + aboutCloud,
	}
	nodes := c.Flags().Bool("nodes", false, "go on until the last outdated node is gone, with a bar for each pool")
	format := outputFlag(c, "text", "json")
	c.RunE = func(c *cobra.Command, args []string) error {
		w, err := newWatcher(c.Context(), args[0])
		if err != nil {
			return looking(err)
		}
		if err := w.locate(c.Context()); err != nil {
			return looking(err)
		}
		if *format == "json" {
			return looking(w.watchJSON(c.Context(), *nodes))
		}
		if err := w.watch(c.Context(), func(line string) { fmt.Println(line) }); err != nil || !*nodes {
			return looking(err)
		}
		show := changes(os.Stdout, w.now)
		if terminal(os.Stdout) {
			show = bars(os.Stdout)
		}
		return looking(w.follow(c.Context(), os.Stdout, show))
	}
	return c
}

// watchJSON is watch with one object on stdout, at the end, and the lines on stderr.
func (w *watcher) watchJSON(ctx context.Context, nodes bool) error {
	last := standing{Rack: w.rack}
	w.show = func(s standing) error {
		last = s
		return nil
	}
	end := w.watch(ctx, func(line string) { fmt.Fprintln(os.Stderr, line) })
	if end == nil && nodes {
		show := changes(os.Stderr, w.now)
		end = w.follow(ctx, os.Stderr, func(s store.Status) {
			last.Status = &s
			show(s)
		})
	}
	if err := printJSON(last); err != nil {
		return err
	}
	return end
}

// watcher follows the passes of one rack.
type watcher struct {
	aws    aws.Config
	ssm    *ssm.Client
	table  store.Table
	rack   string
	passes *passes
	// show takes the status instead of text on stdout; nil for text.
	show func(standing) error
	now  func() time.Time
	wait func(context.Context, time.Duration) error
}

func newWatcher(ctx context.Context, name string) (*watcher, error) {
	aws, err := account(ctx)
	if err != nil {
		return nil, err
	}
	return &watcher{
		aws: aws, ssm: ssm.NewFromConfig(aws), table: dynamodb.NewFromConfig(aws), rack: name, now: time.Now, wait: smithytime.SleepWithContext,
	}, nil
}

// locate finds the state machine whose executions are the passes.
func (w *watcher) locate(ctx context.Context) (err error) {
	w.passes, err = newPasses(ctx, w.aws, w.rack)
	return err
}

// watch follows the rack's passes until one that has read the current parameters has ended, and then prints the status.
// A pass that ended before counts too, because the pass of a write that changes nothing may already be over.
func (w *watcher) watch(ctx context.Context, print func(line string)) error {
	var followed *pass
	told, spoke := "", w.now()
	tell := func(line string) {
		spoke = w.now()
		print(line)
	}
	for idle := w.now(); ; {
		running, err := w.passes.running(ctx)
		if err != nil {
			return err
		}
		if running != nil {
			followed, idle = running, w.now()
			running.tell(tell)
		} else {
			found, err := w.find(ctx, followed)
			if err != nil {
				return err
			}
			if followed != nil {
				followed.tell(tell)
			}
			if line := found.unsaid(); found.last != followed && line != told {
				told = line
				tell(line)
			}
			waited := w.now().Sub(idle)
			switch concluded := followed != nil && found.last == followed && followed.concluded(); {
			case found.seen() && (concluded || waited >= lag), waited >= patience:
				return w.conclude(found)
			}
		}
		if w.now().Sub(spoke) >= silence {
			tell(w.now().UTC().Format(time.TimeOnly) + "  " + running.still())
		}
		if err := w.wait(ctx, time.Second); err != nil {
			return err
		}
	}
}

// still describes what a pass is doing when it has reported nothing new. It also accepts nil, for no running pass.
func (p *pass) still() string {
	if p == nil {
		return "no pass is running"
	}
	return column(p.step, fmt.Sprintf("goes on, since %s  %s", p.since.UTC().Format(time.TimeOnly), p.note))
}

// tell passes the lines that have not been printed yet to a function, and forgets them.
func (p *pass) tell(tell func(line string)) {
	for _, line := range p.lines {
		tell(line)
	}
	p.lines = p.lines[:0]
}

// finding has the status, the parameters and the last pass of a rack, read while no pass was running.
type finding struct {
	// status is nil if no pass has written one.
	status *store.Status
	tree   store.Tree
	// change is the parameter change; nil if there is none.
	change *store.Version
	// last is the pass that ended last; nil if it was not found.
	last *pass
}

// find reads the rack's parameters, its status and its last pass. followed is the last pass that watch has followed;
// nil if it has followed none.
func (w *watcher) find(ctx context.Context, followed *pass) (finding, error) {
	var f finding
	var err error
	if f.tree, err = store.ReadTree(ctx, w.ssm, paths().Params(w.rack)); err != nil {
		return f, err
	}
	if f.change, err = store.ReadVersion(ctx, w.ssm, paths().Change(w.rack)); err != nil {
		return f, err
	}
	if followed != nil {
		if f.last, err = w.passes.pass(ctx, followed.execution); err != nil {
			return f, err
		}
	}
	// After the history has been read, because the status is written before a pass ends.
	if f.status, err = w.readStatus(ctx); err != nil {
		return f, err
	}
	if f.last == nil && f.status != nil {
		if f.last, err = w.passes.pass(ctx, f.status.Execution); err != nil {
			return f, err
		}
	}
	if f.last != nil && f.seen() { // usually; then the list need not be searched
		return f, nil
	}
	last, err := w.passes.last(ctx)
	if last != nil {
		f.last = last
	}
	return f, err
}

// seen reports whether the last pass has read the current parameters, and has answered the last change. A rack with parameters but
// without pass and status is new: a pass will begin soon.
func (f finding) seen() bool {
	return len(f.unseen()) == 0 && (f.last != nil || f.status != nil || len(f.tree.Values) == 0)
}

// unseen returns what the last pass has not seen: parameters, and the parameter change, which the status answers.
func (f finding) unseen() (all []string) {
	if f.last != nil {
		all = f.last.unseen(f.tree.Versions)
	}
	if f.change != nil && (f.status == nil || !f.status.Change.Answers(*f.change)) {
		all = append(all, fmt.Sprintf("change version %d", f.change.Number))
	}
	return all
}

// unsaid returns the result of the last pass, if that pass did not write the status because the status
// already said the same.
func (f finding) unsaid() string {
	if f.last == nil || !f.seen() || f.status != nil && f.status.Execution == f.last.execution {
		return ""
	}
	return f.last.found
}

// conclude prints the final result.
func (w *watcher) conclude(f finding) error {
	unseen := f.unseen()
	if err := w.print(standing{Rack: w.rack, Status: f.status, Unseen: unseen}); err != nil {
		return err
	}
	if f.status == nil {
		return w.absent(f.tree)
	}
	switch {
	case len(unseen) > 0:
		return undecided(fmt.Sprintf("no pass has seen %s yet, and none has begun for %s; the pass of the hourly audit will, or ask for one: "+
			"docs/operate.md, Asking for a pass", strings.Join(unseen, ", "), patience))
	case f.last != nil && f.last.failed != "" && f.status.State != outcome.StateFailed:
		return refused(fmt.Sprintf("the last pass of rack %s ended early and its status does not show it: %s (%s)",
			w.rack, f.last.failed, f.last.execution))
	}
	return result(*f.status)
}

// absent returns the error for a rack without a status: either the rack does not exist or no pass has written one.
func (w *watcher) absent(tree store.Tree) error {
	folder := paths().Params(w.rack)
	if len(tree.Values) == 0 {
		return refused(fmt.Sprintf("there is no rack %s in %s: it has no parameter below %s; check the name, "+
			"the region (AWS_REGION) and the prefix (SAWHORSE_PREFIX), or create the rack with `sawhorse register %s`",
			w.rack, w.aws.Region, folder, w.rack))
	}
	return refused(fmt.Sprintf("rack %s has no status yet: no pass has had anything to do for it, or to say about it; "+
		"karpenter_auth_mode=true begins the work (parameters below %s: %d)", w.rack, folder, len(tree.Values)))
}

// readStatus reads the rack's status. It returns nil if the rack has none: before the first report, the parameter has at most
// what a pass waits for.
func (w *watcher) readStatus(ctx context.Context) (*store.Status, error) {
	text, err := store.Published{SSM: w.ssm, Paths: paths()}.Status(ctx, w.rack)
	if err != nil || text == "" {
		return nil, err
	}
	var status store.Status
	if err := json.Unmarshal([]byte(text), &status); err != nil {
		return nil, fmt.Errorf("parameter %s: decode: %w", paths().Status(w.rack), err)
	}
	if status.State == "" {
		return nil, nil
	}
	return &status, nil
}

// warn prints a problem that does not end the command.
func warn(format string, args ...any) { fmt.Fprintf(os.Stderr, "sawhorse: "+format+"\n", args...) }
