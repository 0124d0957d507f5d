package model

// call is an update of the lease: its expressions as the state machine or package rack sends them, and its effect. A
// test compares the expressions with those that are sent.
type call struct {
	update, condition string
	do                func(l *lease, c caller) bool
}

// caller is the sender of an update, with its parameters.
type caller struct {
	me          int8
	generation  int8
	full, force bool
}

// protocol describes how passes use the lease. Mutations of it show that the properties can fail.
type protocol struct {
	Request, Acquire, Renew, Release, Erase, HandOver call
	// Call is the Renew that a function sends at the start of each call. Free is sent by resync for a dead execution,
	// FreeInFlight for a dead execution that may have a call in flight.
	Call, Free, FreeInFlight call

	// readsFirst: Validate reads the parameters before it notes what has been requested.
	readsFirst bool
	// trustsReads: Validate continues with what it read, even if that lacks a write that it knows of.
	trustsReads bool
	// ignoresRequests: a request does not end a step that waits.
	ignoresRequests bool
	// endsRefusedHandOver: a refused hand-over starts no successor.
	endsRefusedHandOver bool
	// keepsRunning: a report leaves in the status that the pass waits.
	keepsRunning bool
	// forgetsUncounted: an event that was not counted is not repeated.
	forgetsUncounted bool
	// ignoresQuiet: a pass that takes the lease does not wait for calls in flight.
	ignoresQuiet bool
	// followers: after this many early ends in a row, no execution is started. Sawhorse uses 3; 2 covers the same
	// cases.
	followers uint8
}

func held(l *lease, c caller) bool { return l.owner == c.me }

// asBuilt returns the protocol that the state machine and package rack implement.
func asBuilt() protocol {
	return protocol{
		followers: 2,
		Request: call{
			update: "{% 'SET requested = if_not_exists(requested, :zero) + :one' & " +
				"($full ? ', fullAt = if_not_exists(requested, :zero) + :one' : '') & " +
				"$reduce($distinct($force), function($all, $word) { $all & ', force' & $replace($replace($word, '-', '_'), ':', '_') & " +
				"'At = if_not_exists(requested, :zero) + :one' }, '') & " +
				"', wrote' & ($wrote = '' ? '' : ($name := $substringAfter($wrote, ' params/'); $name in ${Parameters} ? '_' & $name : " +
				"$substring($string($length($wrote)), -2))) & ' = :wrote, #ttl = :ttl' %}",
			do: func(l *lease, c caller) bool {
				l.requested++
				if c.full {
					l.fullAt = l.requested
				}
				if c.force {
					l.forceAt = l.requested
				}
				return true
			},
		},
		Acquire: call{
			update: "SET #owner = :me, expires = :expires, since = :now",
			condition: "attribute_exists(requested) AND (attribute_not_exists(#owner) OR #owner = :me OR expires < :now) AND " +
				"(attribute_not_exists(served) OR requested > served)",
			do: func(l *lease, c caller) bool {
				if l.requested == 0 || l.owner != none && l.owner != c.me && !l.expired || l.requested <= l.served {
					return false
				}
				l.owner, l.expired = c.me, false
				return true
			},
		},
		Erase: call{
			condition: "#owner = :me AND requested = :generation",
			do: func(l *lease, c caller) bool {
				if !held(l, c) || l.requested != c.generation {
					return false
				}
				*l = lease{owner: none}
				return true
			},
		},
		Renew: call{update: "SET expires = :expires", condition: "#owner = :me", do: renew},
		Call:  call{update: "SET #expires = :expires", condition: "#owner = :me", do: renew},
		Release: call{
			update:    "SET served = :generation REMOVE #owner, expires",
			condition: "#owner = :me AND requested = :generation",
			do: func(l *lease, c caller) bool {
				if !held(l, c) || l.requested != c.generation {
					return false
				}
				l.served = c.generation
				return release(l, c)
			},
		},
		HandOver: call{update: "REMOVE #owner, expires", condition: "#owner = :me", do: release},
		Free:     call{update: "REMOVE #owner, #expires", condition: "#owner = :me", do: release},
		FreeInFlight: call{
			update: "SET quiet = :quiet REMOVE #owner, #expires", condition: "#owner = :me",
			do: func(l *lease, c caller) bool {
				if !held(l, c) {
					return false
				}
				l.quiet = true
				return release(l, c)
			},
		},
	}
}

func release(l *lease, c caller) bool {
	if !held(l, c) {
		return false
	}
	l.owner, l.expired = none, false
	return true
}

func renew(l *lease, c caller) bool {
	if !held(l, c) {
		return false
	}
	l.expired = false
	return true
}
