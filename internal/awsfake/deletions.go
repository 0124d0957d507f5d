package awsfake

import (
	"context"
	"time"
)

// Deletions keeps when resources were deleted in memory, as the rack's records do.
type Deletions struct {
	*Calls
	Noted map[string]time.Time
}

// NewDeletions are none; its calls count among the cloud's.
func NewDeletions(cloud *Cloud) *Deletions {
	return &Deletions{Calls: cloud.Calls, Noted: map[string]time.Time{}}
}

// NoteDeletion keeps the last time.
func (d *Deletions) NoteDeletion(_ context.Context, _, resource string, at time.Time) error {
	if err := d.call("Deletions.Note", resource); err != nil {
		return err
	}
	d.Noted[resource] = at.Truncate(time.Second)
	return nil
}

// Deletion is what NoteDeletion kept.
func (d *Deletions) Deletion(_ context.Context, _, resource string) (time.Time, error) {
	return d.Noted[resource], d.call("Deletions.Get", resource)
}
