package store

import (
	"context"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
)

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
