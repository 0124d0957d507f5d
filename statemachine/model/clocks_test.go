package model

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

// The model knows of a lease only whether it has expired. These tests run the texts of its updates on a table, by clocks that are
// up to ten minutes off: those of Step Functions, and those of the functions.

// rack is a rack's lease in a table, and who has acquired it last.
type rack struct {
	*testing.T
	cloud *awsfake.Cloud
	store *store.Store
	now   time.Time
	owner string
}

func newRack(t *testing.T) *rack {
	cloud := awsfake.New()
	return &rack{T: t, cloud: cloud, store: &store.Store{DB: cloud.Table}, now: cloud.Now()}
}

// send makes an update of the state machine, by a clock of Step Functions that is off, and reports whether its condition held.
func (r *rack) send(c call, me string, generation int64, off time.Duration) (map[string]types.AttributeValue, bool) {
	r.Helper()
	number := func(n int64) types.AttributeValue { return &types.AttributeValueMemberN{Value: fmt.Sprint(n)} }
	now := r.now.Add(off).Unix()
	out, err := r.cloud.Table.UpdateItem(r.Context(), &dynamodb.UpdateItemInput{
		Key: map[string]types.AttributeValue{
			"pk": &types.AttributeValueMemberS{Value: "rack#demo"}, "sk": &types.AttributeValueMemberS{Value: "lease"},
		},
		UpdateExpression: &c.update, ConditionExpression: &c.condition,
		ExpressionAttributeNames: map[string]string{"#owner": "owner"},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":me": &types.AttributeValueMemberS{Value: me}, ":generation": number(generation), ":now": number(now),
			":expires": number(now + int64(store.LeaseTime.Seconds())),
		},
	})
	if errors.As(err, new(*types.ConditionalCheckFailedException)) {
		return nil, false
	}
	if err != nil {
		r.Fatal(err)
	}
	return out.Attributes, true
}

// event counts an event, and reports whether its execution gets the lease.
func (r *rack) event(me string, off time.Duration) bool {
	r.Helper()
	if err := r.store.Request(r.Context(), "demo"); err != nil {
		r.Fatal(err)
	}
	_, acquired := r.send(asBuilt().Acquire, me, 0, off)
	if acquired {
		r.owner = me
	}
	return acquired
}

// call begins a function's call by a clock that is off, and returns what it sees of the requests. A pass that has lost the lease may
// not begin one.
func (r *rack) call(me string, off time.Duration) (requested int64, alive bool) {
	r.Helper()
	lease, err := r.store.Renew(r.Context(), "demo", me, r.now.Add(off))
	if err != nil && !errors.Is(err, store.ErrLeaseLost) {
		r.Fatal(err)
	}
	if alive = err == nil; alive != (me == r.owner) {
		r.Errorf("%s begins a call: %t, and %q has acquired the lease last", me, alive, r.owner)
	}
	return lease.Requested, alive
}

const off = 10 * time.Minute

// How long the rack of a pass that has ended in silence stays occupied, and whether a pass that runs is taken over, by how far the
// clock of the functions is ahead of that of Step Functions. A pass that is taken over begins no call any more, and the event of
// one that is not is seen by the next call.
func TestLeasesByOtherClocks(t *testing.T) {
	for _, c := range []struct {
		ahead, occupied time.Duration
	}{
		{0, store.LeaseTime},
		{time.Minute, store.LeaseTime + time.Minute},
		{-time.Minute, store.LeaseTime - time.Minute},
		{off, store.LeaseTime + off},
		{-off, 0},
	} {
		for what, clocks := range map[string]struct{ functions, machine time.Duration }{
			"functions": {c.ahead, 0}, "state machine": {0, -c.ahead},
		} {
			r := newRack(t)
			if !r.event("a", clocks.machine) {
				t.Fatal("nobody has the lease")
			}
			r.call("a", clocks.functions)
			last, events := r.now, int64(1)
			for events++; !r.event("b", clocks.machine); events++ {
				if requested, _ := r.call("a", clocks.functions-r.now.Sub(last)); requested != events { // as if at its last call
					t.Fatalf("%s, %v: the pass sees %d of %d events", what, c.ahead, requested, events)
				}
				r.now = r.now.Add(time.Second)
			}
			r.call("a", clocks.functions)
			if requested, _ := r.call("b", clocks.functions); requested != events {
				t.Errorf("%s, %v: the next pass sees %d of %d events", what, c.ahead, requested, events)
			}
			if free := r.now.Sub(last); free < c.occupied || free > c.occupied+time.Second {
				t.Errorf("%s, %v ahead: free after %v, want %v", what, c.ahead, free, c.occupied)
			}
		}
	}
}

// Whatever the clocks show, one pass at a time begins calls, and an iteration that has read everything serves the last event.
func TestNoClockLosesAWrite(t *testing.T) {
	for seed := range uint64(300) {
		r, random := newRack(t), rand.New(rand.NewPCG(seed, 31))
		wrong := func() time.Duration { return time.Duration(random.Int64N(int64(2*off))) - off }
		var passes []string // those that have not found out that they have ended
		read := map[string]int64{}
		for n := range 80 {
			r.now = r.now.Add(time.Duration(random.Int64N(int64(4 * time.Minute))))
			if me := fmt.Sprint("pass ", n); len(passes) == 0 || random.IntN(4) == 0 {
				if r.event(me, wrong()) {
					passes = append(passes, me)
				}
				continue
			}
			at := random.IntN(len(passes))
			if random.IntN(5) > 0 {
				if r.goesOn(passes[at], read, random.IntN(2) == 0, wrong()) {
					continue
				}
			} // else it has died in silence
			passes = append(passes[:at], passes[at+1:]...)
		}
		r.now = r.now.Add(2*off + store.LeaseTime + time.Second)
		if !r.event("the last one", off) || !r.finishes("the last one", read) {
			t.Fatalf("seed %d: the rack stays occupied", seed)
		}
		item := r.cloud.Table.Items["rack#demo lease"]
		if served := awsfake.Text(item, "served"); served != awsfake.Text(item, "requested") || served != fmt.Sprint(read["the last one"]) {
			t.Fatalf("seed %d: %v, and the last iteration has read %d", seed, item, read["the last one"])
		}
	}
}

// goesOn is a call of a pass, or the end of its iteration. It reports whether the pass goes on.
func (r *rack) goesOn(me string, read map[string]int64, ends bool, off time.Duration) bool {
	r.Helper()
	if !ends || read[me] == 0 {
		requested, alive := r.call(me, off)
		if read[me] == 0 { // the first call of an iteration reads the parameters
			read[me] = requested
		}
		return alive
	}
	if item, released := r.send(asBuilt().Release, me, read[me], off); released {
		if requested := awsfake.Text(item, "requested"); me != r.owner || requested != fmt.Sprint(read[me]) {
			r.Errorf("%s releases the lease, which %s has acquired; it has read %d of %s events", me, r.owner, read[me], requested)
		}
		r.owner = ""
		return false
	}
	read[me] = 0
	return true // Again: another iteration, whose first call finds out
}

// finishes lets a pass run to its end.
func (r *rack) finishes(me string, read map[string]int64) bool {
	r.Helper()
	for range 4 {
		if !r.goesOn(me, read, true, 0) {
			return r.owner == ""
		}
	}
	return false
}
