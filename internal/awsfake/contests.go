package awsfake

import (
	"context"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
)

// Contests stores a rack's contests in memory, like the rack's records.
type Contests map[string]outcome.Contest

// Contest returns what SaveContest recorded.
func (c Contests) Contest(_ context.Context, _, subject string) (outcome.Contest, error) {
	return c[subject], nil
}

// SaveContest records a contest.
func (c Contests) SaveContest(_ context.Context, _, subject string, contest outcome.Contest) error {
	c[subject] = contest
	return nil
}

// ForgetContest removes a contest.
func (c Contests) ForgetContest(_ context.Context, _, subject string) error {
	delete(c, subject)
	return nil
}
