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
)

// Baselines returns the recorder of the state before Sawhorse's changes.
func (s *Store) Baselines() outcome.Recorder { return recorder{s, kindBaseline} }

// Checkpoints returns the recorder of work that takes a step several calls. Earlier versions of Sawhorse kept such work
// among the baselines, where it is found too, so that a removal continues while Sawhorse is upgraded.
func (s *Store) Checkpoints() outcome.Recorder {
	return checkpoints{recorder{s, kindCheckpoint}, recorder{s, kindBaseline}}
}

// recorder keeps records of one kind.
type recorder struct {
	store *Store
	kind  string
}

// Keep implements outcome.Recorder.
func (r recorder) Keep(ctx context.Context, rack, name string, value []byte) error {
	err := r.store.put(ctx, r.item(rack, name, value), new("attribute_not_exists(pk)"))
	if refused(err) {
		return nil
	}
	return wrap(err, "rack %s: keep %s%s", rack, r.kind, name)
}

// Replace implements outcome.Recorder.
func (r recorder) Replace(ctx context.Context, rack, name string, value []byte) error {
	return wrap(r.store.put(ctx, r.item(rack, name, value), nil), "rack %s: replace %s%s", rack, r.kind, name)
}

func (r recorder) item(rack, name string, value []byte) item {
	values := key(rack, r.kind+name)
	values["value"] = &types.AttributeValueMemberB{Value: append([]byte{}, value...)} // nil would not be a binary value
	return values
}

// Get implements outcome.Recorder.
func (r recorder) Get(ctx context.Context, rack, name string) ([]byte, bool, error) {
	values, err := r.store.get(ctx, key(rack, r.kind+name))
	if err != nil || values == nil {
		return nil, false, wrap(err, "rack %s: read %s%s", rack, r.kind, name)
	}
	value, ok := values["value"].(*types.AttributeValueMemberB)
	if !ok {
		return nil, false, nil
	}
	return value.Value, true, nil
}

// Forget implements outcome.Recorder.
func (r recorder) Forget(ctx context.Context, rack, name string) error {
	return wrap(r.store.remove(ctx, key(rack, r.kind+name)), "rack %s: forget %s%s", rack, r.kind, name)
}

// checkpoints also finds what an earlier version recorded. Calls for one rack are sequential.
type checkpoints struct{ recorder, former recorder }

// Keep records a value unless there is one, also of an earlier version.
func (c checkpoints) Keep(ctx context.Context, rack, name string, value []byte) error {
	if _, ok, err := c.former.Get(ctx, rack, name); err != nil || ok {
		return err
	}
	return c.recorder.Keep(ctx, rack, name, value)
}

// Replace implements outcome.Recorder.
func (c checkpoints) Replace(ctx context.Context, rack, name string, value []byte) error {
	return c.recorder.Replace(ctx, rack, name, value)
}

// Get returns this version's record, or else an earlier version's.
func (c checkpoints) Get(ctx context.Context, rack, name string) ([]byte, bool, error) {
	value, ok, err := c.recorder.Get(ctx, rack, name)
	if err != nil || ok {
		return value, ok, err
	}
	return c.former.Get(ctx, rack, name)
}

// Forget deletes both.
func (c checkpoints) Forget(ctx context.Context, rack, name string) error {
	if err := c.former.Forget(ctx, rack, name); err != nil {
		return err
	}
	return c.recorder.Forget(ctx, rack, name)
}
