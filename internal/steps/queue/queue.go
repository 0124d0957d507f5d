// Package queue creates, repairs and removes a rack's interruption queue and the EventBridge rule that fills it.
package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/resource"
)

// SQS lists the SQS calls of the step.
type SQS interface {
	GetQueueUrl(context.Context, *sqs.GetQueueUrlInput, ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error)
	CreateQueue(context.Context, *sqs.CreateQueueInput, ...func(*sqs.Options)) (*sqs.CreateQueueOutput, error)
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
	SetQueueAttributes(context.Context, *sqs.SetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.SetQueueAttributesOutput, error)
	ListQueueTags(context.Context, *sqs.ListQueueTagsInput, ...func(*sqs.Options)) (*sqs.ListQueueTagsOutput, error)
	TagQueue(context.Context, *sqs.TagQueueInput, ...func(*sqs.Options)) (*sqs.TagQueueOutput, error)
	DeleteQueue(context.Context, *sqs.DeleteQueueInput, ...func(*sqs.Options)) (*sqs.DeleteQueueOutput, error)
}

// Rules lists the EventBridge calls of the step.
type Rules interface {
	DescribeRule(context.Context, *eventbridge.DescribeRuleInput, ...func(*eventbridge.Options)) (*eventbridge.DescribeRuleOutput, error)
	PutRule(context.Context, *eventbridge.PutRuleInput, ...func(*eventbridge.Options)) (*eventbridge.PutRuleOutput, error)
	DeleteRule(context.Context, *eventbridge.DeleteRuleInput, ...func(*eventbridge.Options)) (*eventbridge.DeleteRuleOutput, error)
	ListTagsForResource(context.Context, *eventbridge.ListTagsForResourceInput,
		...func(*eventbridge.Options)) (*eventbridge.ListTagsForResourceOutput, error)
	TagResource(context.Context, *eventbridge.TagResourceInput, ...func(*eventbridge.Options)) (*eventbridge.TagResourceOutput, error)
	ListTargetsByRule(context.Context, *eventbridge.ListTargetsByRuleInput,
		...func(*eventbridge.Options)) (*eventbridge.ListTargetsByRuleOutput, error)
	PutTargets(context.Context, *eventbridge.PutTargetsInput, ...func(*eventbridge.Options)) (*eventbridge.PutTargetsOutput, error)
	RemoveTargets(context.Context, *eventbridge.RemoveTargetsInput, ...func(*eventbridge.Options)) (*eventbridge.RemoveTargetsOutput, error)
}

// Step creates, repairs and removes the queue and the rule.
type Step struct {
	SQS     SQS
	Rules   Rules
	Written resource.Records
	Now     func() time.Time
}

const (
	// deletionLag is how long SQS may still answer for a deleted queue and reserves its name. reuse is how long to wait
	// before the next attempt to create it.
	deletionLag = time.Minute
	reuse       = 20 * time.Second
	// creationLag is how long to wait for a new queue. After about a second it exists for every call.
	creationLag = 2 * time.Second
)

// Run creates and repairs the queue and the rule, or removes them: the rule first, then the queue.
func (q *Step) Run(ctx context.Context, p *plan.Plan, _ string) (outcome.Progress, error) {
	w, err := resource.Open(ctx, q.Written, p.Rack, "queue", q.Now)
	if err != nil {
		return outcome.Progress{}, err
	}
	return w.End(ctx, q.bring(ctx, p, w))
}

func (q *Step) bring(ctx context.Context, p *plan.Plan, w *resource.Writer) error {
	if !p.Queue.Present {
		return q.remove(ctx, p, w)
	}
	var live liveRule // is read meanwhile, and written only after the queue
	var reading sync.WaitGroup
	reading.Go(func() { live = q.describe(ctx, p) })
	url, err := q.queue(ctx, p, w)
	if reading.Wait(); live.err != nil {
		return live.err
	}
	if gone(err) {
		return outcome.Wait(creationLag, "SQS does not know queue %s everywhere: it is new, or has just been deleted", p.Queue.Name)
	}
	if err != nil {
		return err
	}
	if err := q.rule(ctx, p, live, w); err != nil {
		return err
	}
	w.Outputs = map[string]string{
		"interruption_queue_url": url,
		"interruption_queue_arn": p.Queue.ARN,
		"interruption_rule":      p.Queue.Rule.Name,
	}
	return nil
}

// find returns the queue's URL; empty if there is no queue.
func (q *Step) find(ctx context.Context, name string) (string, error) {
	out, err := q.SQS.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &name})
	if gone(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("queue %s: find: %w", name, err)
	}
	return *out.QueueUrl, nil
}

// gone reports whether the queue does not exist. The query protocol has its own error code for that.
func gone(err error) bool {
	return errors.As(err, new(*types.QueueDoesNotExist)) || outcome.Code(err) == "AWS.SimpleQueueService.NonExistentQueue"
}

// queueOf names the queue in the record of what was written, and in reports.
func queueOf(p *plan.Plan) string { return "queue " + p.Queue.Name }

// tags returns the queue with its tags. The URL is empty if there is none.
func (q *Step) tags(ctx context.Context, p *plan.Plan, url string) (resource.Live, map[string]string, error) {
	if url == "" {
		return resource.Live{Name: queueOf(p)}, nil, nil
	}
	out, err := q.SQS.ListQueueTags(ctx, &sqs.ListQueueTagsInput{QueueUrl: &url})
	if err != nil {
		return resource.Live{}, nil, fmt.Errorf("queue %s: read tags: %w", p.Queue.Name, err)
	}
	return resource.Live{Name: queueOf(p), Found: true, Owned: ownership.Owned(out.Tags, p.Rack, p.Cluster.ARN)}, out.Tags, nil
}

// queue creates or repairs the rack's queue, and returns its URL. It does not adopt a queue that Sawhorse has just deleted,
// although calls may still find that.
func (q *Step) queue(ctx context.Context, p *plan.Plan, w *resource.Writer) (string, error) {
	url, err := q.find(ctx, p.Queue.Name)
	if err != nil {
		return "", err
	}
	if url != "" {
		ending, err := q.ending(ctx, p, url, w)
		if err != nil {
			return "", err
		}
		if ending {
			return "", outcome.Wait(reuse, "SQS still finds the queue that was deleted less than 60 s ago")
		}
	}
	live, tags, err := q.tags(ctx, p, url)
	if err != nil {
		return "", err
	}
	attributes, err := q.attributes(ctx, p, url, live.Owned)
	if err != nil {
		return "", err
	}
	err = w.Ensure(ctx, live, resource.Wanted{
		Unowned: outcome.Reject("rack", "SQS queue %s exists and was not made by Sawhorse for this rack and cluster; delete it, or "+
			"use another rack name", p.Queue.Name),
		Create: func(ctx context.Context) error { return q.create(ctx, p) },
		Parts: []resource.Write{resource.Tags(tags, p.Queue.Tags, func(ctx context.Context) error {
			_, err := q.SQS.TagQueue(ctx, &sqs.TagQueueInput{QueueUrl: &url, Tags: p.Queue.Tags})
			return resource.Wrap(err, "queue %s: tag", p.Queue.Name)
		}), attributes},
	})
	if err == nil && url == "" {
		err = outcome.Wait(creationLag, "queue %s is new, and does not exist for every call yet", p.Queue.Name)
	}
	return url, err
}

func (q *Step) create(ctx context.Context, p *plan.Plan) error {
	_, err := q.SQS.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &p.Queue.Name, Attributes: attributes(p), Tags: p.Queue.Tags})
	if errors.As(err, new(*types.QueueDeletedRecently)) {
		return resource.NotMade(outcome.Wait(reuse, "SQS holds the name of the queue that was deleted less than 60 s ago"))
	}
	return resource.Wrap(err, "queue %s: create", p.Queue.Name)
}

// ending reports whether a queue that calls still find is one that Sawhorse deleted less than a minute ago, and not one
// created since.
func (q *Step) ending(ctx context.Context, p *plan.Plan, url string, w *resource.Writer) (bool, error) {
	deletion, is := w.Removed(queueOf(p))
	if !is || q.Now().Sub(deletion.At) >= deletionLag {
		return false, nil
	}
	live, err := q.SQS.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: &url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameCreatedTimestamp},
	})
	if err != nil {
		return false, fmt.Errorf("queue %s: read attributes: %w", p.Queue.Name, err)
	}
	made, err := strconv.ParseInt(live.Attributes[string(types.QueueAttributeNameCreatedTimestamp)], 10, 64)
	if err != nil {
		return false, fmt.Errorf("queue %s: creation time: %w", p.Queue.Name, err)
	}
	return made < deletion.Begun.Unix(), nil
}

// attributes returns the queue's attributes with its policy, which is one of them for SQS.
func attributes(p *plan.Plan) map[string]string {
	all := maps.Clone(p.Queue.Attributes)
	all[string(types.QueueAttributeNamePolicy)] = p.Queue.Policy.JSON()
	return all
}

// attributes returns the part with the queue's attributes, which are set if some differ. All others are left alone. They are
// read if the queue is the rack's.
func (q *Step) attributes(ctx context.Context, p *plan.Plan, url string, owned bool) (resource.Write, error) {
	wanted, same := attributes(p), true
	if owned {
		live, err := q.SQS.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &url,
			AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll}})
		if err != nil {
			return resource.Write{}, fmt.Errorf("queue %s: read attributes: %w", p.Queue.Name, err)
		}
		for name, value := range wanted {
			have := live.Attributes[name]
			same = same && (have == value || name == string(types.QueueAttributeNamePolicy) && outcome.SamePolicy(have, value))
		}
	}
	hash := resource.Hash(wanted)
	return resource.Write{
		Aspect: "/attributes", Read: resource.Read(same, hash), Value: hash, Change: outcome.Change{Action: "repaired"},
		Do: func(ctx context.Context) error {
			_, err := q.SQS.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{QueueUrl: &url, Attributes: wanted})
			return resource.Wrap(err, "queue %s: set attributes", p.Queue.Name)
		},
	}, nil
}

func sameJSON(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}

func (q *Step) remove(ctx context.Context, p *plan.Plan, w *resource.Writer) error {
	if err := q.removeRule(ctx, p, w); err != nil {
		return err
	}
	if err := q.delete(ctx, p, w); gone(err) && w.Created(queueOf(p)) {
		return resource.NotShown(creationLag, queueOf(p))
	} else if err != nil && !gone(err) {
		return err
	}
	w.Outputs = map[string]string{"interruption_queue_url": "", "interruption_queue_arn": "", "interruption_rule": ""}
	return nil
}

// delete deletes the queue if it is ours.
func (q *Step) delete(ctx context.Context, p *plan.Plan, w *resource.Writer) error {
	url, err := q.find(ctx, p.Queue.Name)
	if err != nil {
		return err
	}
	live, _, err := q.tags(ctx, p, url)
	if err != nil {
		return err
	}
	return w.Delete(ctx, live, resource.Removal{
		Wait: creationLag,
		Do: func(ctx context.Context) error {
			_, err := q.SQS.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: &url})
			return resource.Wrap(err, "queue %s: delete", p.Queue.Name)
		},
	})
}
