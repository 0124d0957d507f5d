package access

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/steps"
)

// entry brings one function's access entry to what it should be.
func (a *Access) entry(ctx context.Context, p *plan.Plan, function string, progress *steps.Progress) error {
	role := a.Principals[function]
	live, err := a.EKS.DescribeAccessEntry(ctx, &eks.DescribeAccessEntryInput{ClusterName: &p.Cluster.Name, PrincipalArn: &role})
	var missing *types.ResourceNotFoundException
	if err != nil && !errors.As(err, &missing) {
		return fmt.Errorf("access entry %s: describe: %w", role, err)
	}
	if err == nil {
		stale, err := a.stale(ctx, live.AccessEntry, role)
		if err != nil {
			return err
		}
		if stale {
			if _, err := a.EKS.DeleteAccessEntry(ctx, &eks.DeleteAccessEntryInput{ClusterName: &p.Cluster.Name, PrincipalArn: &role}); err != nil && !errors.As(err, &missing) {
				return fmt.Errorf("access entry %s: delete: %w", role, err)
			}
			live = nil
		}
	} else {
		live = nil
	}
	if err := a.write(ctx, p, function, live, progress); err != nil {
		return err
	}
	return a.policy(ctx, p, function, progress)
}

// stale tells whether an entry does not work for its role: it binds to the role as it was when the entry was created, so a
// role that was deleted and created again since needs a new one.
func (a *Access) stale(ctx context.Context, entry *types.AccessEntry, roleARN string) (bool, error) {
	if entry.Type != nil && *entry.Type != "STANDARD" {
		return true, nil
	}
	name := roleARN[strings.LastIndex(roleARN, "/")+1:]
	out, err := a.IAM.GetRole(ctx, &iam.GetRoleInput{RoleName: &name})
	if err != nil {
		return false, fmt.Errorf("role %s: get: %w", name, err)
	}
	return entry.CreatedAt != nil && out.Role.CreateDate != nil && out.Role.CreateDate.After(*entry.CreatedAt), nil
}

func (a *Access) write(ctx context.Context, p *plan.Plan, function string, live *eks.DescribeAccessEntryOutput, progress *steps.Progress) error {
	role, wanted := a.Principals[function], groups(function)
	if live == nil {
		_, err := a.EKS.CreateAccessEntry(ctx, &eks.CreateAccessEntryInput{
			ClusterName: &p.Cluster.Name, PrincipalArn: &role, KubernetesGroups: wanted, Type: new("STANDARD"),
		})
		var exists *types.ResourceInUseException
		if err != nil && !errors.As(err, &exists) {
			return fmt.Errorf("access entry %s: create: %w", role, err)
		}
		progress.Changed("created", "access entry of function %s", function)
		return nil
	}
	if slices.Equal(live.AccessEntry.KubernetesGroups, wanted) {
		return nil
	}
	_, err := a.EKS.UpdateAccessEntry(ctx, &eks.UpdateAccessEntryInput{ClusterName: &p.Cluster.Name, PrincipalArn: &role, KubernetesGroups: wanted})
	if err != nil {
		return fmt.Errorf("access entry %s: update: %w", role, err)
	}
	progress.Changed("updated", "access entry of function %s", function)
	return nil
}

// policy associates EKS's cluster admin policy with an administrator's entry.
func (a *Access) policy(ctx context.Context, p *plan.Plan, function string, progress *steps.Progress) error {
	if !administrators[function] {
		return nil
	}
	role := a.Principals[function]
	policy := fmt.Sprintf("arn:%s:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy", p.Cluster.Partition)
	out, err := a.EKS.ListAssociatedAccessPolicies(ctx, &eks.ListAssociatedAccessPoliciesInput{ClusterName: &p.Cluster.Name, PrincipalArn: &role})
	if err != nil {
		return fmt.Errorf("access entry %s: list policies: %w", role, err)
	}
	for _, live := range out.AssociatedAccessPolicies {
		if live.PolicyArn != nil && *live.PolicyArn == policy {
			return nil
		}
	}
	_, err = a.EKS.AssociateAccessPolicy(ctx, &eks.AssociateAccessPolicyInput{
		ClusterName: &p.Cluster.Name, PrincipalArn: &role, PolicyArn: &policy,
		AccessScope: &types.AccessScope{Type: types.AccessScopeTypeCluster},
	})
	if err != nil {
		return fmt.Errorf("access entry %s: associate %s: %w", role, policy, err)
	}
	progress.Changed("associated with AmazonEKSClusterAdminPolicy", "access entry of function %s", function)
	return nil
}
