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
	"github.com/sawhorse-io/sawhorse/internal/resource"
)

// liveRule is the rule as EventBridge has it, with its tags and targets. It is nil if there is no such rule.
type liveRule struct {
	*eventbridge.DescribeRuleOutput
	tags    map[string]string
	targets []types.Target
	err     error
}

// rule creates or repairs the rule and its one target, and enables the rule.
func (q *Step) rule(ctx context.Context, p *plan.Plan, live liveRule, w *resource.Writer) error {
	none := live.DescribeRuleOutput == nil || w.Deleted(aspectRule)
	perhaps := none && w.Created(aspectRule) // AWS does not show it yet, or somebody has deleted it
	if !none && !ownership.Owned(live.tags, p.Rack, p.Cluster.ARN) {
		return outcome.Reject("rack", "EventBridge rule %s exists and was not made by Sawhorse for this rack and cluster; "+
			"delete it, or use another rack name", p.Queue.Rule.Name)
	}
	arn, err := q.putRule(ctx, p, live, none, w)
	if err == nil && perhaps {
		err = q.tagRule(ctx, p, arn, nil, w)
	}
	if err == nil && !none {
		err = q.tagRule(ctx, p, live.Arn, live.tags, w)
	}
	if err != nil {
		return err
	}
	return q.target(ctx, p, live.targets, w)
}

// putRule puts the rule if there is none, or if its pattern or its state differs. It returns the ARN of a rule that it has put.
func (q *Step) putRule(ctx context.Context, p *plan.Plan, live liveRule, none bool, w *resource.Writer) (arn *string, err error) {
	pattern := p.Queue.Rule.Pattern.JSON()
	same := !none && live.State == types.RuleStateEnabled && live.EventPattern != nil && sameJSON(*live.EventPattern, pattern)
	input := &eventbridge.PutRuleInput{
		Name: &p.Queue.Rule.Name, EventPattern: &pattern, State: types.RuleStateEnabled, Description: &p.Queue.Rule.Description,
	}
	action, parts := "repaired", map[string]string{}
	if none { // PutRule ignores the tags of an existing rule
		input.Tags, action, parts["/tags"] = ruleTags(p.Queue.Tags), "created", resource.Hash(p.Queue.Tags)
	}
	hash := resource.Hash(pattern)
	err = w.Write(ctx, resource.Write{
		Aspect: aspectRule, Read: resource.Read(same, hash), Value: hash, Parts: parts,
		Change: outcome.Change{Subject: "rule " + p.Queue.Rule.Name, Action: action},
		Do: func(ctx context.Context) error {
			out, err := q.Rules.PutRule(ctx, input)
			if err != nil {
				return wrap(quota(err), "rule %s: put", p.Queue.Rule.Name)
			}
			arn = out.RuleArn
			return nil
		},
	})
	return arn, err
}

// quota adds to the error what to do if the event bus has no rule left. EventBridge's own text names neither the quota
// nor how to raise it.
func quota(err error) error {
	if !errors.As(err, new(*types.LimitExceededException)) {
		return err
	}
	return resource.NotMade(fmt.Errorf("the default event bus has as many rules as its quota allows (300 in most regions, 100 in "+
		"some); delete rules that nothing uses, or raise the quota with `aws service-quotas request-service-quota-increase "+
		"--service-code events --quota-code L-244521F2 --desired-value NUMBER`: %w", err))
}

// tagRule sets the tags of a rule of ours, if some are missing.
func (q *Step) tagRule(ctx context.Context, p *plan.Plan, arn *string, live map[string]string, w *resource.Writer) error {
	wanted := resource.Hash(p.Queue.Tags)
	return w.Write(ctx, resource.Write{
		Aspect: aspectRule + "/tags", Value: wanted,
		Read:   resource.Read(len(ownership.LackingTags(live, p.Queue.Tags)) == 0, wanted),
		Change: outcome.Change{Subject: "rule " + p.Queue.Rule.Name, Action: "tagged"},
		Do: func(ctx context.Context) error {
			_, err := q.Rules.TagResource(ctx, &eventbridge.TagResourceInput{ResourceARN: arn, Tags: ruleTags(p.Queue.Tags)})
			return wrap(err, "rule %s: tag", p.Queue.Rule.Name)
		},
	})
}

// aspectTargets is the path of the rule's targets, by their ids.
const aspectTargets = aspectRule + "/targets/"

func (q *Step) target(ctx context.Context, p *plan.Plan, live []types.Target, w *resource.Writer) error {
	read := ""
	for _, t := range live {
		if *t.Id == p.Queue.Rule.Target {
			read = *t.Arn
		}
	}
	return w.Write(ctx, resource.Write{
		Aspect: aspectTargets + p.Queue.Rule.Target, Read: read, Value: p.Queue.ARN,
		Change: outcome.Change{Subject: "target of rule " + p.Queue.Rule.Name, Action: "put"},
		Do:     func(ctx context.Context) error { return q.putTarget(ctx, p) },
	})
}

func (q *Step) putTarget(ctx context.Context, p *plan.Plan) error {
	put, err := q.Rules.PutTargets(ctx, &eventbridge.PutTargetsInput{
		Rule: &p.Queue.Rule.Name, Targets: []types.Target{{Id: &p.Queue.Rule.Target, Arn: &p.Queue.ARN}},
	})
	if err == nil && put.FailedEntryCount > 0 {
		refused := put.FailedEntries[0]
		err = fmt.Errorf("EventBridge refused it: %s", cmp.Or(aws.ToString(refused.ErrorMessage), aws.ToString(refused.ErrorCode)))
	}
	return wrap(err, "rule %s: put target", p.Queue.Rule.Name)
}

// missing reports whether EventBridge does not know the rule.
func missing(err error) bool { return errors.As(err, new(*types.ResourceNotFoundException)) }

// known returns an error, unless it is that EventBridge does not know the rule.
func known(err error) error {
	if missing(err) {
		return nil
	}
	return err
}

// describe reads the rule with its tags and targets.
func (q *Step) describe(ctx context.Context, p *plan.Plan) liveRule {
	live, err := q.Rules.DescribeRule(ctx, &eventbridge.DescribeRuleInput{Name: &p.Queue.Rule.Name})
	if missing(err) {
		return liveRule{}
	}
	if err != nil {
		return liveRule{err: fmt.Errorf("rule %s: describe: %w", p.Queue.Rule.Name, err)}
	}
	out, err := q.Rules.ListTagsForResource(ctx, &eventbridge.ListTagsForResourceInput{ResourceARN: live.Arn})
	if missing(err) { // deleted since, or moments ago
		return liveRule{}
	}
	if err != nil {
		return liveRule{err: fmt.Errorf("rule %s: read tags: %w", p.Queue.Rule.Name, err)}
	}
	tags := map[string]string{}
	for _, t := range out.Tags {
		tags[*t.Key] = *t.Value
	}
	targets, err := q.Rules.ListTargetsByRule(ctx, &eventbridge.ListTargetsByRuleInput{Rule: &p.Queue.Rule.Name})
	if missing(err) {
		return liveRule{}
	}
	if err != nil {
		return liveRule{err: fmt.Errorf("rule %s: list targets: %w", p.Queue.Rule.Name, err)}
	}
	return liveRule{live, tags, targets.Targets, nil}
}

func (q *Step) removeRule(ctx context.Context, p *plan.Plan, w *resource.Writer) error {
	live := q.describe(ctx, p)
	if live.err == nil && live.DescribeRuleOutput == nil && w.Created(aspectRule) {
		return resource.NotShown(creationLag, "rule "+p.Queue.Rule.Name)
	}
	if live.err != nil || w.Deleted(aspectRule) || !ownership.Owned(live.tags, p.Rack, p.Cluster.ARN) {
		return live.err
	}
	reported := w.Changes
	err := q.removeTargets(ctx, p, live.targets, w)
	w.Changes = reported // a removal reports only the rule
	if err != nil {
		return err
	}
	return w.Write(ctx, resource.Write{
		Aspect: aspectRule, Read: there, Change: outcome.Change{Subject: "rule " + p.Queue.Rule.Name, Action: "deleted"},
		Do: func(ctx context.Context) error {
			_, err := q.Rules.DeleteRule(ctx, &eventbridge.DeleteRuleInput{Name: &p.Queue.Rule.Name})
			return wrap(known(err), "rule %s: delete", p.Queue.Rule.Name)
		},
	})
}

func (q *Step) removeTargets(ctx context.Context, p *plan.Plan, live []types.Target, w *resource.Writer) error {
	ids := w.Unseen(aspectTargets)
	for _, t := range live {
		ids = append(ids, *t.Id)
	}
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		err := w.Write(ctx, resource.Write{
			Aspect: aspectTargets + id, Read: there,
			Do: func(ctx context.Context) error {
				_, err := q.Rules.RemoveTargets(ctx, &eventbridge.RemoveTargetsInput{Rule: &p.Queue.Rule.Name, Ids: []string{id}})
				return wrap(known(err), "rule %s: remove targets", p.Queue.Rule.Name)
			},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func ruleTags(tags map[string]string) []types.Tag {
	var all []types.Tag
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		all = append(all, types.Tag{Key: new(key), Value: new(tags[key])})
	}
	return all
}
