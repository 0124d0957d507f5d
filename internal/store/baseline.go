package store

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func baselineKey(name string) string { return "baseline#" + name }

// Keep records the state of something before Sawhorse's first change to it. Later calls are ignored, so that a step
// that runs again does not record its own work as the baseline.
func (s *Store) Keep(ctx context.Context, rack, name string, value []byte) error {
	values := key(rack, baselineKey(name))
	values["value"] = &types.AttributeValueMemberB{Value: append([]byte{}, value...)} // nil would not be a binary value
	err := s.put(ctx, values, new("attribute_not_exists(pk)"))
	if refused(err) {
		return nil
	}
	return wrap(err, "rack %s: keep baseline %s", rack, name)
}

// Get returns what Keep recorded.
func (s *Store) Get(ctx context.Context, rack, name string) ([]byte, bool, error) {
	values, err := s.get(ctx, key(rack, baselineKey(name)))
	if err != nil || values == nil {
		return nil, false, wrap(err, "rack %s: read baseline %s", rack, name)
	}
	value, ok := values["value"].(*types.AttributeValueMemberB)
	if !ok {
		return nil, false, nil
	}
	return value.Value, true, nil
}

// Forget deletes a baseline that has been restored.
func (s *Store) Forget(ctx context.Context, rack, name string) error {
	return wrap(s.remove(ctx, key(rack, baselineKey(name))), "rack %s: forget baseline %s", rack, name)
}
