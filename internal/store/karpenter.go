package store

import (
	"context"
	"fmt"

	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// karpenterAttribute has the record of the rack's Karpenter. It is an attribute of its own, so that a step writes it in
// one call without the other records.
const karpenterAttribute = "karpenter"

// onlyVersion is the version of Karpenter that earlier versions of Sawhorse install on every rack, whatever it runs.
const onlyVersion = "1.10.0"

// formatOf returns the format of records with this Karpenter. The earlier versions of Sawhorse that know only one
// version of Karpenter would bring the rack to it, and its CRDs too, so they must not read the records.
func formatOf(karpenter plan.KarpenterRecord) int64 {
	for _, version := range []string{karpenter.Version, karpenter.Planned, karpenter.CRDs} {
		if version != "" && version != onlyVersion {
			return recordsFormat
		}
	}
	return oneVersionFormat
}

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
	err := s.update(ctx, key(rack, "records"), "SET #karpenter = :karpenter, #format = :format", "attribute_exists(pk)",
		item{":karpenter": plain(record), ":format": number(formatOf(record))})
	return wrap(err, "rack %s: note Karpenter's version", rack)
}
