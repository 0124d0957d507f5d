package rack

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func baselineKey(name string) string { return "baseline#" + name }

// Keep records how something was found before Sawhorse's first change to it. Only the first call counts, so a step that
// runs again cannot take its own work for the baseline.
func (s *Store) Keep(ctx context.Context, rack, name string, value []byte) error {
	values := key(rack, baselineKey(name))
	values["value"] = &types.AttributeValueMemberB{Value: append([]byte{}, value...)} // nil would be no binary value at all
	err := s.put(ctx, values, new("attribute_not_exists(pk)"))
	if refused(err) {
		return nil
	}
	return wrap(err, "rack %s: keep baseline %s", rack, name)
}

// Get is what Keep recorded.
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

// Forget ends a baseline once it has been restored.
func (s *Store) Forget(ctx context.Context, rack, name string) error {
	return wrap(s.remove(ctx, key(rack, baselineKey(name))), "rack %s: forget baseline %s", rack, name)
}
