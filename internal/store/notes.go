package store

import (
	"context"
	"fmt"
	"time"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
)

// keepDeletions is how long DynamoDB keeps the record of a deletion. It is only needed for some minutes.
const keepDeletions = time.Hour

func deletionKey(resource string) string { return "deleted#" + resource }

// NoteDeletion records when Sawhorse last deleted a resource of the rack, because AWS may still return the resource for
// a while. The record outlives the rack's other records, because the rack may be created again at once.
func (s *Store) NoteDeletion(ctx context.Context, rack, resource string, at time.Time) error {
	values := key(rack, deletionKey(resource))
	values["at"] = text(at.UTC().Format(time.RFC3339))
	values["ttl"] = number(at.Add(keepDeletions).Unix())
	return wrap(s.put(ctx, values, nil), "rack %s: note the deletion of %s", rack, resource)
}

// Deletion returns when Sawhorse last deleted a resource of the rack, to the second, or the zero time if there is no
// record.
func (s *Store) Deletion(ctx context.Context, rack, resource string) (time.Time, error) {
	values, err := s.get(ctx, key(rack, deletionKey(resource)))
	if err != nil || values == nil {
		return time.Time{}, wrap(err, "rack %s: read the deletion of %s", rack, resource)
	}
	at, err := time.Parse(time.RFC3339, stringOf(values, "at"))
	if err != nil {
		return time.Time{}, fmt.Errorf("rack %s: decode the deletion of %s: %w", rack, resource, err)
	}
	return at, nil
}

func contestKey(subject string) string { return "contest#" + subject }

// Contest returns what SaveContest recorded, or the zero Contest.
func (s *Store) Contest(ctx context.Context, rack, subject string) (outcome.Contest, error) {
	var contest outcome.Contest
	_, err := s.load(ctx, key(rack, contestKey(subject)), rack, "contest", "contest "+subject, &contest)
	return contest, err
}

// SaveContest records that others set back a setting.
func (s *Store) SaveContest(ctx context.Context, rack, subject string, contest outcome.Contest) error {
	values := key(rack, contestKey(subject))
	values["contest"] = plain(contest)
	return wrap(s.put(ctx, values, nil), "rack %s: save contest %s", rack, subject)
}

// ForgetContest deletes the record.
func (s *Store) ForgetContest(ctx context.Context, rack, subject string) error {
	return wrap(s.remove(ctx, key(rack, contestKey(subject))), "rack %s: forget contest %s", rack, subject)
}
