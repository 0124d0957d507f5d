package store

import (
	"context"
	"fmt"

	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// karpenterAttribute has the record of the rack's Karpenter. It is an attribute of its own, so that a step writes it in
// one call without the other records.
const karpenterAttribute = "karpenter"

// Karpenter returns what is recorded about the Karpenter of a rack. The record is zero if there is none.
func (s *Store) Karpenter(ctx context.Context, rack string) (plan.KarpenterRecord, error) {
	values, err := s.get(ctx, key(rack, "records"))
	if err != nil {
		return plan.KarpenterRecord{}, fmt.Errorf("rack %s: read records: %w", rack, err)
	}
	return karpenterOf(rack, values)
}

func karpenterOf(rack string, values item) (plan.KarpenterRecord, error) {
	var record plan.KarpenterRecord
	if stringOf(values, karpenterAttribute) == "" {
		return record, nil
	}
	err := unpack(values, karpenterAttribute, &record)
	return record, wrap(err, "rack %s: decode %s", rack, karpenterAttribute)
}

// NoteKarpenter replaces what is recorded about the Karpenter of a rack. The rack must have records.
func (s *Store) NoteKarpenter(ctx context.Context, rack string, record plan.KarpenterRecord) error {
	err := s.update(ctx, key(rack, "records"), "SET #karpenter = :karpenter", "attribute_exists(pk)",
		item{":karpenter": plain(record)})
	return wrap(err, "rack %s: note Karpenter's version", rack)
}
