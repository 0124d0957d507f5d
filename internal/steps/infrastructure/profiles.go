package infrastructure

import (
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/resource"
)

// removeProfiles deletes the cluster's instance profiles that Karpenter left behind. Karpenter deletes a profile with
// its EC2NodeClass; one is left if the controller, or the cluster with it, ended first. Profiles are found by their
// path and not by their role, so that one whose role was removed by an interrupted call is found again.
func (i *Step) removeProfiles(ctx context.Context, p *plan.Plan, w *resource.Writer) error {
	path := ownership.ProfilePath(p.Cluster.Region, p.Cluster.Name)
	profiles, err := i.profiles(ctx, path)
	if err != nil {
		return err
	}
	for _, profile := range profiles {
		name := *profile.InstanceProfileName
		for _, role := range profile.Roles {
			_, err := i.IAM.RemoveRoleFromInstanceProfile(ctx, &iam.RemoveRoleFromInstanceProfileInput{InstanceProfileName: &name,
				RoleName: role.RoleName})
			if err != nil && !noSuchEntity(err) {
				return fmt.Errorf("instance profile %s: remove role: %w", name, err)
			}
		}
		if _, err := i.IAM.DeleteInstanceProfile(ctx, &iam.DeleteInstanceProfileInput{InstanceProfileName: &name}); err != nil {
			// As with roles: if the answer was lost, the SDK's retry ends as AccessDenied.
			left, failed := i.profiles(ctx, path)
			if failed != nil {
				return failed
			}
			if slices.ContainsFunc(left, func(p types.InstanceProfile) bool { return *p.InstanceProfileName == name }) {
				return fmt.Errorf("instance profile %s: delete: %w", name, err)
			}
		}
		w.Changed("deleted", "instance profile %s", name)
	}
	return nil
}

// profiles returns all instance profiles below a path. It reads all pages first, because deletions shift the pages.
func (i *Step) profiles(ctx context.Context, path string) ([]types.InstanceProfile, error) {
	var all []types.InstanceProfile
	pages := iam.NewListInstanceProfilesPaginator(i.IAM, &iam.ListInstanceProfilesInput{PathPrefix: &path})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("instance profiles below %s: list: %w", path, err)
		}
		all = append(all, page.InstanceProfiles...)
	}
	return all, nil
}
