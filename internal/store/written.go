package store

import (
	"context"
	"time"

	"github.com/sawhorse-io/sawhorse/internal/resource"
)

// keepWritten is how long DynamoDB keeps what was written. It is only needed for minutes.
const keepWritten = time.Hour

func writtenKey(step string) string { return "written#" + step }

// Written returns what a step has last written of the rack's resources in AWS, by aspect.
func (s *Store) Written(ctx context.Context, rack, step string) (map[string]resource.Record, error) {
	written := map[string]resource.Record{}
	_, err := s.load(ctx, key(rack, writtenKey(step)), rack, "written", "what step "+step+" has written", &written)
	return written, err
}

// SaveWritten replaces it. The record outlives the rack's other records, because the rack may be created again at once.
func (s *Store) SaveWritten(ctx context.Context, rack, step string, written map[string]resource.Record) error {
	values := key(rack, writtenKey(step))
	values["written"], values["ttl"] = plain(written), number(time.Now().Add(keepWritten).Unix())
	return wrap(s.put(ctx, values, nil), "rack %s: record what step %s writes", rack, step)
}
