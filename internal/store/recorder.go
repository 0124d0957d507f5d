package store

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
)

// Kinds of records, by the beginning of their sort keys.
const (
	kindBaseline   = "baseline#"
	kindCheckpoint = "checkpoint#"
	kindContest    = "contest#"
)

// Baselines returns the recorder of the state before Sawhorse's changes.
func (s *Store) Baselines() outcome.Recorder { return recorder{s, kindBaseline} }

// Checkpoints returns the recorder of work that takes a step several calls.
func (s *Store) Checkpoints() outcome.Recorder { return recorder{s, kindCheckpoint} }

// TurningOff reports whether turning a rack's Karpenter off has begun: it may still be refused before.
func (s *Store) TurningOff(ctx context.Context, rack string) (begun bool, err error) {
	for _, checkpoint := range []string{outcome.CheckpointOff, outcome.CheckpointRemoval} {
		if _, begun, err = s.Checkpoints().Get(ctx, rack, checkpoint); err != nil || begun {
			break
		}
	}
	return begun, err
}

// Contests returns the recorder of settings that others may set back (outcome.Contest).
func (s *Store) Contests() outcome.Recorder { return recorder{s, kindContest} }

// recorder implements outcome.Recorder with records of one kind. Calls for one rack are sequential.
type recorder struct {
	store *Store
	kind  string
}

// RecordOnce records a value unless there is one.
func (r recorder) RecordOnce(ctx context.Context, rack, name string, value []byte) error {
	err := r.store.put(ctx, r.item(rack, name, value), new("attribute_not_exists(pk)"))
	if refused(err) {
		return nil
	}
	return wrap(err, "rack %s: keep %s%s", rack, r.kind, name)
}

// Replace records a value in the place of another.
func (r recorder) Replace(ctx context.Context, rack, name string, value []byte) error {
	return wrap(r.store.put(ctx, r.item(rack, name, value), nil), "rack %s: replace %s%s", rack, r.kind, name)
}

func (r recorder) item(rack, name string, value []byte) item {
	values := key(rack, r.kind+name)
	if r.kind == kindContest { // releases before read it so
		values["contest"] = text(string(value))
		return values
	}
	values["value"] = &types.AttributeValueMemberB{Value: append([]byte{}, value...)} // nil would not be a binary value
	return values
}

// Get returns the record, and whether there is one.
func (r recorder) Get(ctx context.Context, rack, name string) ([]byte, bool, error) {
	values, err := r.store.get(ctx, key(rack, r.kind+name))
	if err != nil {
		return nil, false, wrap(err, "rack %s: read %s%s", rack, r.kind, name)
	}
	if contest := stringOf(values, "contest"); contest != "" {
		return []byte(contest), true, nil
	}
	value, ok := values["value"].(*types.AttributeValueMemberB)
	if !ok {
		return nil, false, nil
	}
	return value.Value, true, nil
}

// Forget deletes the record.
func (r recorder) Forget(ctx context.Context, rack, name string) error {
	return wrap(r.store.remove(ctx, key(rack, r.kind+name)), "rack %s: forget %s%s", rack, r.kind, name)
}
