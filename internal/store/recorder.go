package store

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
)

// Kinds of records, by the beginning of their sort keys.
const (
	kindBaseline   = "baseline#"
	kindCheckpoint = "checkpoint#"
)

// Baselines returns the recorder of the state before Sawhorse's changes.
func (s *Store) Baselines() outcome.Recorder { return recorder{s, []string{kindBaseline}} }

// Checkpoints returns the recorder of work that takes a step several calls. Earlier versions of Sawhorse kept such work
// among the baselines, where it is found too, so that a removal continues while Sawhorse is upgraded.
func (s *Store) Checkpoints() outcome.Recorder {
	return recorder{s, []string{kindCheckpoint, kindBaseline}}
}

// recorder implements outcome.Recorder. It writes records of the first kind. Those of the other kinds are of earlier
// versions. Calls for one rack are sequential.
type recorder struct {
	store *Store
	kinds []string
}

// Keep records a value unless there is one, also of an earlier version.
func (r recorder) Keep(ctx context.Context, rack, name string, value []byte) error {
	if _, ok, err := r.get(ctx, rack, name, r.kinds[1:]); err != nil || ok {
		return err
	}
	err := r.store.put(ctx, r.item(rack, name, value), new("attribute_not_exists(pk)"))
	if refused(err) {
		return nil
	}
	return wrap(err, "rack %s: keep %s%s", rack, r.kinds[0], name)
}

// Replace records a value in the place of another.
func (r recorder) Replace(ctx context.Context, rack, name string, value []byte) error {
	return wrap(r.store.put(ctx, r.item(rack, name, value), nil), "rack %s: replace %s%s", rack, r.kinds[0], name)
}

func (r recorder) item(rack, name string, value []byte) item {
	values := key(rack, r.kinds[0]+name)
	values["value"] = &types.AttributeValueMemberB{Value: append([]byte{}, value...)} // nil would not be a binary value
	return values
}

// Get returns this version's record, or else an earlier version's.
func (r recorder) Get(ctx context.Context, rack, name string) ([]byte, bool, error) {
	return r.get(ctx, rack, name, r.kinds)
}

func (r recorder) get(ctx context.Context, rack, name string, kinds []string) ([]byte, bool, error) {
	for _, kind := range kinds {
		values, err := r.store.get(ctx, key(rack, kind+name))
		if err != nil {
			return nil, false, wrap(err, "rack %s: read %s%s", rack, kind, name)
		}
		if value, ok := values["value"].(*types.AttributeValueMemberB); ok {
			return value.Value, true, nil
		}
	}
	return nil, false, nil
}

// Forget deletes the records of all kinds, this version's last.
func (r recorder) Forget(ctx context.Context, rack, name string) error {
	for _, kind := range slices.Backward(r.kinds) {
		if err := r.store.remove(ctx, key(rack, kind+name)); err != nil {
			return wrap(err, "rack %s: forget %s%s", rack, kind, name)
		}
	}
	return nil
}
