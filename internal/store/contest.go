package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
)

func contestKey(subject string) string { return "contest#" + subject }

// Contest returns what SaveContest recorded, or the zero Contest.
func (s *Store) Contest(ctx context.Context, rack, subject string) (outcome.Contest, error) {
	var contest outcome.Contest
	values, err := s.get(ctx, key(rack, contestKey(subject)))
	if err != nil || values == nil {
		return contest, wrap(err, "rack %s: read contest %s", rack, subject)
	}
	if err := json.Unmarshal([]byte(stringOf(values, "contest")), &contest); err != nil {
		return contest, fmt.Errorf("rack %s: decode contest %s: %w", rack, subject, err)
	}
	return contest, nil
}

// SaveContest records that others set back a setting.
func (s *Store) SaveContest(ctx context.Context, rack, subject string, contest outcome.Contest) error {
	encoded, err := json.Marshal(contest)
	if err != nil {
		return fmt.Errorf("rack %s: encode contest %s: %w", rack, subject, err)
	}
	values := key(rack, contestKey(subject))
	values["contest"] = text(string(encoded))
	return wrap(s.put(ctx, values, nil), "rack %s: save contest %s", rack, subject)
}

// ForgetContest deletes the record.
func (s *Store) ForgetContest(ctx context.Context, rack, subject string) error {
	return wrap(s.remove(ctx, key(rack, contestKey(subject))), "rack %s: forget contest %s", rack, subject)
}
