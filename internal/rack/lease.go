package rack

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// LeaseTime is how long a pass holds a rack without a sign of life. It outlives the timeout of one task (75 s), which
// outlives that of one Lambda (60 s).
const LeaseTime = 3 * time.Minute

// CallTime is the timeout of one Lambda: how long a call may go on changing things when its execution has ended.
const CallTime = time.Minute

// ErrLeaseLost says that another pass has taken the rack over; this one must change nothing more.
var ErrLeaseLost = errors.New("another pass has taken the rack over")

// Lease is a rack's lease as the owner finds it.
type Lease struct {
	// Requested counts the events for the rack so far; Served is what Requested was when the last round that ended began.
	Requested, Served int64
	// Full and Force tell whether an event that is not served yet asked for it.
	Full, Force bool
	// Writes are the latest that events told of, at most ten; most are served long ago.
	Writes []Written
}

// Renew prolongs the lease of a pass, on the condition that it is still the owner (else ErrLeaseLost), and tells what has
// been requested by then.
func (s *Store) Renew(ctx context.Context, rack, owner string, now time.Time) (Lease, error) {
	out, err := s.DB.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                 &s.Name,
		Key:                       key(rack, "lease"),
		UpdateExpression:          new("SET #expires = :expires"),
		ConditionExpression:       new("#owner = :me"),
		ExpressionAttributeNames:  map[string]string{"#owner": "owner", "#expires": "expires"},
		ExpressionAttributeValues: item{":me": text(owner), ":expires": number(now.Add(LeaseTime).Unix())},
		ReturnValues:              types.ReturnValueAllNew,
	})
	if refused(err) {
		return Lease{}, ErrLeaseLost
	}
	if err != nil {
		return Lease{}, fmt.Errorf("rack %s: renew lease: %w", rack, err)
	}
	served := numberOf(out.Attributes, "served")
	lease := Lease{
		Requested: numberOf(out.Attributes, "requested"),
		Served:    served,
		Full:      numberOf(out.Attributes, "fullAt") > served,
		Force:     numberOf(out.Attributes, "forceAt") > served,
	}
	for place := range 10 {
		if write, ok := readWritten(stringOf(out.Attributes, fmt.Sprintf("wrote%d", place))); ok {
			lease.Writes = append(lease.Writes, write)
		}
	}
	return lease, nil
}

// Request counts a request for the rack, as the state machine does for an event: the pass that has the lease goes round
// once more.
func (s *Store) Request(ctx context.Context, rack string) error {
	_, err := s.DB.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                 &s.Name,
		Key:                       key(rack, "lease"),
		UpdateExpression:          new("ADD requested :one"),
		ExpressionAttributeValues: item{":one": number(1)},
	})
	return wrap(err, "rack %s: request another round", rack)
}

// HeldSince is when the pass took the rack that has it now, or that had it and never gave it back; the zero time where there is
// none.
func (s *Store) HeldSince(ctx context.Context, rack string) (time.Time, error) {
	lease, err := s.get(ctx, key(rack, "lease"))
	if since := numberOf(lease, "since"); err == nil && stringOf(lease, "owner") != "" && since > 0 {
		return time.Unix(since, 0), nil
	}
	return time.Time{}, wrap(err, "rack %s: read lease", rack)
}

// Free ends the lease of an execution that ended without doing so itself, and tells whether requests remain that no pass has
// served: also when the lease is free already, so that a caller that was stopped behind this call may call again. A lease
// that another pass holds is left alone. A call of the execution may outlive it, until the time quiet; whoever takes the
// lease next waits for that. The zero time is for an execution that has no call in flight: an earlier one may have.
func (s *Store) Free(ctx context.Context, rack, owner string, quiet time.Time) (remain bool, err error) {
	in := &dynamodb.UpdateItemInput{
		TableName:                 &s.Name,
		Key:                       key(rack, "lease"),
		UpdateExpression:          new("REMOVE #owner, #expires"),
		ConditionExpression:       new("#owner = :me"),
		ExpressionAttributeNames:  map[string]string{"#owner": "owner", "#expires": "expires"},
		ExpressionAttributeValues: item{":me": text(owner)},
		ReturnValues:              types.ReturnValueAllNew,
	}
	if !quiet.IsZero() {
		in.UpdateExpression = new("SET quiet = :quiet REMOVE #owner, #expires")
		in.ExpressionAttributeValues[":quiet"] = number(quiet.Unix())
	}
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
