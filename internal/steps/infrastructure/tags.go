package infrastructure

import (
	"context"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/resource"
)

// tagsEKS returns the part with the tags of an access entry or a Pod Identity association. It sets all of the rack's tags,
// because the function may not tag without the ownership tags.
func (i *Step) tagsEKS(p *plan.Plan, subject string, arn *string, live map[string]string) resource.Write {
	return resource.Tags(live, p.Infrastructure.Tags, func(ctx context.Context) error {
		_, err := i.EKS.TagResource(ctx, &eks.TagResourceInput{ResourceArn: arn, Tags: p.Infrastructure.Tags})
		return resource.Wrap(err, "%s: tag", subject)
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
