package infrastructure

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/sawhorse-io/sawhorse/internal/names"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/steps"
)

// nodeEntry is the type of a node role's access entry; a STANDARD one cannot carry the groups that nodes need.
const nodeEntry = "EC2_LINUX"

func notFound(err error) bool { return errors.As(err, new(*types.ResourceNotFoundException)) }

// entry lets nodes with the node role join. An entry's type cannot be changed, and an entry binds to the role as it was
// when the entry was created, so a wrong or older one is replaced.
func (i *Infrastructure) entry(ctx context.Context, p *plan.Plan, nodeARN string, progress *steps.Progress) error {
	live, err := i.EKS.DescribeAccessEntry(ctx, &eks.DescribeAccessEntryInput{ClusterName: &p.Cluster.Name, PrincipalArn: &nodeARN})
	if err != nil && !notFound(err) {
		return fmt.Errorf("access entry %s: describe: %w", nodeARN, err)
	}
	if err == nil {
		good, err := i.working(ctx, p, live.AccessEntry)
		if err != nil {
			return err
		}
		if good && !ours(p, live.AccessEntry.Tags) {
			return nil // an administrator's: it serves, and our tags would make it ours to delete
		}
		if good {
			return i.tagEKS(ctx, p, live.AccessEntry.AccessEntryArn, live.AccessEntry.Tags, "access entry of role "+p.Infrastructure.NodeRole, progress)
		}
		if err := i.deleteEntry(ctx, p, nodeARN); err != nil {
			return err
		}
		progress.Changed("deleted", "access entry of role %s that did not work", p.Infrastructure.NodeRole)
	}
	_, err = i.EKS.CreateAccessEntry(ctx, &eks.CreateAccessEntryInput{
		ClusterName: &p.Cluster.Name, PrincipalArn: &nodeARN, Type: new(nodeEntry), Tags: p.Infrastructure.Tags,
	})
	if err != nil && !errors.As(err, new(*types.ResourceInUseException)) {
		return fmt.Errorf("access entry %s: create: %w", nodeARN, err)
	}
	progress.Changed("created", "access entry of role %s", p.Infrastructure.NodeRole)
	return nil
}

// working tells whether an entry has the right type and belongs to the role as it is now.
func (i *Infrastructure) working(ctx context.Context, p *plan.Plan, entry *types.AccessEntry) (bool, error) {
	if entry.Type == nil || *entry.Type != nodeEntry {
		return false, nil
	}
	role, _, err := i.find(ctx, p, p.Infrastructure.NodeRole)
	if err != nil || role == nil {
		return false, err
	}
	return entry.CreatedAt == nil || role.CreateDate == nil || !role.CreateDate.After(*entry.CreatedAt), nil
}

func (i *Infrastructure) deleteEntry(ctx context.Context, p *plan.Plan, principal string) error {
	_, err := i.EKS.DeleteAccessEntry(ctx, &eks.DeleteAccessEntryInput{ClusterName: &p.Cluster.Name, PrincipalArn: &principal})
	if err != nil && !notFound(err) {
		return fmt.Errorf("access entry %s: delete: %w", principal, err)
	}
	return nil
}

// removeEntry deletes the access entry if Sawhorse made it.
func (i *Infrastructure) removeEntry(ctx context.Context, p *plan.Plan, progress *steps.Progress) error {
	principal := roleARN(p, p.Infrastructure.NodeRole)
	live, err := i.EKS.DescribeAccessEntry(ctx, &eks.DescribeAccessEntryInput{ClusterName: &p.Cluster.Name, PrincipalArn: &principal})
	if notFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("access entry %s: describe: %w", principal, err)
	}
	if !ours(p, live.AccessEntry.Tags) {
		return nil
	}
	if err := i.deleteEntry(ctx, p, principal); err != nil {
		return err
	}
	progress.Changed("deleted", "access entry of role %s", p.Infrastructure.NodeRole)
	return nil
}

// association is the Pod Identity association of Karpenter's service account; nil where there is none.
func (i *Infrastructure) association(ctx context.Context, p *plan.Plan) (*types.PodIdentityAssociation, error) {
	out, err := i.EKS.ListPodIdentityAssociations(ctx, &eks.ListPodIdentityAssociationsInput{
		ClusterName: &p.Cluster.Name, Namespace: new(names.Namespace), ServiceAccount: new(names.ServiceAccount),
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

// associate gives the controller its credentials through EKS Pod Identity.
func (i *Infrastructure) associate(ctx context.Context, p *plan.Plan, role string, progress *steps.Progress) error {
	live, err := i.association(ctx, p)
	if err != nil {
		return err
	}
	subject := "pod identity association of service account " + names.Namespace + "/" + names.ServiceAccount
	if live == nil {
		_, err := i.EKS.CreatePodIdentityAssociation(ctx, &eks.CreatePodIdentityAssociationInput{
			ClusterName: &p.Cluster.Name, Namespace: new(names.Namespace), ServiceAccount: new(names.ServiceAccount),
			RoleArn: &role, Tags: p.Infrastructure.Tags,
		})
		if err != nil && !errors.As(err, new(*types.ResourceInUseException)) {
			return fmt.Errorf("pod identity association of cluster %s: create: %w", p.Cluster.Name, err)
		}
		progress.Changed("created", "%s", subject)
		return nil
	}
	if !ours(p, live.Tags) {
		return steps.Reject("karpenter_enabled", "cluster %s has a Pod Identity association for service account %s/%s that Sawhorse did not make; delete it with `aws eks delete-pod-identity-association --cluster-name %s --association-id %s`",
			p.Cluster.Name, names.Namespace, names.ServiceAccount, p.Cluster.Name, *live.AssociationId)
	}
	if live.RoleArn == nil || *live.RoleArn != role {
		_, err := i.EKS.UpdatePodIdentityAssociation(ctx, &eks.UpdatePodIdentityAssociationInput{
			ClusterName: &p.Cluster.Name, AssociationId: live.AssociationId, RoleArn: &role,
		})
		if err != nil {
			return fmt.Errorf("pod identity association %s: update: %w", *live.AssociationId, err)
		}
		progress.Changed("repaired", "%s", subject)
	}
	return i.tagEKS(ctx, p, live.AssociationArn, live.Tags, subject, progress)
}

// dissociate deletes the association if Sawhorse made it.
func (i *Infrastructure) dissociate(ctx context.Context, p *plan.Plan, progress *steps.Progress) error {
	live, err := i.association(ctx, p)
	if err != nil || live == nil || !ours(p, live.Tags) {
		return err
	}
	_, err = i.EKS.DeletePodIdentityAssociation(ctx, &eks.DeletePodIdentityAssociationInput{ClusterName: &p.Cluster.Name, AssociationId: live.AssociationId})
	if err != nil && !notFound(err) {
		return fmt.Errorf("pod identity association %s: delete: %w", *live.AssociationId, err)
	}
	progress.Changed("deleted", "pod identity association of service account %s/%s", names.Namespace, names.ServiceAccount)
	return nil
}
