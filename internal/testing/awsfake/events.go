package awsfake

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
)

// Rule is an EventBridge rule.
type Rule struct {
	Pattern string
	State   types.RuleState
	Tags    []types.Tag
	Targets []types.Target
}

// Events fakes EventBridge. It holds rules by name, and the events that were put.
type Events struct {
	*Calls
	Rules map[string]*Rule
	Sent  []types.PutEventsRequestEntry
	// Full reports whether the bus has as many rules as its quota allows.
	Full bool
	// Refuse is the message and RefuseCode the code with which every target and event is refused. If both are empty, none is.
	Refuse, RefuseCode string
	// Lingering is how many deletions are refused because of a target that has been removed.
	Lingering int

	past past[Rule]
}

func newEvents(calls *Calls) *Events {
	return &Events{Calls: calls, Rules: map[string]*Rule{}, past: past[Rule]{}}
}

// RuleARN returns the ARN of a rule.
func RuleARN(name string) string { return "arn:aws:events:" + Region + ":" + Account + ":rule/" + name }

// rule returns the rule with a name or an ARN.
func (e *Events) rule(call, id string) (*Rule, error) {
	if err := e.call("Events."+call, id); err != nil {
		return nil, err
	}
	name := strings.TrimPrefix(id, RuleARN(""))
	rule := e.Rules[name]
	if reads("." + call) {
		rule = e.past.shown(e.Calls, name, rule)
	} else {
		e.past.wrote(e.Calls, name, rule.copied())
	}
	if rule != nil {
		return rule, nil
	}
	return nil, &types.ResourceNotFoundException{}
}

func (e *Events) DescribeRule(_ context.Context, in *eventbridge.DescribeRuleInput,
	_ ...func(*eventbridge.Options)) (*eventbridge.DescribeRuleOutput, error) {
	rule, err := e.rule("DescribeRule", *in.Name)
	if err != nil {
		return nil, err
	}
	return &eventbridge.DescribeRuleOutput{
		Name: in.Name, Arn: new(RuleARN(*in.Name)), EventPattern: new(rule.Pattern), State: rule.State,
	}, nil
}

// PutRule ignores the tags of an existing rule, as EventBridge does.
func (e *Events) PutRule(_ context.Context, in *eventbridge.PutRuleInput,
	_ ...func(*eventbridge.Options)) (*eventbridge.PutRuleOutput, error) {
	rule, err := e.rule("PutRule", *in.Name)
	if _, missing := err.(*types.ResourceNotFoundException); err != nil && !missing {
		return nil, err
	}
	if rule == nil && e.Full {
		return nil, &types.LimitExceededException{Message: new("The requested resource exceeds the maximum number allowed.")}
	}
	if rule == nil {
		rule = &Rule{Tags: in.Tags}
		e.Rules[*in.Name] = rule
	}
	rule.Pattern, rule.State = *in.EventPattern, in.State
	return &eventbridge.PutRuleOutput{RuleArn: new(RuleARN(*in.Name))}, nil
}

func (e *Events) DeleteRule(_ context.Context, in *eventbridge.DeleteRuleInput,
	_ ...func(*eventbridge.Options)) (*eventbridge.DeleteRuleOutput, error) {
	rule, err := e.rule("DeleteRule", *in.Name)
	if _, missing := err.(*types.ResourceNotFoundException); err != nil && !missing {
		return nil, err
	}
	if rule != nil && (len(rule.Targets) > 0 || e.Lingering > 0) {
		e.Lingering = max(0, e.Lingering-1)
		return nil, refuse("ValidationException", "Rule can't be deleted since it has targets.")
	}
	delete(e.Rules, *in.Name)
	return &eventbridge.DeleteRuleOutput{}, nil
}

func (e *Events) ListTagsForResource(_ context.Context, in *eventbridge.ListTagsForResourceInput,
	_ ...func(*eventbridge.Options)) (*eventbridge.ListTagsForResourceOutput, error) {
	rule, err := e.rule("ListTagsForResource", *in.ResourceARN)
	if err != nil {
		return nil, err
	}
	return &eventbridge.ListTagsForResourceOutput{Tags: rule.Tags}, nil
}

func (e *Events) TagResource(_ context.Context, in *eventbridge.TagResourceInput,
	_ ...func(*eventbridge.Options)) (*eventbridge.TagResourceOutput, error) {
	rule, err := e.rule("TagResource", *in.ResourceARN)
	if err != nil {
		return nil, err
	}
	rule.Tags = put(rule.Tags, in.Tags, func(t types.Tag) string { return *t.Key })
	return &eventbridge.TagResourceOutput{}, nil
}

func (e *Events) ListTargetsByRule(_ context.Context, in *eventbridge.ListTargetsByRuleInput,
	_ ...func(*eventbridge.Options)) (*eventbridge.ListTargetsByRuleOutput, error) {
	rule, err := e.rule("ListTargetsByRule", *in.Rule)
	if err != nil {
		return nil, err
	}
	return &eventbridge.ListTargetsByRuleOutput{Targets: slices.Clone(rule.Targets)}, nil
}

func (e *Events) PutTargets(_ context.Context, in *eventbridge.PutTargetsInput,
	_ ...func(*eventbridge.Options)) (*eventbridge.PutTargetsOutput, error) {
	rule, err := e.rule("PutTargets", *in.Rule)
	if err != nil {
		return nil, err
	}
	if e.Refuse+e.RefuseCode != "" {
		return &eventbridge.PutTargetsOutput{
			FailedEntryCount: 1, FailedEntries: []types.PutTargetsResultEntry{{ErrorCode: &e.RefuseCode, ErrorMessage: &e.Refuse}},
		}, nil
	}
	rule.Targets = put(rule.Targets, in.Targets, func(t types.Target) string { return *t.Id })
	return &eventbridge.PutTargetsOutput{}, nil
}

func (e *Events) RemoveTargets(_ context.Context, in *eventbridge.RemoveTargetsInput,
	_ ...func(*eventbridge.Options)) (*eventbridge.RemoveTargetsOutput, error) {
	rule, err := e.rule("RemoveTargets", *in.Rule)
	if err != nil {
		return nil, err
	}
	if e.Refuse != "" {
		return &eventbridge.RemoveTargetsOutput{
			FailedEntryCount: 1, FailedEntries: []types.RemoveTargetsResultEntry{{ErrorCode: &e.RefuseCode, ErrorMessage: &e.Refuse}},
		}, nil
	}
	rule.Targets = slices.DeleteFunc(rule.Targets, func(t types.Target) bool { return slices.Contains(in.Ids, *t.Id) })
	return &eventbridge.RemoveTargetsOutput{}, nil
}

func (e *Events) PutEvents(_ context.Context, in *eventbridge.PutEventsInput,
	_ ...func(*eventbridge.Options)) (*eventbridge.PutEventsOutput, error) {
	if err := e.call("Events.PutEvents", value(in.Entries[0].DetailType)); err != nil {
		return nil, err
	}
	if e.Refuse+e.RefuseCode != "" {
		return &eventbridge.PutEventsOutput{
			FailedEntryCount: 1, Entries: []types.PutEventsResultEntry{{ErrorCode: &e.RefuseCode, ErrorMessage: &e.Refuse}},
		}, nil
	}
	e.Sent = append(e.Sent, in.Entries...)
	return &eventbridge.PutEventsOutput{Entries: []types.PutEventsResultEntry{{EventId: new(fmt.Sprint("event-", len(e.Sent)))}}}, nil
}
