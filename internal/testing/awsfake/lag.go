package awsfake

import "time"

// Lag is how long after a write AWS answers as if the write had not been made. With the zero Lag, every write is
// visible at once.
type Lag struct {
	// Roles is IAM's own lag: all calls about a new role except its creation answer that there is no such role. If
	// Denied is true, reads find the role and writes are denied, because the replica that authorizes them takes an
	// unknown role for one without a path.
	Roles  time.Duration
	Denied bool
	// Deleted is how long reads still return a deleted role. Writes answer that there is no such role.
	Deleted time.Duration
	// Principals is how long EKS does not know a new role.
	Principals time.Duration
	// Entries is how long the policies of a new access entry can be neither listed nor associated, and how long a
	// deleted entry blocks the creation of another one for the same principal.
	Entries time.Duration
	// Shown is how long EKS returns a deleted access entry, even in place of a new one.
	Shown time.Duration
	// Queues is how long all calls except CreateQueue do not find a new queue. Dying is how long a deleted queue still
	// answers.
	Queues, Dying time.Duration
	// Replicas is how old the state of a resource may be that a read shows. Each read is answered by a replica of its own,
	// whose age is drawn from Seed, so that a read may be older than the one before it.
	Replicas time.Duration
	Seed     uint64
	// Parameters is how long Parameter Store returns the state before a write.
	Parameters time.Duration
}

// lags reports whether something created at a time is still unknown.
func (c *Calls) lags(made *time.Time, lag time.Duration) bool {
	return made != nil && c.Now().Sub(*made) < lag
}
