package report

import (
	"context"
	"time"

	"github.com/sawhorse-io/sawhorse/internal/store"
)

// brief is how long a report of a wait may take. The pass goes on only then.
const brief = 5 * time.Second

// wait adds to the status parameter what the pass waits for and what became of the last change, beside what the last pass reported.
// Before the first report there is nothing else in it. The record says so first, so that the end of the pass removes it, or of the next
// one if this one is stopped.
func (r *Report) wait(ctx context.Context, event Event) error {
	ctx, end := context.WithTimeout(ctx, brief)
	defer end()
	if _, err := r.Store.Renew(ctx, event.Rack, event.Execution, r.Now()); err != nil {
		return err
	}
	reported, err := r.Store.Reported(ctx, event.Rack)
	if err != nil {
		return err
	}
	status, err := reported.Status()
	if err != nil {
		return err
	}
	if status == nil {
		status = &store.Status{Rack: event.Rack}
	}
	changes, err := r.Store.Changes(ctx, event.Rack)
	if err != nil {
		return err
	}
	status.Change = changes.Last // which the pass has answered at its beginning
	rollout, err := r.Store.Rollout(ctx, event.Rack)
	if err != nil {
		return err
	}
	w := event.Wait
	status.Running = &store.Running{Execution: event.Execution, Started: event.Started, Step: w.Step, Since: w.Since, Note: w.Note}
	text, err := status.With(rollout).Text()
	if err != nil {
		return err
	}
	if err := r.Store.NoteRunning(ctx, event.Rack, event.Execution); err != nil {
		return err
	}
	return r.Outputs.WriteStatus(ctx, event.Rack, text)
}
