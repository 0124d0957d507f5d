package infrastructure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// nodeEntry is the type of a node role's access entry. A STANDARD entry cannot carry the groups that nodes need.
const nodeEntry = "EC2_LINUX"

func notFound(err error) bool { return errors.As(err, new(*types.ResourceNotFoundException)) }

// entry creates or repairs the access entry that lets nodes with the node role join the cluster. It returns when the
// entry was created; nil for an administrator's entry. An access entry's type cannot be changed, and an entry binds to
// the role as it was when the entry was created. So an entry of the wrong type or of an earlier role is replaced.
func (i *Step) entry(ctx context.Context, p *plan.Plan, role *iamtypes.Role, progress *outcome.Progress) (*time.Time, error) {
	live, err := i.describeEntry(ctx, p, *role.Arn)
	if err != nil {
		return nil, err
	}
	if live != nil {
		good := working(live, role)
		if good && !ours(p, live.Tags) {
			return nil, nil // an administrator's entry: it works, and with ownership tags Sawhorse would later delete it
		}
		if good {
			return live.CreatedAt, i.tagEKS(ctx, p, live.AccessEntryArn, live.Tags,
				"access entry of role "+*role.RoleName, progress)
		}
		if err := i.deleteEntry(ctx, p, *role.Arn); err != nil {
			return nil, err
		}
		progress.Changed("deleted", "access entry of role %s that did not work", *role.RoleName)
	}
	_, err = i.EKS.CreateAccessEntry(ctx, &eks.CreateAccessEntryInput{
		ClusterName: &p.Cluster.Name, PrincipalArn: role.Arn, Type: new(nodeEntry), Tags: p.Infrastructure.Tags,
	})
	if errors.As(err, new(*types.ResourceInUseException)) {
		return nil, outcome.NotYet(poll, "EKS has an access entry of role %s that it does not show yet, or an earlier one that is being deleted",
			*role.RoleName)
	}
	if err != nil {
		return nil, fmt.Errorf("access entry %s: create: %w", *role.Arn, i.unknownToEKS(role, err))
	}
	progress.Changed("created", "access entry of role %s", *role.RoleName)
	return new(i.Now()), nil
}

// unknownToEKS turns EKS's refusal of a new role into a wait: EKS learns of a role some 10 s after its creation.
// Terraform's AWS provider waits for the same two error texts.
func (i *Step) unknownToEKS(role *iamtypes.Role, err error) error {
	var invalid *types.InvalidParameterException
	if !errors.As(err, &invalid) {
		return err
	}
	if text := invalid.ErrorMessage(); !strings.Contains(text, "invalid principal") && !strings.Contains(text, "does not exist") {
		return err
	}
	if outcome.Young(role.CreateDate, i.Now()) {
		return outcome.NotYet(poll, "EKS does not know role %s yet: it was made less than a minute ago", *role.RoleName)
	}
	return fmt.Errorf("EKS refuses the role although it is no new one; see whether it is still there (`aws iam get-role "+
		"--role-name %s`), and request a pass: %w", *role.RoleName, err)
}

// working reports whether an entry has the right type and belongs to the current role, not to an earlier one of the
// same name.
func working(entry *types.AccessEntry, role *iamtypes.Role) bool {
	if entry.Type == nil || *entry.Type != nodeEntry {
		return false
	}
	return entry.CreatedAt == nil || role.CreateDate == nil || !role.CreateDate.After(*entry.CreatedAt)
}

// describeEntry returns a role's access entry; nil if there is none.
func (i *Step) describeEntry(ctx context.Context, p *plan.Plan, principal string) (*types.AccessEntry, error) {
	out, err := i.EKS.DescribeAccessEntry(ctx, &eks.DescribeAccessEntryInput{ClusterName: &p.Cluster.Name, PrincipalArn: &principal})
	if notFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("access entry %s: describe: %w", principal, err)
	}
	return out.AccessEntry, nil
}

func (i *Step) deleteEntry(ctx context.Context, p *plan.Plan, principal string) error {
	_, err := i.EKS.DeleteAccessEntry(ctx, &eks.DeleteAccessEntryInput{ClusterName: &p.Cluster.Name, PrincipalArn: &principal})
	if err != nil && !notFound(err) {
		return fmt.Errorf("access entry %s: delete: %w", principal, err)
	}
	return nil
}

// removeEntry deletes the access entry of a role of nodes if Sawhorse made it.
func (i *Step) removeEntry(ctx context.Context, p *plan.Plan, role string, progress *outcome.Progress) error {
	principal := plan.RoleARN(p.Cluster, role)
	live, err := i.describeEntry(ctx, p, principal)
	if err != nil || live == nil || !ours(p, live.Tags) {
		return err
	}
	if err := i.deleteEntry(ctx, p, principal); err != nil {
		return err
	}
	progress.Changed("deleted", "access entry of role %s", role)
	return nil
}

// association returns the Pod Identity association of Karpenter's service account; nil if there is none.
func (i *Step) association(ctx context.Context, p *plan.Plan) (*types.PodIdentityAssociation, error) {
	out, err := i.EKS.ListPodIdentityAssociations(ctx, &eks.ListPodIdentityAssociationsInput{
		ClusterName: &p.Cluster.Name, Namespace: new(ownership.Namespace), ServiceAccount: new(ownership.ServiceAccount),
	})
	if notFound(err) && p.Cluster.Gone {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("pod identity associations of cluster %s: list: %w", p.Cluster.Name, err)
	}
	if len(out.Associations) == 0 {
		return nil, nil
	}
	live, err := i.EKS.DescribePodIdentityAssociation(ctx, &eks.DescribePodIdentityAssociationInput{
		ClusterName: &p.Cluster.Name, AssociationId: out.Associations[0].AssociationId,
	})
	if notFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("pod identity association %s: describe: %w", *out.Associations[0].AssociationId, err)
	}
	return live.Association, nil
}

// associate gives the controller its credentials through EKS Pod Identity, and returns when the association was created
// or last changed.
func (i *Step) associate(ctx context.Context, p *plan.Plan, role *iamtypes.Role, progress *outcome.Progress) (*time.Time, error) {
	live, err := i.association(ctx, p)
	if err != nil {
		return nil, err
	}
	subject := "pod identity association of service account " + ownership.Namespace + "/" + ownership.ServiceAccount
	if live == nil {
		_, err := i.EKS.CreatePodIdentityAssociation(ctx, &eks.CreatePodIdentityAssociationInput{
			ClusterName: &p.Cluster.Name, Namespace: new(ownership.Namespace), ServiceAccount: new(ownership.ServiceAccount),
			RoleArn: role.Arn, Tags: p.Infrastructure.Tags,
		})
		if errors.As(err, new(*types.ResourceInUseException)) {
			return nil, outcome.NotYet(poll, "EKS has a pod identity association of service account %s/%s that it does not show yet, "+
				"or an earlier one that is being deleted", ownership.Namespace, ownership.ServiceAccount)
		}
		if err != nil {
			return nil, fmt.Errorf("pod identity association of cluster %s: create: %w", p.Cluster.Name, i.unknownToEKS(role, err))
		}
		progress.Changed("created", "%s", subject)
		return new(i.Now()), nil
	}
	if !ours(p, live.Tags) {
		return nil, outcome.Reject("karpenter_enabled", "cluster %s has a Pod Identity association for service account %s/%s that "+
			"Sawhorse did not make; delete it with `aws eks delete-pod-identity-association --cluster-name %s --association-id %s`",
			p.Cluster.Name, ownership.Namespace, ownership.ServiceAccount, p.Cluster.Name, *live.AssociationId)
	}
	if live.RoleArn == nil || *live.RoleArn != *role.Arn {
		_, err := i.EKS.UpdatePodIdentityAssociation(ctx, &eks.UpdatePodIdentityAssociationInput{
			ClusterName: &p.Cluster.Name, AssociationId: live.AssociationId, RoleArn: role.Arn,
		})
		if err != nil {
			return nil, fmt.Errorf("pod identity association %s: update: %w", *live.AssociationId, i.unknownToEKS(role, err))
		}
		progress.Changed("repaired", "%s", subject)
		live.ModifiedAt = new(i.Now())
	}
	return cmp.Or(live.ModifiedAt, live.CreatedAt), i.tagEKS(ctx, p, live.AssociationArn, live.Tags, subject, progress)
}

// dissociate deletes the association if Sawhorse made it.
func (i *Step) dissociate(ctx context.Context, p *plan.Plan, progress *outcome.Progress) error {
	live, err := i.association(ctx, p)
	if err != nil || live == nil || !ours(p, live.Tags) {
		return err
	}
	_, err = i.EKS.DeletePodIdentityAssociation(ctx, &eks.DeletePodIdentityAssociationInput{ClusterName: &p.Cluster.Name,
		AssociationId: live.AssociationId})
	if err != nil && !notFound(err) {
		return fmt.Errorf("pod identity association %s: delete: %w", *live.AssociationId, err)
	}
	progress.Changed("deleted", "pod identity association of service account %s/%s", ownership.Namespace, ownership.ServiceAccount)
	return nil
}
