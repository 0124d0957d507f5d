package observe

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	eventtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
)

// SQS has the calls of SQS that an observation makes.
type SQS interface {
	GetQueueUrl(context.Context, *sqs.GetQueueUrlInput, ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error)
	ListQueueTags(context.Context, *sqs.ListQueueTagsInput, ...func(*sqs.Options)) (*sqs.ListQueueTagsOutput, error)
}

// Rules has the calls of EventBridge that an observation makes.
type Rules interface {
	ListTagsForResource(context.Context, *eventbridge.ListTagsForResourceInput, ...func(*eventbridge.Options)) (
		*eventbridge.ListTagsForResourceOutput, error)
}

// unmanaged returns the resources that have a name Sawhorse uses but not both ownership tags.
func (o *Observer) unmanaged(ctx context.Context, config params.Config, clusterARN string) ([]string, error) {
	type source struct {
		what string
		tags func(context.Context, string) (map[string]string, error)
		name string
	}
	rack := config.Rack
	sources := []source{
		{"IAM role", o.roleTags, ownership.ControllerRole(rack)},
		{"IAM role", o.roleTags, ownership.NodeRole(rack)},
		{"SQS queue", o.queueTags, ownership.Queue(rack)},
		{"EventBridge rule", func(ctx context.Context, name string) (map[string]string, error) {
			return o.ruleTags(ctx, clusterARN, name)
		}, ownership.Rule(rack)},
	}
	if config.BuildNodes && config.BuildMinimalRole {
		sources = append(sources, source{"IAM role", o.roleTags, ownership.BuildNodeRole(rack)})
	}
	found, reads := make([]string, len(sources)), make([]func(context.Context) error, len(sources))
	for i, source := range sources {
		reads[i] = func(ctx context.Context) error {
			tags, err := source.tags(ctx, source.name)
			if err != nil {
				return fmt.Errorf("%s %s: read tags: %w", source.what, source.name, err)
			}
			if tags != nil && !ownership.Owned(tags, rack, clusterARN) {
				found[i] = source.what + " " + source.name
			}
			return nil
		}
	}
	if err := together(ctx, reads...); err != nil {
		return nil, err
	}
	var all []string
	for _, name := range found {
		if name != "" {
			all = append(all, name)
		}
	}
	return all, nil
}

// Role returns a role, or nil if there is none of that name.
func (o *Observer) Role(ctx context.Context, name string) (*iamtypes.Role, error) {
	out, err := o.IAM.GetRole(ctx, &iam.GetRoleInput{RoleName: &name})
	if errors.As(err, new(*iamtypes.NoSuchEntityException)) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return out.Role, nil
}

// roleTags returns nil if there is no such role.
func (o *Observer) roleTags(ctx context.Context, name string) (map[string]string, error) {
	role, err := o.Role(ctx, name)
	if role == nil {
		return nil, err
	}
	found := map[string]string{}
	for _, t := range role.Tags {
		found[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	return found, nil
}

// queueTags returns nil if there is no such queue.
func (o *Observer) queueTags(ctx context.Context, queue string) (map[string]string, error) {
	url, err := o.SQS.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &queue})
	if errors.As(err, new(*sqstypes.QueueDoesNotExist)) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	out, err := o.SQS.ListQueueTags(ctx, &sqs.ListQueueTagsInput{QueueUrl: url.QueueUrl})
	if errors.As(err, new(*sqstypes.QueueDoesNotExist)) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if out.Tags == nil {
		return map[string]string{}, nil
	}
	return out.Tags, nil
}

// ruleTags returns nil if there is no such rule.
func (o *Observer) ruleTags(ctx context.Context, clusterARN, rule string) (map[string]string, error) {
	parts := strings.SplitN(clusterARN, ":", 6) // arn:partition:eks:region:account:cluster/name
	ruleARN := fmt.Sprintf("arn:%s:events:%s:%s:rule/%s", parts[1], parts[3], parts[4], rule)
	out, err := o.Rules.ListTagsForResource(ctx, &eventbridge.ListTagsForResourceInput{ResourceARN: &ruleARN})
	if errors.As(err, new(*eventtypes.ResourceNotFoundException)) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, t := range out.Tags {
		found[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	return found, nil
}
