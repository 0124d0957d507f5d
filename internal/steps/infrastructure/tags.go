package infrastructure

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// tagRole adds missing tags to a role of ours.
func (i *Step) tagRole(ctx context.Context, p *plan.Plan, live *types.Role, progress *outcome.Progress) error {
	lacking := ownership.LackingTags(roleTags(live), p.Infrastructure.Tags)
	if len(lacking) == 0 {
		return nil
	}
	if _, err := i.IAM.TagRole(ctx, &iam.TagRoleInput{RoleName: live.RoleName, Tags: iamTags(lacking)}); err != nil {
		return fmt.Errorf("role %s: tag: %w", *live.RoleName, err)
	}
	progress.Changed("tagged", "role %s", *live.RoleName)
	return nil
}

// tagEKS adds missing tags to an access entry or a Pod Identity association of ours. It sets all of the rack's tags, because
// the function may not tag without the ownership tags.
func (i *Step) tagEKS(ctx context.Context, p *plan.Plan, arn *string, live map[string]string, subject string,
	progress *outcome.Progress) error {
	if len(ownership.LackingTags(live, p.Infrastructure.Tags)) == 0 {
		return nil
	}
	if _, err := i.EKS.TagResource(ctx, &eks.TagResourceInput{ResourceArn: arn, Tags: p.Infrastructure.Tags}); err != nil {
		return fmt.Errorf("%s: tag: %w", subject, err)
	}
	progress.Changed("tagged", "%s", subject)
	return nil
}

func roleTags(role *types.Role) map[string]string {
	tags := map[string]string{}
	for _, t := range role.Tags {
		tags[*t.Key] = *t.Value
	}
	return tags
}

func iamTags(tags map[string]string) []types.Tag {
	var all []types.Tag
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		all = append(all, types.Tag{Key: new(key), Value: new(tags[key])})
	}
	return all
}
