package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// liveRule is the rule as EventBridge has it, with its tags and targets. It is nil if there is no such rule.
type liveRule struct {
	*eventbridge.DescribeRuleOutput
	tags    map[string]string
	targets []types.Target
	err     error
}

// rule creates or repairs the rule and its one target, and enables the rule.
func (q *Step) rule(ctx context.Context, p *plan.Plan, live liveRule, progress *outcome.Progress) error {
	none := live.DescribeRuleOutput == nil
	if !none && !ownership.Owned(live.tags, p.Rack, p.Cluster.ARN) {
		return outcome.Reject("rack", "EventBridge rule %s exists and was not made by Sawhorse for this rack and cluster; "+
			"delete it, or use another rack name", p.Queue.Rule.Name)
	}
	if none || live.State != types.RuleStateEnabled || live.EventPattern == nil ||
		!sameJSON(*live.EventPattern, p.Queue.Rule.Pattern.JSON()) {
		input := &eventbridge.PutRuleInput{
			Name: &p.Queue.Rule.Name, EventPattern: new(p.Queue.Rule.Pattern.JSON()), State: types.RuleStateEnabled,
			Description: &p.Queue.Rule.Description,
		}
		action := "repaired"
		if none {
			input.Tags, action = ruleTags(p.Queue.Tags), "created" // PutRule accepts tags only for a new rule
		}
		if _, err := q.Rules.PutRule(ctx, input); err != nil {
			return fmt.Errorf("rule %s: put: %w", p.Queue.Rule.Name, quota(err))
		}
		progress.Changed(action, "rule %s", p.Queue.Rule.Name)
	}
	if !none {
		if err := q.tagRule(ctx, p, live.Arn, live.tags, progress); err != nil {
			return err
		}
	}
	return q.target(ctx, p, live.targets, progress)
}

// quota adds to the error what to do if the event bus has no rule left. EventBridge's own text names neither the quota
// nor how to raise it.
func quota(err error) error {
	if !errors.As(err, new(*types.LimitExceededException)) {
		return err
	}
	return fmt.Errorf("the default event bus has as many rules as its quota allows (300 in most regions, 100 in some); delete "+
		"rules that nothing uses, or raise the quota with `aws service-quotas request-service-quota-increase --service-code events "+
		"--quota-code L-244521F2 --desired-value NUMBER`: %w", err)
}

// tagRule adds missing tags to a rule of ours.
func (q *Step) tagRule(ctx context.Context, p *plan.Plan, arn *string, live map[string]string, progress *outcome.Progress) error {
	lacking := ownership.LackingTags(live, p.Queue.Tags)
	if len(lacking) == 0 {
		return nil
	}
	if _, err := q.Rules.TagResource(ctx, &eventbridge.TagResourceInput{ResourceARN: arn, Tags: ruleTags(lacking)}); err != nil {
		return fmt.Errorf("rule %s: tag: %w", p.Queue.Rule.Name, err)
	}
	progress.Changed("tagged", "rule %s", p.Queue.Rule.Name)
	return nil
}

func (q *Step) target(ctx context.Context, p *plan.Plan, live []types.Target, progress *outcome.Progress) error {
	for _, t := range live {
		if *t.Id == p.Queue.Rule.Target && *t.Arn == p.Queue.ARN {
			return nil
		}
	}
	put, err := q.Rules.PutTargets(ctx, &eventbridge.PutTargetsInput{
		Rule: &p.Queue.Rule.Name, Targets: []types.Target{{Id: &p.Queue.Rule.Target, Arn: &p.Queue.ARN}},
	})
	if err == nil && put.FailedEntryCount > 0 {
		refused := put.FailedEntries[0]
		err = fmt.Errorf("EventBridge refused it: %s", cmp.Or(aws.ToString(refused.ErrorMessage), aws.ToString(refused.ErrorCode)))
	}
	if err != nil {
		return fmt.Errorf("rule %s: put target: %w", p.Queue.Rule.Name, err)
	}
	progress.Changed("put", "target of rule %s", p.Queue.Rule.Name)
	return nil
}

// describe reads the rule with its tags and targets.
func (q *Step) describe(ctx context.Context, p *plan.Plan) liveRule {
	live, err := q.Rules.DescribeRule(ctx, &eventbridge.DescribeRuleInput{Name: &p.Queue.Rule.Name})
	if errors.As(err, new(*types.ResourceNotFoundException)) {
		return liveRule{}
	}
	if err != nil {
		return liveRule{err: fmt.Errorf("rule %s: describe: %w", p.Queue.Rule.Name, err)}
	}
	out, err := q.Rules.ListTagsForResource(ctx, &eventbridge.ListTagsForResourceInput{ResourceARN: live.Arn})
	if err != nil {
		return liveRule{err: fmt.Errorf("rule %s: read tags: %w", p.Queue.Rule.Name, err)}
	}
	tags := map[string]string{}
	for _, t := range out.Tags {
		tags[*t.Key] = *t.Value
	}
	targets, err := q.Rules.ListTargetsByRule(ctx, &eventbridge.ListTargetsByRuleInput{Rule: &p.Queue.Rule.Name})
	if err != nil {
		return liveRule{err: fmt.Errorf("rule %s: list targets: %w", p.Queue.Rule.Name, err)}
	}
	return liveRule{live, tags, targets.Targets, nil}
}

func (q *Step) removeRule(ctx context.Context, p *plan.Plan, progress *outcome.Progress) error {
	live := q.describe(ctx, p)
	if live.err != nil || live.DescribeRuleOutput == nil || !ownership.Owned(live.tags, p.Rack, p.Cluster.ARN) {
		return live.err
	}
	if len(live.targets) > 0 {
		var ids []string
		for _, t := range live.targets {
			ids = append(ids, *t.Id)
		}
		if _, err := q.Rules.RemoveTargets(ctx, &eventbridge.RemoveTargetsInput{Rule: &p.Queue.Rule.Name, Ids: ids}); err != nil {
			return fmt.Errorf("rule %s: remove targets: %w", p.Queue.Rule.Name, err)
		}
	}
	if _, err := q.Rules.DeleteRule(ctx, &eventbridge.DeleteRuleInput{Name: &p.Queue.Rule.Name}); err != nil {
		return fmt.Errorf("rule %s: delete: %w", p.Queue.Rule.Name, err)
	}
	progress.Changed("deleted", "rule %s", p.Queue.Rule.Name)
	return nil
}

func ruleTags(tags map[string]string) []types.Tag {
	var all []types.Tag
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		all = append(all, types.Tag{Key: new(key), Value: new(tags[key])})
	}
	return all
}
