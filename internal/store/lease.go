package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sawhorse-io/sawhorse/events"
)

// LeaseTime is how long a pass holds a rack without renewing the lease. It is longer than the timeout of one task
// (75 s), which is longer than that of one function (60 s).
const LeaseTime = 3 * time.Minute

// CallTime is the timeout of one function: how long a call may continue to make changes after its execution has ended.
const CallTime = time.Minute

// ErrLeaseLost means that another pass has taken over the rack. This pass must change nothing more.
var ErrLeaseLost = errors.New("another pass has taken the rack over")

// Lease is a rack's lease, as read by its owner.
type Lease struct {
	// Requested is the number of events for the rack so far. Served is the value of Requested when the last completed
	// iteration began.
	Requested, Served int64
	// Full reports whether an event that is not served yet asked for it. Force has the words of such events, with the value of
	// Requested after the last event that had the word.
	Full  bool
	Force map[string]int64
	// Since is when the current owner took the lease, also if that pass ended without freeing it. It is zero if there is
	// no owner.
	Since time.Time
	// HeldAt is the value of Requested after the last Interrupt, or 0, and Held the hold that it was for.
	HeldAt int64
	Held   string
	// Writes are the latest writes that events reported: one for each parameter of Sawhorse, and at most a hundred others. Most of
	// them have been served.
	Writes []Written
}

// Renew extends the lease of a pass and returns it, with all requests so far. If the pass is no longer the owner, it
// returns ErrLeaseLost.
func (s *Store) Renew(ctx context.Context, rack, owner string, now time.Time) (Lease, error) {
	in := s.updating(key(rack, "lease"), "SET #expires = :expires", "#owner = :me",
		item{":me": text(owner), ":expires": number(now.Add(LeaseTime).Unix())})
	in.ReturnValues = types.ReturnValueAllNew
	out, err := s.DB.UpdateItem(ctx, in)
	if refused(err) {
		return Lease{}, ErrLeaseLost
	}
	if err != nil {
		return Lease{}, fmt.Errorf("rack %s: renew lease: %w", rack, err)
	}
	return leaseOf(out.Attributes), nil
}

func leaseOf(values item) Lease {
	served := numberOf(values, "served")
	lease := Lease{
		Requested: numberOf(values, "requested"),
		Served:    served,
		Full:      numberOf(values, "fullAt") > served,
		HeldAt:    numberOf(values, "heldAt"),
		Held:      stringOf(values, "held"),
	}
	for name := range values {
		word, is := forceWord(name)
		if at := numberOf(values, name); is && at > served {
			if lease.Force == nil {
				lease.Force = map[string]int64{}
			}
			lease.Force[word] = at
		}
	}
	if since := numberOf(values, "since"); since > 0 && stringOf(values, "owner") != "" {
		lease.Since = time.Unix(since, 0)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if write, is := readWritten(stringOf(values, name)); is && strings.HasPrefix(name, "wrote") {
			lease.Writes = append(lease.Writes, write)
		}
	}
	return lease
}

// forceAttribute is the attribute for a word of a request's force. DynamoDB's expressions take neither dashes nor colons, and no
// word has an underscore.
func forceAttribute(word string) string {
	return "force" + strings.NewReplacer("-", "_", ":", "_").Replace(word) + "At"
}

// forceWord returns the word that an attribute is for.
func forceWord(attribute string) (word string, is bool) {
	word = strings.TrimSuffix(strings.TrimPrefix(attribute, "force"), "At")
	if pool, retires := strings.CutPrefix(word, "retire_"); retires {
		word = events.ForceRetire + pool
	}
	word = strings.ReplaceAll(word, "_", "-")
	return word, forceAttribute(word) == attribute && events.IsForce(word)
}

// Force adds the words of a change to the lease, as if the last request had them.
func (s *Store) Force(ctx context.Context, rack string, words events.Force, requested int64) error {
	if len(words) == 0 {
		return nil
	}
	var set []string
	for _, word := range words {
		set = append(set, forceAttribute(word)+" = :requested")
	}
	err := s.update(ctx, key(rack, "lease"), "SET "+strings.Join(set, ", "), "", item{":requested": number(requested)})
	return wrap(err, "rack %s: force %s", rack, strings.Join(words, ", "))
}

// Lease reads a rack's lease without taking it, and whether a pass holds it.
func (s *Store) Lease(ctx context.Context, rack string, now time.Time) (lease Lease, held bool, err error) {
	values, err := s.get(ctx, key(rack, "lease"))
	held = stringOf(values, "owner") != "" && numberOf(values, "expires") >= now.Unix()
	return leaseOf(values), held, wrap(err, "rack %s: read lease", rack)
}

// Request counts a request for the rack, like the state machine does for an event. The pass that holds the lease then
// runs another iteration.
func (s *Store) Request(ctx context.Context, rack string) error {
	err := s.update(ctx, key(rack, "lease"), "ADD requested :one", "", item{":one": number(1)})
	return wrap(err, "rack %s: request another iteration", rack)
}

// Interrupt requests another iteration of the pass that has a rack, and ends the present one at its next call of a step:
// what was read of the hold, whose ID is given, may hold the rack. wrote is the write of the hold that the next iteration
// must have read; its Operation is empty if that is not known. Without a pass, nothing is to be interrupted.
func (s *Store) Interrupt(ctx context.Context, rack, hold string, wrote Written) error {
	update := "SET requested = requested + :one, heldAt = requested + :one, held = :held"
	values := item{":one": number(1), ":held": text(hold)}
	if wrote.Operation != "" {
		written := wrote.text()
		update, values[":wrote"] = update+fmt.Sprintf(", wrote%02d = :wrote", len(written)%100), text(written)
	}
	err := s.update(ctx, key(rack, "lease"), update, "attribute_exists(#owner)", values)
	if refused(err) {
		return nil
	}
	return wrap(err, "rack %s: interrupt its pass for the hold", rack)
}

// Free ends the lease of an execution that ended without freeing it, and reports whether unserved requests remain. It
// also reports that if the lease is free already, so that an interrupted caller can repeat the call. It does not change
// the lease of another pass. A function call of the execution may still run until the time quiet, and the next owner of
// the lease waits for that. The zero time means that the execution has no call in flight; it does not clear an earlier
// quiet time.
func (s *Store) Free(ctx context.Context, rack, owner string, quiet time.Time) (remain bool, err error) {
	update, values := "REMOVE #owner, #expires", item{":me": text(owner)}
	if !quiet.IsZero() {
		update, values[":quiet"] = "SET quiet = :quiet "+update, number(quiet.Unix())
	}
	in := s.updating(key(rack, "lease"), update, "#owner = :me", values)
	in.ReturnValues = types.ReturnValueAllNew
	out, err := s.DB.UpdateItem(ctx, in)
	if err != nil && !refused(err) {
		return false, fmt.Errorf("rack %s: free lease: %w", rack, err)
	}
	var lease item
	if err == nil {
		lease = out.Attributes
	} else if lease, err = s.get(ctx, key(rack, "lease")); err != nil {
		return false, fmt.Errorf("rack %s: read lease: %w", rack, err)
	}
	return stringOf(lease, "owner") == "" && numberOf(lease, "requested") > numberOf(lease, "served"), nil
}
