package infrastructure

import (
	"context"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/resource"
)

// tagRole sets the tags of a role of ours, if some are missing.
func (i *Step) tagRole(ctx context.Context, p *plan.Plan, live *types.Role, w *resource.Writer) error {
	return tag(ctx, p, aspect(*live.RoleName), roleTags(live), w, func(ctx context.Context) error {
		_, err := i.IAM.TagRole(ctx, &iam.TagRoleInput{RoleName: live.RoleName, Tags: iamTags(p.Infrastructure.Tags)})
		return err
	})
}

// tagEKS sets the tags of an access entry or a Pod Identity association of ours, if some are missing. It sets all of the rack's
// tags, because the function may not tag without the ownership tags.
func (i *Step) tagEKS(ctx context.Context, p *plan.Plan, arn *string, live map[string]string, subject string, w *resource.Writer) error {
	return tag(ctx, p, subject, live, w, func(ctx context.Context) error {
		_, err := i.EKS.TagResource(ctx, &eks.TagResourceInput{ResourceArn: arn, Tags: p.Infrastructure.Tags})
		return err
	})
}

// tag calls set unless the live tags of a subject have all that the plan wants.
func tag(
	ctx context.Context, p *plan.Plan, subject string, live map[string]string, w *resource.Writer, set func(context.Context) error,
) error {
	wanted := resource.Hash(p.Infrastructure.Tags)
	return w.Write(ctx, resource.Write{
		Aspect: subject + "/tags", Value: wanted,
		Read:   resource.Read(len(ownership.LackingTags(live, p.Infrastructure.Tags)) == 0, wanted),
		Change: outcome.Change{Subject: subject, Action: "tagged"},
		Do:     func(ctx context.Context) error { return wrap(set(ctx), "%s: tag", subject) },
	})
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
