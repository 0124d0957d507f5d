package awsfake

import (
	"context"
	"time"
)

// Deletions records in memory when resources were deleted, like the rack's records.
type Deletions struct {
	*Calls
	Noted map[string]time.Time
}

// NewDeletions returns an empty store. Its calls count among the cloud's.
func NewDeletions(cloud *Cloud) *Deletions {
	return &Deletions{Calls: cloud.Calls, Noted: map[string]time.Time{}}
}

// NoteDeletion records the time of the last deletion.
func (d *Deletions) NoteDeletion(_ context.Context, _, resource string, at time.Time) error {
	if err := d.call("Deletions.Note", resource); err != nil {
		return err
	}
	d.Noted[resource] = at.Truncate(time.Second)
	return nil
}

// Deletion returns what NoteDeletion recorded.
func (d *Deletions) Deletion(_ context.Context, _, resource string) (time.Time, error) {
	return d.Noted[resource], d.call("Deletions.Get", resource)
}
