package resync

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

// letGo is the time over which the passes of the racks that a hold lets go are spread.
const letGo = 5 * time.Minute

// fleet is what the table has of all racks.
type fleet struct {
	racks []string
	// marked are those whose last pass found them held.
	marked []string
	leases map[string]store.Lease
}

// fleet reads the list of the racks, and their leases. The error has the leases that could not be read.
func (r *Resync) fleet(ctx context.Context) (f fleet, failed error, err error) {
	if f.racks, f.marked, err = r.Store.Racks(ctx); err != nil {
		return f, nil, err
	}
	f.leases = map[string]store.Lease{}
	for _, name := range f.racks {
		lease, _, err := r.Store.Lease(ctx, name, r.Now())
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		f.leases[name] = lease
	}
	return f, failed, nil
}

// written answers a write of the hold. What it does, ticks do again, so a lost event is made up for within a tick or two.
func (r *Resync) written(ctx context.Context, event Event) (Answer, error) {
	f, failed, err := r.fleet(ctx)
	if err != nil {
		return Answer{}, err
	}
	wrote := store.Written{Operation: event.Detail.Operation, At: r.tick(event), Name: store.WrittenHold}
	racks, err := r.hold(ctx, f, r.Now(), wrote)
	return Answer{Racks: racks}, errors.Join(failed, err)
}

// hold measures the hold, interrupts the passes of held racks, and starts passes of the racks that it lets go and whose turn
// it is. wrote is the write that an event tells of. If Parameter Store does not show it yet, every running pass is
// interrupted, which is harmless; a tick starts the others later.
func (r *Resync) hold(ctx context.Context, f fleet, tick time.Time, wrote store.Written) ([]string, error) {
	hold, err := store.ReadHold(ctx, r.Parameters, r.Paths)
	if err != nil {
		return nil, err
	}
	reported := wrote.Operation != ""
	stale := reported && !hold.Has(wrote)
	failed := []error{r.measureHold(hold)}
	for _, name := range slices.Sorted(maps.Keys(f.leases)) {
		lease := f.leases[name]
		if !lease.Since.IsZero() && (stale || hold.Of(name)) && (reported || lease.Held != hold.ID()) {
			failed = append(failed, r.Store.Interrupt(ctx, name, hold.ID(), wrote))
		}
	}
	if stale {
		return nil, errors.Join(failed...)
	}
	var started []string
	for _, name := range r.turn(f.marked, tick) {
		lease, read := f.leases[name]
		if hold.Of(name) || !read {
			continue
		}
		if err := r.release(ctx, name, lease.Requested); err != nil {
			failed = append(failed, err)
			continue
		}
		started = append(started, name)
	}
	return started, errors.Join(failed...)
}

func (r *Resync) measureHold(hold store.Holding) error {
	var failed []error
	if hold.Wrong != "" {
		failed = append(failed, r.Metrics.Unclear())
	}
	if !hold.Modified.IsZero() {
		failed = append(failed, r.Metrics.Hold(r.Now().Sub(hold.Modified)))
	}
	return errors.Join(failed...)
}

// turn returns the racks whose turn it is among those that are let go, by the slots of the ticks within five minutes. If a tick
// comes less often, they all have it at once.
func (r *Resync) turn(racks []string, tick time.Time) []string {
	slots := max(1, int(letGo/max(time.Second, r.Interval/time.Duration(r.Slots))))
	return due(racks, r.slot(tick), slots)
}

// release starts a full pass of a rack that was let go, at most once for each count of its requests. The pass clears the mark.
func (r *Resync) release(ctx context.Context, rack string, requested int64) error {
	id := sha256.Sum256(fmt.Appendf(nil, "%s %d", rack, requested))
	input := request(events.ReconcileRequested{Rack: rack, Reason: "the hold lets the rack go", Full: true})
	return r.start(ctx, rack, input, "let-go-"+hex.EncodeToString(id[:16]))
}
