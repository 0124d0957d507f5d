package queue

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

// spoiled is a queue that the step has just made and repaired, and that needs each of its repairs again.
func spoiled(t *testing.T) (*awsfake.Cloud, *Step) {
	t.Helper()
	cloud, q := begin()
	complete(t, cloud, q, true)
	cloud.SQS.Queues[url].Attributes["MessageRetentionPeriod"] = "60"
	delete(cloud.SQS.Queues[url].Tags, "team")
	return cloud, q
}

// deletes makes somebody delete the queue right before the step's first call of that name.
func deletes(t *testing.T, cloud *awsfake.Cloud, before string) (met *atomic.Bool) {
	t.Helper()
	met = new(atomic.Bool) // the step calls from several goroutines
	cloud.Before = func(call string) error {
		if !strings.HasPrefix(call, before+" ") || !met.CompareAndSwap(false, true) {
			return nil
		}
		_, err := cloud.SQS.DeleteQueue(context.Background(), &sqs.DeleteQueueInput{QueueUrl: &url})
		return err
	}
	return met
}

// Somebody deletes the queue moments after it was made, at any point of the step. A call that meets no queue makes the step
// wait, and never counts as one that found the queue as it was written; SQS holds its name for a minute, and then there is a
// queue again. As long as calls still succeed nobody can know of the deletion: then the next pass makes the queue again.
func TestEachCallMeetsAQueueThatSomebodyDeleted(t *testing.T) {
	for _, call := range []string{
		"SQS.GetQueueUrl", "SQS.ListQueueTags", "SQS.GetQueueAttributes", "SQS.SetQueueAttributes", "SQS.TagQueue",
	} {
		for _, dying := range []time.Duration{0, 5 * time.Second, 50 * time.Second} {
			cloud, q := spoiled(t)
			cloud.Lag.Dying = dying
			met := deletes(t, cloud, call)
			changes, notes := complete(t, cloud, q, true)
			if !met.Load() {
				t.Fatalf("the step does not call %s", call)
			}
			if dying == 0 && (!strings.Contains(changes, "created queue") || !strings.Contains(notes, "SQS")) {
				t.Errorf("%s met no queue: changes %q, notes %q", call, changes, notes)
			}
			if cloud.SQS.Queues[url] == nil && dying == 0 {
				t.Errorf("%s met no queue, and the step is done without one", call)
			}
			cloud.Pass(time.Minute)
			complete(t, cloud, q, true)
			queue := cloud.SQS.Queues[url]
			if queue == nil || queue.Attributes["MessageRetentionPeriod"] != "300" || queue.Tags["team"] != "builders" {
				t.Errorf("%s, dying for %s: in the end %+v", call, dying, queue)
			}
			unchanged(t, cloud, q, true)
		}
	}
}

// A creation meets the name of a queue that was just deleted.
func TestACreationMeetsAQueueThatSomebodyDeleted(t *testing.T) {
	cloud, q := begin()
	complete(t, cloud, q, true)
	if _, err := cloud.SQS.DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: &url}); err != nil {
		t.Fatal(err)
	}
	changes, notes := complete(t, cloud, q, true)
	if strings.Count(changes, "created queue") != 1 || !strings.Contains(notes, "SQS holds the name") || cloud.SQS.Queues[url] == nil {
		t.Errorf("changes %q, notes %q, queue %v", changes, notes, cloud.SQS.Queues[url])
	}
	unchanged(t, cloud, q, true)
}

// A removal is done if somebody else has deleted the queue, whichever call finds out. One that has just been made may only not
// be visible yet, so that is looked at again until it must be.
func TestARemovalMeetsAQueueThatSomebodyDeleted(t *testing.T) {
	for _, call := range []string{"SQS.GetQueueUrl", "SQS.ListQueueTags", "SQS.DeleteQueue"} {
		for _, age := range []time.Duration{0, time.Hour} {
			cloud, q := spoiled(t)
			cloud.Pass(age)
			met := deletes(t, cloud, call)
			for done := false; !done; {
				progress, err := q.Run(t.Context(), wanted(false), "")
				if err != nil {
					t.Fatalf("%s: %v", call, err)
				}
				if done = progress.Wait == 0; !done && (age > 0 || progress.Wait != creationLag) {
					t.Errorf("%s, %s old: waits %s: %s", call, age, progress.Wait, progress.Note)
					break
				}
				cloud.Pass(10 * time.Second)
			}
			if !met.Load() || cloud.SQS.Queues[url] != nil || cloud.Events.Rules[name] != nil {
				t.Errorf("%s, %s old: met %v, left %v, %v", call, age, met.Load(), cloud.SQS.Queues, cloud.Events.Rules)
			}
			unchanged(t, cloud, q, false)
		}
	}
}

// SQS's query protocol has another code for a queue that does not exist.
func TestTheOtherCodeForAQueueThatDoesNotExist(t *testing.T) {
	for _, call := range []string{"SQS.ListQueueTags", "SQS.GetQueueAttributes", "SQS.SetQueueAttributes", "SQS.TagQueue"} {
		cloud, q := spoiled(t)
		cloud.Fail(call, &smithy.GenericAPIError{Code: "AWS.SimpleQueueService.NonExistentQueue"})
		if progress, err := q.Run(t.Context(), wanted(true), ""); err != nil || progress.Wait != creationLag {
			t.Errorf("%s: %+v, %v", call, progress, err)
		}
	}
}
