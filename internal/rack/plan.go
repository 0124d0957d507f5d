package rack

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// SavePlan keeps the plan of one round, compressed: JSON parameters can make it larger than what Step Functions carries
// (256 KB), and an item may have 400 KB. It is the last good plan until the next one is accepted.
func (s *Store) SavePlan(ctx context.Context, p *plan.Plan) error {
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	if err := json.NewEncoder(zip).Encode(p); err != nil {
		return fmt.Errorf("rack %s: encode plan: %w", p.Rack, err)
	}
	if err := zip.Close(); err != nil {
		return fmt.Errorf("rack %s: compress plan: %w", p.Rack, err)
	}
	values := key(p.Rack, "plan")
	values["generation"] = number(p.Generation)
	values["plan"] = &types.AttributeValueMemberB{Value: packed.Bytes()}
	if err := s.put(ctx, values, nil); err != nil {
		return fmt.Errorf("rack %s: save plan: %w", p.Rack, err)
	}
	return nil
}

// Plan is the last good plan; nil where there is none, or one of another format.
func (s *Store) Plan(ctx context.Context, rack string) (*plan.Plan, error) {
	values, err := s.get(ctx, key(rack, "plan"))
	if err != nil || values == nil {
		return nil, wrap(err, "rack %s: read plan", rack)
	}
	packed, _ := values["plan"].(*types.AttributeValueMemberB)
	if packed == nil {
		return nil, fmt.Errorf("rack %s: read plan: the record has none", rack)
	}
	zip, err := gzip.NewReader(bytes.NewReader(packed.Value))
	if err != nil {
		return nil, fmt.Errorf("rack %s: decompress plan: %w", rack, err)
	}
	encoded, err := io.ReadAll(zip)
	if err != nil {
		return nil, fmt.Errorf("rack %s: decompress plan: %w", rack, err)
	}
	var p plan.Plan
	if err := json.Unmarshal(encoded, &p); err != nil {
		return nil, fmt.Errorf("rack %s: decode plan: %w", rack, err)
	}
	if p.Format != plan.Format {
		return nil, nil
	}
	return &p, nil
}

// wrap adds context to an error and leaves nil alone.
func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}
