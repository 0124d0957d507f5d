package store

import (
	"context"

	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// karpenterAttribute has the record of the rack's Karpenter. It is an attribute of its own, so that a step writes it in
// one call without the other records.
const karpenterAttribute = "karpenter"

// NoteKarpenter replaces what is recorded about the Karpenter of a rack. The rack must have records.
func (s *Store) NoteKarpenter(ctx context.Context, rack string, record plan.KarpenterRecord) error {
	err := s.update(ctx, key(rack, "records"), "SET #karpenter = :karpenter", "attribute_exists(pk)",
		item{":karpenter": plain(record)})
	return wrap(err, "rack %s: note Karpenter's version", rack)
}
