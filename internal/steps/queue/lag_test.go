package queue

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

// complete runs the step to its end as the state machine does. It returns the changes and what the step waited for.
func complete(t *testing.T, cloud *awsfake.Cloud, q *Step, present bool) (changes, notes string) {
	t.Helper()
	for range 40 {
		progress, err := q.Run(t.Context(), wanted(present), "")
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range progress.Changes {
			changes += c.Action + " " + c.Subject + "\n"
		}
		if progress.Wait == 0 {
			return changes, notes
		}
		notes += progress.Note + "\n"
		cloud.Pass(progress.Wait)
	}
	t.Fatalf("not done after 40 calls: %s", notes)
	return "", ""
}

// For some calls a new queue does not exist yet, whatever their order.
func TestWaitsForANewQueue(t *testing.T) {
	for lag := range 12 {
		cloud, q := begin()
		cloud.Lag.Queues = time.Duration(lag) * time.Second
		complete(t, cloud, q, true)
		if cloud.SQS.Queues[url] == nil || cloud.Events.Rules[name] == nil {
			t.Errorf("a lag of %d s: %v, %v", lag, cloud.SQS.Queues, cloud.Events.Rules)
		}
		unchanged(t, cloud, q, true)
	}
}

// A deleted queue may still answer for a minute. Such a queue is not adopted as the rack's, because it is about to
// disappear.
func TestNothingThatDiesIsAdopted(t *testing.T) {
	for seconds := range 60 {
		cloud, q := begin()
		complete(t, cloud, q, true)
		cloud.Lag.Dying = time.Duration(seconds) * time.Second
		complete(t, cloud, q, false)
		changes, notes := complete(t, cloud, q, true)
		if cloud.SQS.Queues[url] == nil || strings.Count(changes, "created queue") != 1 || !strings.Contains(notes, "60 s") {
			t.Fatalf("dying for %d s: queue %v, changes %s, notes %s", seconds, cloud.SQS.Queues[url], changes, notes)
		}
		unchanged(t, cloud, q, true)
	}
}

// The function is ended in its creation of the next queue, while calls find the deleted one again: a replica lags. That one is
// not adopted.
func TestNothingThatDiesIsAdoptedAfterACreationThatEnded(t *testing.T) {
	cloud, q := begin()
	complete(t, cloud, q, true)
	cloud.Pass(time.Hour)
	dying := *cloud.SQS.Queues[url]
	complete(t, cloud, q, false)
	cloud.Fail("SQS.CreateQueue", context.Canceled)
	if _, err := q.Run(t.Context(), wanted(true), ""); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v", err)
	}
	cloud.Fail("SQS.CreateQueue", nil)
	cloud.SQS.Queues[url] = &dying
	progress, err := q.Run(t.Context(), wanted(true), "")
	if err != nil || progress.Wait != reuse || !strings.Contains(progress.Note, "deleted less than 60 s ago") {
		t.Errorf("%+v, %v", progress, err)
	}
}

// EventBridge may still show a rule that was deleted moments ago. It is not deleted, and reported, a second time.
func TestADeletedRuleLingers(t *testing.T) {
	cloud, q := begin()
	complete(t, cloud, q, true)
	rule := *cloud.Events.Rules[name]
	complete(t, cloud, q, false)
	cloud.Events.Rules[name] = &rule
	unchanged(t, cloud, q, false)
}

// EventBridge may refuse to delete a rule because of a target that was removed moments ago.
func TestARemovedTargetLingers(t *testing.T) {
	cloud, q := begin()
	complete(t, cloud, q, true)
	cloud.Events.Lingering = 2
	changes, notes := complete(t, cloud, q, false)
	if len(cloud.Events.Rules) > 0 || !strings.Contains(notes, "EventBridge still shows targets of rule "+name) {
		t.Errorf("%v, changes %s, notes %s", cloud.Events.Rules, changes, notes)
	}
	unchanged(t, cloud, q, false)
}

// Only Sawhorse's own deletions are on record. A queue that somebody else deleted is created again as soon as SQS
// allows it.
func TestAQueueThatSomebodyDeleted(t *testing.T) {
	cloud, q := begin()
	complete(t, cloud, q, true)
	delete(cloud.SQS.Queues, url)
	if changes, _ := complete(t, cloud, q, true); !strings.Contains(changes, "created queue") {
		t.Errorf("changes %s", changes)
	}
}

// A queue that is not ours is rejected at once, whatever the lag.
func TestAForeignQueueIsRefusedAtOnce(t *testing.T) {
	cloud, q := begin()
	complete(t, cloud, q, true)
	cloud.SQS.Queues[url].Tags = nil
	cloud.Lag = awsfake.Lag{Queues: time.Second, Dying: time.Minute}
	if _, err := q.Run(t.Context(), wanted(true), ""); !errors.As(err, new(*outcome.Rejected)) {
		t.Errorf("%v", err)
	}
}

// A rule that others make in the place of one that was deleted moments ago is not overwritten.
func TestAForeignRuleIsRefusedAtOnce(t *testing.T) {
	cloud, q := begin()
	complete(t, cloud, q, true)
	theirs := *cloud.Events.Rules[name]
	complete(t, cloud, q, false)
	cloud.Pass(time.Minute)
	theirs.Tags, theirs.Targets = nil, nil
	cloud.Events.Rules[name] = &theirs
	progress, err := q.Run(t.Context(), wanted(true), "")
	if err != nil || progress.Wait == 0 {
		t.Fatalf("the queue is new: %+v, %v", progress, err)
	}
	cloud.Pass(progress.Wait)
	cloud.Forget()
	if _, err := q.Run(t.Context(), wanted(true), ""); !errors.As(err, new(*outcome.Rejected)) || len(cloud.Changes()) > 0 {
		t.Errorf("%v, %v", err, cloud.Changes())
	}
}

// A queue that calls still find after its deletion is not deleted, and reported, a second time.
func TestADeletedQueueLingers(t *testing.T) {
	cloud, q := begin()
	complete(t, cloud, q, true)
	cloud.Lag.Dying = time.Minute
	complete(t, cloud, q, false)
	unchanged(t, cloud, q, false)
}
