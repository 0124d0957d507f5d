package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// planKey is the key of a rack's plan. It has a partition of its own, because the functions of steps, which execute the
// plan, may not write it.
func planKey(rack string) item {
	return item{"pk": text(ownership.PartitionPlan + rack), "sk": text("plan")}
}

// SavePlan stores the plan of one iteration. A plan can exceed the 256 KB that Step Functions passes between states. It
// is the last good plan until the next one is accepted.
func (s *Store) SavePlan(ctx context.Context, p *plan.Plan) error {
	values := planKey(p.Rack)
	values["generation"], values["plan"] = number(p.Generation), packed(p)
	return wrap(s.put(ctx, values, nil), "rack %s: save plan", p.Rack)
}

// Plan returns the last good plan, or nil if there is none or it has another format.
func (s *Store) Plan(ctx context.Context, rack string) (*plan.Plan, error) {
	var stored json.RawMessage
	if found, err := s.load(ctx, planKey(rack), rack, "plan", "plan", &stored); err != nil || !found {
		return nil, err
	}
	p, err := plan.Read(stored)
	if err != nil {
		return nil, fmt.Errorf("rack %s: decode plan: %w", rack, err)
	}
	if p != nil && p.Rack != rack { // its steps would change another rack's resources
		return nil, fmt.Errorf("rack %s: the table has the plan of rack %q in its place; "+
			"delete the item and look in CloudTrail who wrote it", rack, p.Rack)
	}
	return p, nil
}
