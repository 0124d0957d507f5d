package awsfake

import (
	"context"

	"github.com/sawhorse-io/sawhorse/internal/steps"
)

// Contests keeps a rack's contests in memory, as the rack's records do.
type Contests map[string]steps.Contest

// Contest is what SaveContest recorded.
func (c Contests) Contest(_ context.Context, _, subject string) (steps.Contest, error) {
	return c[subject], nil
}

// SaveContest records one.
func (c Contests) SaveContest(_ context.Context, _, subject string, contest steps.Contest) error {
	c[subject] = contest
	return nil
}

// ForgetContest removes one.
func (c Contests) ForgetContest(_ context.Context, _, subject string) error {
	delete(c, subject)
	return nil
}
