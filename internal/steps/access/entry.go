package access

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/steps/admin"
)

// entries creates or repairs the access entries of all functions. An entry that must wait does not hold up the others.
func (a *Step) entries(ctx context.Context, p *plan.Plan, progress *outcome.Progress) error {
	var waiting error
	for _, function := range slices.Sorted(maps.Keys(a.Principals)) {
		err := a.entry(ctx, p, function, progress)
		if err != nil && !errors.As(err, new(*outcome.Early)) {
			return err
		}
		if waiting == nil {
			waiting = err
		}
	}
	return waiting
}

// entry creates or repairs one function's access entry. EKS may still return a deleted entry, so a new entry is checked
// again until it is two polls old.
func (a *Step) entry(ctx context.Context, p *plan.Plan, function string, progress *outcome.Progress) error {
	role := a.Principals[function]
	live, err := a.describe(ctx, p, function)
	if err != nil {
		return err
	}
	if live != nil {
		stale, err := a.stale(ctx, live, role)
		if err != nil {
			return err
		}
		if stale {
			if _, err := a.EKS.DeleteAccessEntry(ctx,
				&eks.DeleteAccessEntryInput{ClusterName: &p.Cluster.Name, PrincipalArn: &role}); err != nil && !notFound(err) {
				return fmt.Errorf("access entry %s: delete: %w", role, err)
			}
			live = nil
		}
	}
	if live == nil {
		if err := a.create(ctx, p, function, progress); err != nil {
			return err
		}
		return a.policy(ctx, p, function, new(a.Now()), progress)
	}
	if err := a.update(ctx, p, function, live, progress); err != nil {
		return err
	}
	return a.policy(ctx, p, function, live.CreatedAt, progress)
}

// describe returns one function's access entry; nil if there is none.
func (a *Step) describe(ctx context.Context, p *plan.Plan, function string) (*types.AccessEntry, error) {
	role := a.Principals[function]
	out, err := a.EKS.DescribeAccessEntry(ctx, &eks.DescribeAccessEntryInput{ClusterName: &p.Cluster.Name, PrincipalArn: &role})
	if notFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("access entry %s: describe: %w", role, err)
	}
	return out.AccessEntry, nil
}

func notFound(err error) bool { return errors.As(err, new(*types.ResourceNotFoundException)) }

// stale reports whether an entry does not work for its role. An entry binds to the role as it was at its creation, so a
// role that was deleted and created again needs a new entry.
func (a *Step) stale(ctx context.Context, entry *types.AccessEntry, roleARN string) (bool, error) {
	if entry.Type != nil && *entry.Type != "STANDARD" {
		return true, nil
	}
	made, err := a.made(ctx, roleARN)
	return entry.CreatedAt != nil && made != nil && made.After(*entry.CreatedAt), err
}

// made returns when a role was created.
func (a *Step) made(ctx context.Context, roleARN string) (*time.Time, error) {
	name := roleARN[strings.LastIndex(roleARN, "/")+1:]
	out, err := a.IAM.GetRole(ctx, &iam.GetRoleInput{RoleName: &name})
	if err != nil {
		return nil, fmt.Errorf("role %s: get: %w", name, err)
	}
	return out.Role.CreateDate, nil
}

func (a *Step) create(ctx context.Context, p *plan.Plan, function string, progress *outcome.Progress) error {
	role := a.Principals[function]
	_, err := a.EKS.CreateAccessEntry(ctx, &eks.CreateAccessEntryInput{
		ClusterName: &p.Cluster.Name, PrincipalArn: &role, KubernetesGroups: groups(function), Type: new("STANDARD"),
	})
	if errors.As(err, new(*types.ResourceInUseException)) {
		return outcome.NotYet(poll,
			"EKS has an access entry of function %s that it does not show yet, or an earlier one that is being deleted", function)
	}
	if err != nil {
		return fmt.Errorf("access entry %s: create: %w", role, a.unknownToEKS(ctx, function, err))
	}
	progress.Changed("created", "access entry of function %s", function)
	return nil
}

// unknownToEKS turns EKS's refusal of a new role into a wait. EKS learns of a role some 10 s after its creation, and
// the stack may have been deployed that recently.
func (a *Step) unknownToEKS(ctx context.Context, function string, err error) error {
	var invalid *types.InvalidParameterException
	if !errors.As(err, &invalid) || !strings.Contains(invalid.ErrorMessage(), "invalid principal") {
		return err
	}
	made, look := a.made(ctx, a.Principals[function])
	if look != nil {
		return look
	}
	if outcome.Young(made, a.Now()) {
		return outcome.NotYet(poll, "EKS does not know the role of function %s yet: it was made less than a minute ago", function)
	}
	return fmt.Errorf("EKS refuses the role of function %s although it is no new one; deploy the stack again: %w", function, err)
}

func (a *Step) update(ctx context.Context, p *plan.Plan, function string, live *types.AccessEntry, progress *outcome.Progress) error {
	role, wanted := a.Principals[function], groups(function)
	if slices.Equal(live.KubernetesGroups, wanted) {
		return nil
	}
	_, err := a.EKS.UpdateAccessEntry(ctx, &eks.UpdateAccessEntryInput{
		ClusterName: &p.Cluster.Name, PrincipalArn: &role, KubernetesGroups: wanted,
	})
	if err != nil {
		return fmt.Errorf("access entry %s: update: %w", role, err)
	}
	progress.Changed("updated", "access entry of function %s", function)
	return nil
}

// policy associates EKS's cluster admin policy with an administrator's entry. made is when the entry was created: EKS
// does not find a new entry for some seconds.
func (a *Step) policy(ctx context.Context, p *plan.Plan, function string, made *time.Time, progress *outcome.Progress) error {
	if administrators[function] {
		if err := a.associate(ctx, p, function, progress); err != nil {
			if notFound(err) && outcome.Young(made, a.Now()) {
				return outcome.NotYet(poll,
					"EKS does not show the access entry of function %s everywhere yet: it was made less than a minute ago", function)
			}
			return err
		}
	}
	if made != nil && a.Now().Before(made.Add(2*poll)) {
		return outcome.NotYet(poll, "the access entry of function %s is new, and is looked at again", function)
	}
	return nil
}

func (a *Step) associate(ctx context.Context, p *plan.Plan, function string, progress *outcome.Progress) error {
	role, policy := a.Principals[function], admin.Policy(p.Cluster.Partition)
	out, err := a.EKS.ListAssociatedAccessPolicies(ctx, &eks.ListAssociatedAccessPoliciesInput{
		ClusterName: &p.Cluster.Name, PrincipalArn: &role,
	})
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
