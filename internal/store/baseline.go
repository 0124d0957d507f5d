package store

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func baselineKey(name string) string { return "baseline#" + name }

// Keep records the state of something before Sawhorse's first change to it. Later calls are ignored, so that a step
// that runs again does not record its own work as the baseline.
func (s *Store) Keep(ctx context.Context, rack, name string, value []byte) error {
	err := s.put(ctx, baselineItem(rack, name, value), new("attribute_not_exists(pk)"))
	if refused(err) {
		return nil
	}
	return wrap(err, "rack %s: keep baseline %s", rack, name)
}

// Replace records a value in the place of what was recorded.
func (s *Store) Replace(ctx context.Context, rack, name string, value []byte) error {
	return wrap(s.put(ctx, baselineItem(rack, name, value), nil), "rack %s: replace baseline %s", rack, name)
}

func baselineItem(rack, name string, value []byte) map[string]types.AttributeValue {
	values := key(rack, baselineKey(name))
	values["value"] = &types.AttributeValueMemberB{Value: append([]byte{}, value...)} // nil would not be a binary value
	return values
}

// Get returns what Keep or Replace recorded.
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
