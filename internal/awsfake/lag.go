package awsfake

import "time"

// Lag is how long after a write AWS answers as if it had not been made. The zero Lag is a cloud that reads its own writes.
type Lag struct {
	// Roles is IAM's own: calls about a new role, but for the creation itself, find no such role. With Denied, reads find it and
	// writes are denied, because the replica that judges them takes a role that it does not know for one without a path.
	Roles  time.Duration
	Denied bool
	// Principals is how long EKS does not know a new role.
	Principals time.Duration
	// Entries is how long the policies of a new access entry can be neither listed nor associated, and how long a deleted entry
	// keeps another one of its name from being made.
	Entries time.Duration
	// Shown is how long an access entry that was deleted is still shown, also in the place of a new one.
	Shown time.Duration
	// Queues is how long a new queue does not exist for any call but its creation; Dying is how long a deleted one answers.
	Queues, Dying time.Duration
	// Parameters is how long Parameter Store shows what was before a write.
	Parameters time.Duration
}

// lags tells whether something that was made at a time is still unknown.
func (c *Calls) lags(made *time.Time, lag time.Duration) bool {
	return made != nil && c.now.Sub(*made) < lag
}
