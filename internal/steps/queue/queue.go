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
	SQS       SQS
	Rules     Rules
	Deletions outcome.Deletions
	Now       func() time.Time
}

const (
	// deletionLag is how long SQS may still answer for a deleted queue and reserves its name. reuse is how long to wait
	// before the next attempt to create it.
	deletionLag = time.Minute
	reuse       = 20 * time.Second
	// creationLag is how long to wait for a new queue. After about a second it exists for every call.
	creationLag = 2 * time.Second
)

// resource is the queue's name in the record of deletions.
const resource = "queue"

// Run creates and repairs the queue and the rule, or removes them: the rule first, then the queue.
func (q *Step) Run(ctx context.Context, p *plan.Plan, _ string) (outcome.Progress, error) {
	var progress outcome.Progress
	err := q.bring(ctx, p, &progress)
	return progress.Until(err)
}

func (q *Step) bring(ctx context.Context, p *plan.Plan, progress *outcome.Progress) error {
	if !p.Queue.Present {
		return q.remove(ctx, p, progress)
	}
	var live liveRule // is read meanwhile, and written only after the queue
	var reading sync.WaitGroup
	reading.Go(func() { live = q.describe(ctx, p) })
	url, err := q.create(ctx, p, progress)
	if err == nil {
		err = q.attributes(ctx, p, url, progress)
	}
	if reading.Wait(); live.err != nil {
		return live.err
	}
	if gone(err) {
		return outcome.NotYet(creationLag, "SQS does not know queue %s everywhere: it is new, or has just been deleted", p.Queue.Name)
	}
	if err != nil {
		return err
	}
	if err := q.rule(ctx, p, live, progress); err != nil {
		return err
	}
	progress.Outputs = map[string]string{
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

// tags returns a queue's tags. ours reports whether both ownership tags, of this rack and of this cluster, are among
// them.
func (q *Step) tags(ctx context.Context, p *plan.Plan, url string) (tags map[string]string, ours bool, err error) {
	out, err := q.SQS.ListQueueTags(ctx, &sqs.ListQueueTagsInput{QueueUrl: &url})
	if err != nil {
		return nil, false, fmt.Errorf("queue %s: read tags: %w", p.Queue.Name, err)
	}
	return out.Tags, ownership.Owned(out.Tags, p.Rack, p.Cluster.ARN), nil
}

// create returns the URL of the rack's queue, and creates the queue if there is none. It does not adopt a queue that
// Sawhorse has just deleted, although calls may still find that.
func (q *Step) create(ctx context.Context, p *plan.Plan, progress *outcome.Progress) (string, error) {
	url, err := q.find(ctx, p.Queue.Name)
	if err != nil {
		return "", err
	}
	if url != "" {
		ending, err := q.ending(ctx, p, url)
		if err != nil {
			return "", err
		}
		if ending {
			return "", outcome.NotYet(reuse, "SQS still finds the queue that was deleted less than 60 s ago")
		}
		return url, q.tag(ctx, p, url, progress)
	}
	_, err = q.SQS.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &p.Queue.Name, Attributes: attributes(p), Tags: p.Queue.Tags})
	if errors.As(err, new(*types.QueueDeletedRecently)) {
		return "", outcome.NotYet(reuse, "SQS holds the name of the queue that was deleted less than 60 s ago")
	}
	if err != nil {
		return "", fmt.Errorf("queue %s: create: %w", p.Queue.Name, err)
	}
	progress.Changed("created", "queue %s", p.Queue.Name)
	return "", outcome.NotYet(creationLag, "queue %s is new, and does not exist for every call yet", p.Queue.Name)
}

// ending reports whether a queue that calls still find is one that Sawhorse deleted less than a minute ago, and not one
// created since.
func (q *Step) ending(ctx context.Context, p *plan.Plan, url string) (bool, error) {
	at, err := q.Deletions.Deletion(ctx, p.Rack, resource)
	if err != nil || q.Now().Sub(at) >= deletionLag {
		return false, err
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
	return made < at.Unix(), nil
}

// tag adds missing tags to an existing queue, and rejects a queue that is not ours.
func (q *Step) tag(ctx context.Context, p *plan.Plan, url string, progress *outcome.Progress) error {
	live, ours, err := q.tags(ctx, p, url)
	if err != nil {
		return err
	}
	if !ours {
		return outcome.Reject("rack", "SQS queue %s exists and was not made by Sawhorse for this rack and cluster; delete it, or "+
			"use another rack name", p.Queue.Name)
	}
	lacking := ownership.LackingTags(live, p.Queue.Tags)
	if len(lacking) == 0 {
		return nil
	}
	if _, err := q.SQS.TagQueue(ctx, &sqs.TagQueueInput{QueueUrl: &url, Tags: lacking}); err != nil {
		return fmt.Errorf("queue %s: tag: %w", p.Queue.Name, err)
	}
	progress.Changed("tagged", "queue %s", p.Queue.Name)
	return nil
}

// attributes returns the queue's attributes with its policy, which is one of them for SQS.
func attributes(p *plan.Plan) map[string]string {
	all := maps.Clone(p.Queue.Attributes)
	all[string(types.QueueAttributeNamePolicy)] = p.Queue.Policy.JSON()
	return all
}

// attributes repairs attributes that differ from the wanted ones and leaves all others alone.
func (q *Step) attributes(ctx context.Context, p *plan.Plan, url string, progress *outcome.Progress) error {
	live, err := q.SQS.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &url,
		AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll}})
	if err != nil {
		return fmt.Errorf("queue %s: read attributes: %w", p.Queue.Name, err)
	}
	differ := map[string]string{}
	for name, value := range attributes(p) {
		if have := live.Attributes[name]; have != value && !(name == string(types.QueueAttributeNamePolicy) && outcome.SamePolicy(have, value)) {
			differ[name] = value
		}
	}
	if len(differ) == 0 {
		return nil
	}
	if _, err := q.SQS.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{QueueUrl: &url, Attributes: differ}); err != nil {
		return fmt.Errorf("queue %s: set attributes: %w", p.Queue.Name, err)
	}
	progress.Changed("repaired", "queue %s", p.Queue.Name)
	return nil
}

func sameJSON(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}

func (q *Step) remove(ctx context.Context, p *plan.Plan, progress *outcome.Progress) error {
	if err := q.removeRule(ctx, p, progress); err != nil {
		return err
	}
	url, err := q.find(ctx, p.Queue.Name)
	if err != nil {
		return err
	}
	if url != "" {
		if err := q.delete(ctx, p, url, progress); err != nil && !gone(err) {
			return err
		}
	}
	progress.Outputs = map[string]string{"interruption_queue_url": "", "interruption_queue_arn": "", "interruption_rule": ""}
	return nil
}

// delete deletes the queue if it is ours. It records the deletion first, because the step must know of it before it
// creates the next queue. A queue that is on record and still found is deleted again: the record says only that a
// deletion was planned.
func (q *Step) delete(ctx context.Context, p *plan.Plan, url string, progress *outcome.Progress) error {
	_, ours, err := q.tags(ctx, p, url)
	if err != nil || !ours {
		return err
	}
	if err := q.Deletions.NoteDeletion(ctx, p.Rack, resource, q.Now()); err != nil {
		return err
	}
	if _, err := q.SQS.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: &url}); err != nil {
		return fmt.Errorf("queue %s: delete: %w", p.Queue.Name, err)
	}
	progress.Changed("deleted", "queue %s", p.Queue.Name)
	return nil
}
