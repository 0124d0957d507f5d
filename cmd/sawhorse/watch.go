package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/sawhorse-io/sawhorse/internal/rack"
)

const (
	// lag is how long an execution that has begun may not be in Step Functions' list yet, and a write not in what is read of Parameter
	// Store: what is asked of both is eventually consistent.
	lag = 3 * time.Second
	// patience is how long a write may be without a pass. Parameter Store's event starts one within seconds, or is lost.
	patience = 30 * time.Second
	// silence is how long watch says nothing: a log, too, is to show that a pass goes on. The next look adds some seconds.
	silence = 12 * time.Second
)

func runWatch(ctx context.Context, use string, args []string) error {
	name, err := rackArgument(args, use)
	if err != nil {
		return err
	}
	w, err := newWatcher(ctx, name)
	if err != nil {
		return err
	}
	if err := w.locate(ctx); err != nil {
		return err
	}
	return w.watch(ctx, func(line string) { fmt.Println(line) })
}

// watcher follows the passes of one rack.
type watcher struct {
	aws    aws.Config
	ssm    *ssm.Client
	rack   string
	passes *passes
	now    func() time.Time
	wait   func(context.Context, time.Duration) error
}

func newWatcher(ctx context.Context, name string) (*watcher, error) {
	aws, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, fmt.Errorf("AWS configuration: %w", err)
	}
	return &watcher{aws: aws, ssm: ssm.NewFromConfig(aws), rack: name, now: time.Now, wait: pause}, nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// locate finds the state machine whose executions are the passes.
func (w *watcher) locate(ctx context.Context) (err error) {
	w.passes, err = newPasses(ctx, w.aws, w.rack)
	return err
}

// watch follows the rack's passes until one has ended that has read the parameters as they are, and shows the status then. One that
// ended before counts too: a write that changes nothing may be over by now.
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

// still is what the running pass is at, where it has nothing new to tell; nil is no pass.
func (p *pass) still() string {
	if p == nil {
		return "no pass is running"
	}
	return column(p.step, fmt.Sprintf("goes on, since %s  %s", p.since.UTC().Format(time.TimeOnly), p.note))
}

// tell tells the lines that have not been told yet.
func (p *pass) tell(tell func(line string)) {
	for _, line := range p.lines {
		tell(line)
	}
	p.lines = p.lines[:0]
}

// finding is what is known of a rack that no pass has now.
type finding struct {
	// status is nil where there is none.
	status *rack.Status
	tree   rack.Tree
	// last is the pass that ended last; nil where nobody knows.
	last *pass
}

// find looks for what became of the parameters as they are. followed is the pass that was followed last, if one was.
func (w *watcher) find(ctx context.Context, followed *pass) (finding, error) {
	var f finding
	var err error
	if f.tree, err = rack.ReadTree(ctx, w.ssm, paths().Params(w.rack)); err != nil {
		return f, err
	}
	if followed != nil {
		if f.last, err = w.passes.pass(ctx, followed.execution); err != nil {
			return f, err
		}
	}
	// Behind the history: the status is written before a pass ends.
	if f.status, err = w.readStatus(ctx); err != nil {
		return f, err
	}
	if f.last == nil && f.status != nil {
		if f.last, err = w.passes.pass(ctx, f.status.Execution); err != nil {
			return f, err
		}
	}
	if f.last != nil && f.seen() { // as a rule; then the list need not be looked through
		return f, nil
	}
	last, err := w.passes.last(ctx)
	if last != nil {
		f.last = last
	}
	return f, err
}

// seen tells whether the last pass has read the parameters as they are. A rack that has parameters, and neither pass nor status, is new:
// a pass begins soon.
func (f finding) seen() bool {
	return len(f.unseen()) == 0 && (f.last != nil || f.status != nil || len(f.tree.Values) == 0)
}

func (f finding) unseen() []string {
	if f.last == nil {
		return nil
	}
	return f.last.unseen(f.tree.Versions)
}

// unsaid is what the last pass has found, where the status is another one's because it said so already.
func (f finding) unsaid() string {
	if f.last == nil || !f.seen() || f.status != nil && f.status.Execution == f.last.execution {
		return ""
	}
	return f.last.found
}

// conclude shows what is known in the end.
func (w *watcher) conclude(f finding) error {
	if f.status == nil {
		return w.absent(f.tree)
	}
	result := show(*f.status)
	switch unseen := f.unseen(); {
	case len(unseen) > 0:
		return undecided(fmt.Sprintf("no pass has seen %s yet, and none has begun for %s; the hourly pass will, or ask for one: "+
			"docs/operate.md, Asking for a pass", strings.Join(unseen, ", "), patience))
	case f.last != nil && f.last.failed != "" && f.status.State != rack.Failed:
		return fmt.Errorf("the last pass of rack %s ended early and the status does not tell of it: %s (%s)",
			w.rack, f.last.failed, f.last.execution)
	}
	return result
}

// absent says why a rack has no status.
func (w *watcher) absent(tree rack.Tree) error {
	folder := paths().Params(w.rack)
	if len(tree.Values) == 0 {
		return fmt.Errorf("there is no rack %s in %s: it has no parameter below %s; look at the name, the region (AWS_REGION) and the prefix "+
			"(SAWHORSE_PREFIX), or make the rack with `sawhorse register %s`", w.rack, w.aws.Region, folder, w.rack)
	}
	return fmt.Errorf("rack %s has no status yet: no pass has had anything to do for it, or to say about it; karpenter_auth_mode=true begins the "+
		"work (parameters below %s: %d)", w.rack, folder, len(tree.Values))
}

// readStatus is nil where the rack has none.
func (w *watcher) readStatus(ctx context.Context) (*rack.Status, error) {
	place := paths().Status(w.rack)
	out, err := w.ssm.GetParameter(ctx, &ssm.GetParameterInput{Name: &place})
	if errors.As(err, new(*types.ParameterNotFound)) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("parameter %s: read: %w", place, err)
	}
	status, err := decodeStatus(*out.Parameter.Value)
	if err != nil {
		return nil, fmt.Errorf("parameter %s: decode: %w", place, err)
	}
	return status, nil
}

// warn tells of what does not end the command.
func warn(format string, args ...any) { fmt.Fprintf(os.Stderr, "sawhorse: "+format+"\n", args...) }
