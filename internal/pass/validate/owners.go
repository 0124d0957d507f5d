package validate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	eventtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// IAM is what observing needs of IAM.
type IAM interface {
	GetRole(context.Context, *iam.GetRoleInput, ...func(*iam.Options)) (*iam.GetRoleOutput, error)
	GetOpenIDConnectProvider(context.Context, *iam.GetOpenIDConnectProviderInput, ...func(*iam.Options)) (*iam.GetOpenIDConnectProviderOutput, error)
	ListAttachedRolePolicies(context.Context, *iam.ListAttachedRolePoliciesInput, ...func(*iam.Options)) (*iam.ListAttachedRolePoliciesOutput, error)
}

// SQS is what observing needs of SQS.
type SQS interface {
	GetQueueUrl(context.Context, *sqs.GetQueueUrlInput, ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error)
	ListQueueTags(context.Context, *sqs.ListQueueTagsInput, ...func(*sqs.Options)) (*sqs.ListQueueTagsOutput, error)
}

// Rules is what observing needs of EventBridge.
type Rules interface {
	ListTagsForResource(context.Context, *eventbridge.ListTagsForResourceInput, ...func(*eventbridge.Options)) (*eventbridge.ListTagsForResourceOutput, error)
}

// oidcProvider tells whether IAM knows the cluster's OIDC issuer, and whether STS takes its tokens.
func (v *Validate) oidcProvider(ctx context.Context, c plan.Cluster, facts *plan.Facts) error {
	if c.OIDCIssuer == "" {
		return nil
	}
	provider := plan.OIDCProviderARN(c)
	out, err := v.iam.GetOpenIDConnectProvider(ctx, &iam.GetOpenIDConnectProviderInput{OpenIDConnectProviderArn: &provider})
	var missing *iamtypes.NoSuchEntityException
	if errors.As(err, &missing) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("OIDC provider %s: get: %w", provider, err)
	}
	facts.OIDCProvider, facts.OIDCWithoutSTS = true, !slices.Contains(out.ClientIDList, ownership.OIDCClient)
	return nil
}

// systemPolicies are the policies attached to the roles of the system node groups.
func (v *Validate) systemPolicies(ctx context.Context, config params.Config, facts plan.Facts) ([]string, error) {
	var roles, policies []string
	for _, g := range facts.OfRole(config, plan.RoleSystem) {
		if g.NodeRole != "" {
			roles = append(roles, g.NodeRole[strings.LastIndex(g.NodeRole, "/")+1:])
		}
	}
	for _, role := range unique(roles) {
		pages := iam.NewListAttachedRolePoliciesPaginator(v.iam, &iam.ListAttachedRolePoliciesInput{RoleName: &role})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if errors.As(err, new(*iamtypes.NoSuchEntityException)) {
				break // EKS reports a role that is gone in the node group's health
			}
			if err != nil {
				return nil, fmt.Errorf("role %s: list policies: %w", role, err)
			}
			for _, p := range page.AttachedPolicies {
				policies = append(policies, value(p.PolicyArn))
			}
		}
	}
	return unique(policies), nil
}

// foreign names the resources that have a name of ours without both our marks.
func (v *Validate) foreign(ctx context.Context, rack, clusterARN string) ([]string, error) {
	var all []string
	for _, look := range []struct {
		what string
		tags func(context.Context, string) (map[string]string, error)
		name string
	}{
		{"IAM role", v.roleTags, ownership.ControllerRole(rack)},
		{"IAM role", v.roleTags, ownership.NodeRole(rack)},
		{"SQS queue", v.queueTags, ownership.Queue(rack)},
		{"EventBridge rule", func(ctx context.Context, name string) (map[string]string, error) {
			return v.ruleTags(ctx, clusterARN, name)
		}, ownership.Rule(rack)},
	} {
		tags, err := look.tags(ctx, look.name)
		if err != nil {
			return nil, fmt.Errorf("%s %s: read tags: %w", look.what, look.name, err)
		}
		if tags != nil && (tags[ownership.TagRack] != rack || tags[ownership.TagCluster] != clusterARN) {
			all = append(all, look.what+" "+look.name)
		}
	}
	return all, nil
}

// roleTags are nil where there is no such role.
func (v *Validate) roleTags(ctx context.Context, role string) (map[string]string, error) {
	out, err := v.iam.GetRole(ctx, &iam.GetRoleInput{RoleName: &role})
	var missing *iamtypes.NoSuchEntityException
	if errors.As(err, &missing) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, t := range out.Role.Tags {
		found[value(t.Key)] = value(t.Value)
	}
	return found, nil
}

// queueTags are nil where there is no such queue.
func (v *Validate) queueTags(ctx context.Context, queue string) (map[string]string, error) {
	url, err := v.sqs.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &queue})
	var missing *sqstypes.QueueDoesNotExist
	if errors.As(err, &missing) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	out, err := v.sqs.ListQueueTags(ctx, &sqs.ListQueueTagsInput{QueueUrl: url.QueueUrl})
	if errors.As(err, &missing) {
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

// ruleTags are nil where there is no such rule.
func (v *Validate) ruleTags(ctx context.Context, clusterARN, rule string) (map[string]string, error) {
	parts := strings.SplitN(clusterARN, ":", 6) // arn:partition:eks:region:account:cluster/name
	ruleARN := fmt.Sprintf("arn:%s:events:%s:%s:rule/%s", parts[1], parts[3], parts[4], rule)
	out, err := v.rules.ListTagsForResource(ctx, &eventbridge.ListTagsForResourceInput{ResourceARN: &ruleARN})
	var missing *eventtypes.ResourceNotFoundException
	if errors.As(err, &missing) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, t := range out.Tags {
		found[value(t.Key)] = value(t.Value)
	}
	return found, nil
}

func tags(list []ec2types.Tag) map[string]string {
	found := map[string]string{}
	for _, t := range list {
		found[value(t.Key)] = value(t.Value)
	}
	return found
}
