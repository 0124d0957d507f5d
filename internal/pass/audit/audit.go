// Package audit compares a rack with its parameters without changing anything. The schedule audits every rack; only
// where something is due does an audit request a full pass. A full pass begins with the same comparison and takes just
// the steps that are due.
package audit

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/pass/validate"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

// Audit audits racks.
type Audit struct {
	// Store reads the records.
	Store *store.Store
	// Look returns what a full pass would do, with the reason for each. The generation is the pass's.
	Look func(ctx context.Context, rack string, generation int64) (map[string]string, error)
	// Pass begins an iteration of a full pass.
	Pass func(context.Context, validate.Event) (validate.Answer, error)
	// Request requests a pass.
	Request func(context.Context, events.ReconcileRequested) error
	Log     *slog.Logger
	Now     func() time.Time
}

// Run audits a rack. The state machine calls it for an execution, in the place of the function validate, and continues
// with its answer. The schedule's call has no execution, and its answer goes nowhere.
func (a *Audit) Run(ctx context.Context, event validate.Event) (validate.Answer, error) {
	if event.Execution != "" {
		return a.Pass(ctx, event)
	}
	return validate.Answer{}, a.audit(ctx, event.Rack)
}

// audit requests a full pass if one would have something to do. It may be repeated: it only reads, and of several
// requests each is served by the same pass. A pass that begins meanwhile makes the request superfluous, and no more.
func (a *Audit) audit(ctx context.Context, name string) error {
	lease, held, err := a.Store.Lease(ctx, name, a.Now())
	if err != nil {
		return err
	}
	if held {
		a.Log.Info("audit", "rack", name, "skipped", "a pass has the rack")
		return nil
	}
	due := a.due(ctx, name, lease)
	a.Log.Info("audit", "rack", name, "due", slices.Sorted(maps.Keys(due)), "why", due)
	if len(due) == 0 {
		return nil
	}
	return a.Request(ctx, events.ReconcileRequested{Rack: name, Reason: "schedule", Full: true})
}

// enough is how long an audit may read, of its function's 60 s.
const enough = 50 * time.Second

// due returns what a full pass would do. If that cannot be read, a pass is due: it tries again with the state machine's
// retries, and reports the error.
func (a *Audit) due(ctx context.Context, name string, lease store.Lease) map[string]string {
	if lease.Requested > lease.Served {
		return map[string]string{"requests": "no pass has served them"}
	}
	ctx, end := context.WithTimeout(ctx, enough)
	defer end()
	due, err := a.Look(ctx, name, lease.Requested+1)
	if err != nil {
		return map[string]string{"audit": err.Error()}
	}
	return due
}
