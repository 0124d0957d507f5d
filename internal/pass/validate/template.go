package validate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/smithy-go"

	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// template reads the security groups of a node group's launch template. Where somebody has deleted the template, or the version
// that the group uses, the group is there all the same.
func (v *Validate) template(ctx context.Context, used *types.LaunchTemplateSpecification, group *plan.NodeGroup) error {
	if used == nil || used.Id == nil {
		return nil
	}
	out, err := v.ec2.DescribeLaunchTemplateVersions(ctx, &ec2.DescribeLaunchTemplateVersionsInput{
		LaunchTemplateId: used.Id, Versions: []string{value(used.Version)},
	})
	var refused smithy.APIError
	if errors.As(err, &refused) && (refused.ErrorCode() == "InvalidLaunchTemplateId.NotFound" || refused.ErrorCode() == "InvalidLaunchTemplateId.VersionNotFound") {
		group.LostTemplate = strings.TrimSuffix(value(used.Id)+" version "+value(used.Version), " version ")
		return nil
	}
	if err != nil {
		return fmt.Errorf("node group %s: describe launch template: %w", group.Name, err)
	}
	for _, version := range out.LaunchTemplateVersions {
		if data := version.LaunchTemplateData; data != nil {
			group.SecurityGroups = append(group.SecurityGroups, data.SecurityGroupIds...)
			for _, ni := range data.NetworkInterfaces {
				group.SecurityGroups = append(group.SecurityGroups, ni.Groups...)
			}
		}
	}
	return nil
}
