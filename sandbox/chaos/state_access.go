package chaos

import (
	"context"
	"path"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
)

func (w *World) roles(ctx context.Context, all *collection) error {
	client := iam.NewFromConfig(w.aws)
	roles, err := client.ListRoles(ctx, &iam.ListRolesInput{PathPrefix: aws.String("/sawhorse/")})
	if err != nil {
		return err
	}
	for _, r := range roles.Roles {
		whole, err := client.GetRole(ctx, &iam.GetRoleInput{RoleName: r.RoleName})
		if err != nil {
			return err
		}
		inline, attached, err := policies(ctx, client, r.RoleName)
		if err != nil {
			return err
		}
		tags := map[string]string{}
		for _, t := range whole.Role.Tags {
			tags[*t.Key] = *t.Value
		}
		if err := all.add([]any{r.AssumeRolePolicyDocument, inline, attached, tags, r.PermissionsBoundary}, "IAM role %s",
			*r.RoleName); err != nil {
			return err
		}
	}
	profiles, err := client.ListInstanceProfiles(ctx, &iam.ListInstanceProfilesInput{})
	if err != nil {
		return err
	}
	for range profiles.InstanceProfiles { // their names are derived from object ids
		if err := all.add("", "IAM instance profile"); err != nil {
			return err
		}
	}
	return nil
}

// policies returns a role's inline policies with their documents, and the sorted ARNs of its attached policies.
func policies(ctx context.Context, client *iam.Client, role *string) (inline map[string]string, attached []string, err error) {
	own, err := client.ListRolePolicies(ctx, &iam.ListRolePoliciesInput{RoleName: role})
	if err != nil {
		return nil, nil, err
	}
	inline = map[string]string{}
	for _, name := range own.PolicyNames {
		policy, err := client.GetRolePolicy(ctx, &iam.GetRolePolicyInput{RoleName: role, PolicyName: &name})
		if err != nil {
			return nil, nil, err
		}
		inline[name] = *policy.PolicyDocument
	}
	others, err := client.ListAttachedRolePolicies(ctx, &iam.ListAttachedRolePoliciesInput{RoleName: role})
	if err != nil {
		return nil, nil, err
	}
	for _, p := range others.AttachedPolicies {
		attached = append(attached, *p.PolicyArn)
	}
	slices.Sort(attached)
	return inline, attached, nil
}

func (w *World) eksCluster(ctx context.Context, all *collection) error {
	client := eks.NewFromConfig(w.aws)
	is, err := client.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: aws.String(cluster)})
	if err != nil {
		return err
	}
	mode := is.Cluster.AccessConfig.AuthenticationMode
	if err := all.add([]any{is.Cluster.Status, mode, is.Cluster.Tags}, "EKS cluster %s", cluster); err != nil {
		return err
	}
	if mode == ekstypes.AuthenticationModeConfigMap {
		return nil // access entries do not exist in this mode
	}
	return w.accessEntries(ctx, client, all)
}

// tagRole is the tag of an access entry with the id of the role for which it was made. Ids differ between sandboxes.
const tagRole = "sawhorse.dev/role"

func (w *World) accessEntries(ctx context.Context, client *eks.Client, all *collection) error {
	pages := eks.NewListAccessEntriesPaginator(client, &eks.ListAccessEntriesInput{ClusterName: aws.String(cluster)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, principal := range page.AccessEntries {
			entry, err := client.DescribeAccessEntry(ctx, &eks.DescribeAccessEntryInput{
				ClusterName: aws.String(cluster), PrincipalArn: &principal,
			})
			if err != nil {
				return err
			}
			policies, err := client.ListAssociatedAccessPolicies(ctx, &eks.ListAssociatedAccessPoliciesInput{
				ClusterName: aws.String(cluster), PrincipalArn: &principal,
			})
			if err != nil {
				return err
			}
			var arns []string
			for _, p := range policies.AssociatedAccessPolicies {
				arns = append(arns, *p.PolicyArn)
			}
			role, err := iam.NewFromConfig(w.aws).GetRole(ctx, &iam.GetRoleInput{RoleName: aws.String(path.Base(principal))})
			if err == nil && entry.AccessEntry.Tags[tagRole] == *role.Role.RoleId {
				entry.AccessEntry.Tags[tagRole] = "the present one"
			}
			if err := all.add([]any{entry.AccessEntry.Type, entry.AccessEntry.KubernetesGroups, entry.AccessEntry.Tags, arns},
				"access entry %s", principal); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *World) podIdentities(ctx context.Context, all *collection) error {
	client := eks.NewFromConfig(w.aws)
	associations, err := client.ListPodIdentityAssociations(ctx, &eks.ListPodIdentityAssociationsInput{ClusterName: aws.String(cluster)})
	if err != nil {
		return err
	}
	for _, a := range associations.Associations {
		one, err := client.DescribePodIdentityAssociation(ctx, &eks.DescribePodIdentityAssociationInput{
			ClusterName: aws.String(cluster), AssociationId: a.AssociationId,
		})
		if err != nil {
			return err
		}
		if err := all.add([]any{one.Association.RoleArn, one.Association.Tags}, "pod identity of %s/%s", *a.Namespace,
			*a.ServiceAccount); err != nil {
			return err
		}
	}
	return nil
}
