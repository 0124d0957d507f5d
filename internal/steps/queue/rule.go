package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"github.com/sawhorse-io/sawhorse/internal/names"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/steps"
)

// pattern matches the five kinds of events that Karpenter 1.10 reads from its queue. One rule matches all of them,
// because an event bus has a quota of 300 rules.
var pattern = func() string {
	encoded, err := json.Marshal(map[string]any{
		"source": []string{"aws.health", "aws.ec2"},
		"detail-type": []string{
			"AWS Health Event",
			"EC2 Spot Instance Interruption Warning",
			"EC2 Instance Rebalance Recommendation",
			"EC2 Instance State-change Notification",
			"EC2 Capacity Reservation Instance Interruption Warning",
		},
	})
	if err != nil {
		panic("queue: pattern: " + err.Error()) // plain data can always be encoded
	}
	return string(encoded)
}()

// rule creates or repairs the rule and its one target, and enables the rule.
func (q *Queue) rule(ctx context.Context, p *plan.Plan, progress *steps.Progress) error {
	live, tags, err := q.describe(ctx, p)
	if err != nil {
		return err
	}
	if live != nil && !marked(p, tags) {
		return steps.Reject("rack", "EventBridge rule %s exists and was not made by Sawhorse for this rack and cluster; delete it, or use another rack name", p.Queue.Rule)
	}
	if live == nil || live.State != types.RuleStateEnabled || live.EventPattern == nil || !sameJSON(*live.EventPattern, pattern) {
		input := &eventbridge.PutRuleInput{
			Name: &p.Queue.Rule, EventPattern: new(pattern), State: types.RuleStateEnabled,
			Description: new("Interruptions of EC2 instances, for Karpenter of rack " + p.Rack),
		}
		action := "repaired"
		if live == nil {
			input.Tags, action = ruleTags(p.Queue.Tags), "created" // PutRule accepts tags only for a new rule
		}
		if _, err := q.Rules.PutRule(ctx, input); err != nil {
			return fmt.Errorf("rule %s: put: %w", p.Queue.Rule, quota(err))
		}
		progress.Changed(action, "rule %s", p.Queue.Rule)
	}
	if live != nil {
		if err := q.tagRule(ctx, p, live.Arn, tags, progress); err != nil {
			return err
		}
	}
	return q.target(ctx, p, progress)
}

// quota adds to the error what to do if the event bus has no rule left. EventBridge's own text names neither the quota
// nor how to raise it.
func quota(err error) error {
	if !errors.As(err, new(*types.LimitExceededException)) {
		return err
	}
	return fmt.Errorf("the default event bus has as many rules as its quota allows (300 in most regions, 100 in some); delete rules that nothing uses, or raise the quota with "+
		"`aws service-quotas request-service-quota-increase --service-code events --quota-code L-244521F2 --desired-value NUMBER`: %w", err)
}

// tagRule adds missing tags to a rule of ours.
func (q *Queue) tagRule(ctx context.Context, p *plan.Plan, arn *string, live map[string]string, progress *steps.Progress) error {
	lacking := steps.LackingTags(live, p.Queue.Tags)
	if lacking == nil {
		return nil
	}
	if _, err := q.Rules.TagResource(ctx, &eventbridge.TagResourceInput{ResourceARN: arn, Tags: ruleTags(lacking)}); err != nil {
		return fmt.Errorf("rule %s: tag: %w", p.Queue.Rule, err)
	}
	progress.Changed("tagged", "rule %s", p.Queue.Rule)
	return nil
}

func (q *Queue) target(ctx context.Context, p *plan.Plan, progress *steps.Progress) error {
	out, err := q.Rules.ListTargetsByRule(ctx, &eventbridge.ListTargetsByRuleInput{Rule: &p.Queue.Rule})
	if err != nil {
		return fmt.Errorf("rule %s: list targets: %w", p.Queue.Rule, err)
	}
	for _, t := range out.Targets {
		if *t.Id == names.RuleTarget && *t.Arn == queueARN(p) {
			return nil
		}
	}
	put, err := q.Rules.PutTargets(ctx, &eventbridge.PutTargetsInput{
		Rule: &p.Queue.Rule, Targets: []types.Target{{Id: new(names.RuleTarget), Arn: new(queueARN(p))}},
	})
	if err == nil && put.FailedEntryCount > 0 {
		err = fmt.Errorf("EventBridge refused it: %s", *put.FailedEntries[0].ErrorMessage)
	}
	if err != nil {
		return fmt.Errorf("rule %s: put target: %w", p.Queue.Rule, err)
	}
	progress.Changed("put", "target of rule %s", p.Queue.Rule)
	return nil
}

// describe returns the rule and its tags; nil if there is no such rule.
func (q *Queue) describe(ctx context.Context, p *plan.Plan) (*eventbridge.DescribeRuleOutput, map[string]string, error) {
	var missing *types.ResourceNotFoundException
	live, err := q.Rules.DescribeRule(ctx, &eventbridge.DescribeRuleInput{Name: &p.Queue.Rule})
	if errors.As(err, &missing) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("rule %s: describe: %w", p.Queue.Rule, err)
	}
	out, err := q.Rules.ListTagsForResource(ctx, &eventbridge.ListTagsForResourceInput{ResourceARN: live.Arn})
	if err != nil {
		return nil, nil, fmt.Errorf("rule %s: read tags: %w", p.Queue.Rule, err)
	}
	tags := map[string]string{}
	for _, t := range out.Tags {
		tags[*t.Key] = *t.Value
	}
	return live, tags, nil
}

func (q *Queue) removeRule(ctx context.Context, p *plan.Plan, progress *steps.Progress) error {
	live, tags, err := q.describe(ctx, p)
	if err != nil || live == nil || !marked(p, tags) {
		return err
	}
	out, err := q.Rules.ListTargetsByRule(ctx, &eventbridge.ListTargetsByRuleInput{Rule: &p.Queue.Rule})
	if err != nil {
		return fmt.Errorf("rule %s: list targets: %w", p.Queue.Rule, err)
	}
	if len(out.Targets) > 0 {
		var ids []string
		for _, t := range out.Targets {
			ids = append(ids, *t.Id)
		}
		if _, err := q.Rules.RemoveTargets(ctx, &eventbridge.RemoveTargetsInput{Rule: &p.Queue.Rule, Ids: ids}); err != nil {
			return fmt.Errorf("rule %s: remove targets: %w", p.Queue.Rule, err)
		}
	}
	if _, err := q.Rules.DeleteRule(ctx, &eventbridge.DeleteRuleInput{Name: &p.Queue.Rule}); err != nil {
		return fmt.Errorf("rule %s: delete: %w", p.Queue.Rule, err)
	}
	progress.Changed("deleted", "rule %s", p.Queue.Rule)
	return nil
}

func ruleTags(tags map[string]string) []types.Tag {
	var all []types.Tag
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		all = append(all, types.Tag{Key: new(key), Value: new(tags[key])})
	}
	return all
}
