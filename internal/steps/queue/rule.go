package queue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/resource"
)

// liveRule is the rule as EventBridge has it, with its tags and targets. All is empty if there is no such rule.
type liveRule struct {
	eventbridge.DescribeRuleOutput
	found   resource.Live
	tags    map[string]string
	targets []types.Target
	err     error
}

// ruleOf names the rule in the record of what was written, and in reports.
func ruleOf(p *plan.Plan) string { return "rule " + p.Queue.Rule.Name }

// rule creates or repairs the rule and its one target, and enables the rule.
func (q *Step) rule(ctx context.Context, p *plan.Plan, live liveRule, w *resource.Writer) error {
	arn, pattern := live.Arn, p.Queue.Rule.Pattern.JSON()
	put := func(tags []types.Tag) func(context.Context) error {
		return func(ctx context.Context) error {
			out, err := q.Rules.PutRule(ctx, &eventbridge.PutRuleInput{
				Name: &p.Queue.Rule.Name, EventPattern: &pattern, State: types.RuleStateEnabled, Description: &p.Queue.Rule.Description, Tags: tags,
			})
			if err != nil {
				return resource.Wrap(quota(err), "rule %s: put", p.Queue.Rule.Name)
			}
			arn = out.RuleArn
			return nil
		}
	}
	same := live.State == types.RuleStateEnabled && sameJSON(aws.ToString(live.EventPattern), pattern)
	tags := resource.Tags(live.tags, p.Queue.Tags, func(ctx context.Context) error {
		_, err := q.Rules.TagResource(ctx, &eventbridge.TagResourceInput{ResourceARN: arn, Tags: ruleTags(p.Queue.Tags)})
		return resource.Wrap(err, "rule %s: tag", p.Queue.Rule.Name)
	})
	perhaps := !live.found.Found && w.Created(live.found.Name) // AWS does not show it yet, or somebody has deleted it
	hash := resource.Hash(pattern)
	err := w.Ensure(ctx, live.found, resource.Wanted{
		Unowned: outcome.Reject("rack", "EventBridge rule %s exists and was not made by Sawhorse for this rack and cluster; "+
			"delete it, or use another rack name", p.Queue.Rule.Name),
		Create: put(ruleTags(p.Queue.Tags)),
		Parts: []resource.Write{{
			Read: resource.Read(same, hash), Value: hash, Change: outcome.Change{Action: "repaired"}, Do: put(nil),
		}, tags},
	})
	if err == nil && perhaps { // PutRule ignores the tags of an existing rule
		there := resource.Live{Name: live.found.Name, Found: true, Owned: true}
		err = w.Ensure(ctx, there, resource.Wanted{Parts: []resource.Write{tags}})
	}
	if err != nil {
		return err
	}
	return q.target(ctx, p, live.targets, w)
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

// targetsOf is the path of the rule's targets, by their ids.
func targetsOf(p *plan.Plan) string { return ruleOf(p) + "/targets/" }

func (q *Step) target(ctx context.Context, p *plan.Plan, live []types.Target, w *resource.Writer) error {
	read := ""
	for _, t := range live {
		if *t.Id == p.Queue.Rule.Target {
			read = *t.Arn
			if t.Input != nil || t.InputPath != nil || t.InputTransformer != nil { // Karpenter reads the event as it was sent
				read += ", with another input"
			}
		}
	}
	return w.Write(ctx, resource.Write{
		Aspect: targetsOf(p) + p.Queue.Rule.Target, Read: read, Value: p.Queue.ARN,
		Change: outcome.Change{Subject: "target of rule " + p.Queue.Rule.Name, Action: "put"},
		Do:     func(ctx context.Context) error { return q.putTarget(ctx, p) },
	})
}

func (q *Step) putTarget(ctx context.Context, p *plan.Plan) error {
	put, err := q.Rules.PutTargets(ctx, &eventbridge.PutTargetsInput{
		Rule: &p.Queue.Rule.Name, Targets: []types.Target{{Id: &p.Queue.Rule.Target, Arn: &p.Queue.ARN}},
	})
	if err == nil && put.FailedEntryCount > 0 {
		err = outcome.EntryRefused(put.FailedEntries[0].ErrorCode, put.FailedEntries[0].ErrorMessage)
	}
	return resource.Wrap(err, "rule %s: put target", p.Queue.Rule.Name)
}

// missing reports whether EventBridge does not know the rule.
func missing(err error) bool { return errors.As(err, new(*types.ResourceNotFoundException)) }

// describe reads the rule with its tags and targets.
func (q *Step) describe(ctx context.Context, p *plan.Plan) liveRule {
	none := liveRule{found: resource.Live{Name: ruleOf(p)}}
	failed := func(err error, what string) liveRule {
		if !missing(err) { // it is missing if it was deleted since, or moments ago
			none.err = fmt.Errorf("rule %s: %s: %w", p.Queue.Rule.Name, what, err)
		}
		return none
	}
	live, err := q.Rules.DescribeRule(ctx, &eventbridge.DescribeRuleInput{Name: &p.Queue.Rule.Name})
	if err != nil {
		return failed(err, "describe")
	}
	out, err := q.Rules.ListTagsForResource(ctx, &eventbridge.ListTagsForResourceInput{ResourceARN: live.Arn})
	if err != nil {
		return failed(err, "read tags")
	}
	tags := map[string]string{}
	for _, t := range out.Tags {
		tags[*t.Key] = *t.Value
	}
	targets, err := q.Rules.ListTargetsByRule(ctx, &eventbridge.ListTargetsByRuleInput{Rule: &p.Queue.Rule.Name})
	if err != nil {
		return failed(err, "list targets")
	}
	found := resource.Live{Name: ruleOf(p), Found: true, Owned: ownership.Owned(tags, p.Rack, p.Cluster.ARN)}
	return liveRule{*live, found, tags, targets.Targets, nil}
}

func (q *Step) removeRule(ctx context.Context, p *plan.Plan, w *resource.Writer) error {
	live := q.describe(ctx, p)
	if live.err != nil {
		return live.err
	}
	return w.Delete(ctx, live.found, resource.Removal{
		Wait:  creationLag,
		First: func(ctx context.Context) error { return q.removeTargets(ctx, p, live.targets, w) },
		Do: func(ctx context.Context) error {
			_, err := q.Rules.DeleteRule(ctx, &eventbridge.DeleteRuleInput{Name: &p.Queue.Rule.Name})
			if outcome.Code(err) == "ValidationException" && strings.Contains(err.Error(), "has targets") {
				return outcome.Wait(creationLag, "EventBridge still shows targets of rule %s", p.Queue.Rule.Name)
			}
			return resource.Wrap(resource.Ignore(err, missing), "rule %s: delete", p.Queue.Rule.Name)
		},
	})
}

func (q *Step) removeTargets(ctx context.Context, p *plan.Plan, live []types.Target, w *resource.Writer) error {
	ids := w.Unseen(targetsOf(p))
	for _, t := range live {
		ids = append(ids, *t.Id)
	}
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		err := w.Write(ctx, resource.Write{
			Aspect: targetsOf(p) + id, Read: resource.There,
			Do: func(ctx context.Context) error {
				removed, err := q.Rules.RemoveTargets(ctx, &eventbridge.RemoveTargetsInput{Rule: &p.Queue.Rule.Name, Ids: []string{id}})
				if err == nil && removed.FailedEntryCount > 0 {
					err = outcome.EntryRefused(removed.FailedEntries[0].ErrorCode, removed.FailedEntries[0].ErrorMessage)
				}
				return resource.Wrap(resource.Ignore(err, missing), "rule %s: remove targets", p.Queue.Rule.Name)
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
