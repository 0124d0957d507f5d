package infrastructure

import (
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/resource"
)

// removeProfiles deletes the cluster's instance profiles that Karpenter left behind. Karpenter deletes a profile with
// its EC2NodeClass; one is left if the controller, or the cluster with it, ended first. Profiles are found by their
// path, so that one whose role was removed by an interrupted call is found again. One with a role that is not the rack's
// is another Karpenter's, whose nodes run on.
func (i *Step) removeProfiles(ctx context.Context, p *plan.Plan, w *resource.Writer) error {
	path := ownership.ProfilePath(p.Cluster.Region, p.Cluster.Name)
	profiles, err := i.profiles(ctx, path)
	if err != nil {
		return err
	}
	for _, profile := range profiles {
		name := *profile.InstanceProfileName
		if slices.ContainsFunc(profile.Roles, func(r types.Role) bool {
			return !slices.Contains([]string{ownership.NodeRole(p.Rack), ownership.BuildNodeRole(p.Rack)}, *r.RoleName)
		}) {
			continue
		}
		for _, role := range profile.Roles {
			_, err := i.IAM.RemoveRoleFromInstanceProfile(ctx, &iam.RemoveRoleFromInstanceProfileInput{InstanceProfileName: &name,
				RoleName: role.RoleName})
			if gone(err) {
				return listed(name, err)
			}
			if err != nil {
				return fmt.Errorf("instance profile %s: remove role: %w", name, err)
			}
		}
		_, err := i.IAM.DeleteInstanceProfile(ctx, &iam.DeleteInstanceProfileInput{InstanceProfileName: &name})
		if gone(err) { // as with roles: if the answer was lost, the SDK's retry ends as AccessDenied
			left, failed := i.profiles(ctx, path)
			if failed != nil {
				return failed
			}
			if slices.ContainsFunc(left, func(p types.InstanceProfile) bool { return *p.InstanceProfileName == name }) {
				return listed(name, err)
			}
		} else if err != nil {
			return fmt.Errorf("instance profile %s: delete: %w", name, err)
		}
		w.Changed("deleted", "instance profile %s", name)
	}
	return nil
}

// gone reports whether an error may be IAM's answer about a profile that was deleted: the right is by path, and IAM knows no path of what
// does not exist.
func gone(err error) bool { return noSuchEntity(err) || outcome.Code(err) == "AccessDenied" }

// listed waits for IAM's list to lose a profile that was deleted seconds ago. If the right is missing, the step's deadline ends that.
func listed(name string, err error) error {
	return outcome.Wait(poll, "IAM lists instance profile %s and does not delete it: it was deleted just now, or %v", name, err)
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
