package outcome

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// Recorder keeps small records of a rack from call to call. Steps have three: their baselines, their checkpoints, and their contests
// (Contest).
//
// A baseline is the state of a resource before Sawhorse first changes it, so that the state can be restored. A checkpoint
// is what a step that takes several calls must know of its earlier calls, such as when a drain began. It exists until
// that work is done.
type Recorder interface {
	// RecordOnce records a value. Only the first call for a name has an effect, so that a step that runs again does not record
	// its own work as the state before it.
	RecordOnce(ctx context.Context, rack, name string, value []byte) error
	// Replace records a value in the place of what was recorded, in one write: a step that is stopped has the former or
	// the new one.
	Replace(ctx context.Context, rack, name string, value []byte) error
	// Get returns what was recorded, and whether there is such a record.
	Get(ctx context.Context, rack, name string) ([]byte, bool, error)
	// Forget deletes a record.
	Forget(ctx context.Context, rack, name string) error
}

// The checkpoints that several steps use.
const (
	// CheckpointRemoval means that the step nodepools has begun to remove the rack's pools. It exists until no pool is
	// left. Meanwhile the pools' nodes drain, even if a precheck of the removal would now reject it.
	CheckpointRemoval = "removal"
	// CheckpointOff means that the capacity check for turning Karpenter off has passed. The first step of turning off
	// writes it before it changes anything. It exists until Karpenter is off or the hand-over to Karpenter is done again.
	// Meanwhile turning off is not rejected any more, because that would leave the rack half off.
	CheckpointOff = "off"
)

// BaselineAutoscaler is the baseline of Cluster Autoscaler. The step autoscaler defines its fields.
const BaselineAutoscaler = "autoscaler"

// BaselineSize names the baseline of a build group's size before the group was emptied: an Emptied as JSON.
func BaselineSize(group string) string { return "nodegroup/" + group }

// BaselineMigrated names the baseline of a system group's size before migrate_node_groups emptied it: an Emptied as JSON.
func BaselineMigrated(group string) string { return "migrated/" + group }

// Emptied is the size of a node group before Sawhorse emptied it.
type Emptied struct {
	plan.Scaling
	// Created is when EKS created the group. A later group of the same name was not emptied. Earlier releases did not record it.
	Created time.Time `json:"created"`
}

// Before returns the size before Sawhorse emptied the group that EKS created then; nil if it has not, or if nothing is recorded.
func (e *Emptied) Before(created time.Time) *plan.Scaling {
	if e == nil || !e.Created.IsZero() && !e.Created.Equal(created) {
		return nil
	}
	return &e.Scaling
}

// Recorded returns what was recorded as JSON; nil if there is no such record.
func Recorded[T any](ctx context.Context, records Recorder, rack, name string) (*T, error) {
	value, ok, err := records.Get(ctx, rack, name)
	if err != nil || !ok {
		return nil, err
	}
	record := new(T)
	if err := json.Unmarshal(value, record); err != nil {
		return nil, fmt.Errorf("rack %s: record %s: decode: %w", rack, name, err)
	}
	return record, nil
}

// Record encodes a value as JSON and writes it with a Recorder's method RecordOnce or Replace.
func Record(
	ctx context.Context, write func(ctx context.Context, rack, name string, value []byte) error, rack, name string, value any,
) error {
	encoded, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("rack %s: record %s: encode: %w", rack, name, err)
	}
	return write(ctx, rack, name, encoded)
}

// ForgetIfRecorded deletes a record if it exists. It reads first, so that a step that finds nothing to do writes nothing.
func ForgetIfRecorded(ctx context.Context, records Recorder, rack, name string) error {
	_, ok, err := records.Get(ctx, rack, name)
	if err != nil || !ok {
		return err
	}
	return records.Forget(ctx, rack, name)
}
