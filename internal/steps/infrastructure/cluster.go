package infrastructure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/resource"
)

// nodeEntry is the type of a node role's access entry. A STANDARD entry cannot carry the groups that nodes need.
const nodeEntry = "EC2_LINUX"

func notFound(err error) bool { return errors.As(err, new(*types.ResourceNotFoundException)) }

// entry creates or repairs the access entry that lets nodes with the node role join the cluster. It returns when the
// entry was created; nil for an administrator's entry. An access entry's type cannot be changed, and an entry binds to
// the role as it was when the entry was created. So an entry of the wrong type or of an earlier role is replaced.
func (i *Step) entry(ctx context.Context, p *plan.Plan, role *iamtypes.Role, w *resource.Writer) (made *time.Time, err error) {
	found, live, err := i.describeEntry(ctx, p, *role.RoleName, *role.Arn)
	if err != nil {
		return nil, err
	}
	if found.Found && !w.Deleted(found.Name) && !working(live, role) {
		if !w.Confirms(found.Name+"/type", nodeEntry) { // it may be the one that was replaced
			return nil, outcome.Wait(poll, "EKS still shows the %s from before it was replaced less than three minutes ago", found.Name)
		}
		err := w.Write(ctx, resource.Write{
			Aspect: found.Name, Read: resource.There, Change: outcome.Change{Subject: found.Name + " that did not work", Action: "deleted"},
			Do: func(ctx context.Context) error { return i.deleteEntry(ctx, p, *role.Arn) },
		})
		if err != nil {
			return nil, err
		}
	}
	if found.Owned {
		made = live.CreatedAt
	}
	// An administrator's entry is left alone: it works, and with ownership tags Sawhorse would later delete it.
	err = w.Ensure(ctx, found, resource.Wanted{
		Create: func(ctx context.Context) error { made = new(i.Now()); return i.createEntry(ctx, p, role) },
		Parts:  []resource.Write{i.tagsEKS(p, found.Name, live.AccessEntryArn, live.Tags)},
	})
	return made, err
}

// entryOf names the access entry of a role of nodes.
func entryOf(role string) string { return "access entry of role " + role }

func (i *Step) createEntry(ctx context.Context, p *plan.Plan, role *iamtypes.Role) error {
	_, err := i.EKS.CreateAccessEntry(ctx, &eks.CreateAccessEntryInput{
		ClusterName: &p.Cluster.Name, PrincipalArn: role.Arn, Type: new(nodeEntry), Tags: p.Infrastructure.Tags,
	})
	if errors.As(err, new(*types.ResourceInUseException)) {
		return outcome.Wait(poll, "EKS has an access entry of role %s that it does not show yet, or an earlier one that is being deleted",
			*role.RoleName)
	}
	return resource.Wrap(i.unknownToEKS(role, err), "access entry %s: create", *role.Arn)
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
		return resource.NotMade(outcome.Wait(poll, "EKS does not know role %s yet: it was made moments ago", *role.RoleName))
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

// describeEntry returns the access entry of a role of nodes, an empty one if there is none.
func (i *Step) describeEntry(ctx context.Context, p *plan.Plan, role, principal string) (resource.Live, *types.AccessEntry, error) {
	out, err := i.EKS.DescribeAccessEntry(ctx, &eks.DescribeAccessEntryInput{ClusterName: &p.Cluster.Name, PrincipalArn: &principal})
	if notFound(err) {
		return resource.Live{Name: entryOf(role)}, &types.AccessEntry{}, nil
	}
	if err != nil {
		return resource.Live{}, nil, fmt.Errorf("access entry %s: describe: %w", principal, err)
	}
	return resource.Live{Name: entryOf(role), Found: true, Owned: ours(p, out.AccessEntry.Tags)}, out.AccessEntry, nil
}

func (i *Step) deleteEntry(ctx context.Context, p *plan.Plan, principal string) error {
	_, err := i.EKS.DeleteAccessEntry(ctx, &eks.DeleteAccessEntryInput{ClusterName: &p.Cluster.Name, PrincipalArn: &principal})
	return resource.Wrap(resource.Ignore(err, notFound), "access entry %s: delete", principal)
}

// removeEntry deletes the access entry of a role of nodes if Sawhorse made it.
func (i *Step) removeEntry(ctx context.Context, p *plan.Plan, role string, w *resource.Writer) error {
	principal := p.Infrastructure.RoleARN(role)
	live, _, err := i.describeEntry(ctx, p, role, principal)
	if err != nil || !live.Found && p.Cluster.Gone {
		return err
	}
	return w.Delete(ctx, live, resource.Removal{
		Wait: poll, Do: func(ctx context.Context) error { return i.deleteEntry(ctx, p, principal) },
	})
}

// association names the Pod Identity association of Karpenter's service account.
const association = "pod identity association of service account " + ownership.Namespace + "/" + ownership.ServiceAccount

// describeAssociation returns the association, an empty one if there is none.
func (i *Step) describeAssociation(ctx context.Context, p *plan.Plan) (resource.Live, *types.PodIdentityAssociation, error) {
	none := resource.Live{Name: association}
	var id *string
	for pages := eks.NewListPodIdentityAssociationsPaginator(i.EKS, &eks.ListPodIdentityAssociationsInput{
		ClusterName: &p.Cluster.Name, Namespace: new(ownership.Namespace), ServiceAccount: new(ownership.ServiceAccount),
	}); id == nil && pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if notFound(err) && p.Cluster.Gone {
			break
		}
		if err != nil {
			return none, nil, fmt.Errorf("pod identity associations of cluster %s: list: %w", p.Cluster.Name, err)
		}
		for _, a := range page.Associations {
			id = a.AssociationId
		}
	}
	if id == nil {
		return none, &types.PodIdentityAssociation{}, nil
	}
	live, err := i.EKS.DescribePodIdentityAssociation(ctx, &eks.DescribePodIdentityAssociationInput{
		ClusterName: &p.Cluster.Name, AssociationId: id,
	})
	if notFound(err) {
		return none, &types.PodIdentityAssociation{}, nil
	}
	if err != nil {
		return none, nil, fmt.Errorf("pod identity association %s: describe: %w", *id, err)
	}
	return resource.Live{Name: association, Found: true, Owned: ours(p, live.Association.Tags)}, live.Association, nil
}

// associate gives the controller its credentials through EKS Pod Identity, and returns when the association was created
// or last changed.
func (i *Step) associate(ctx context.Context, p *plan.Plan, role *iamtypes.Role, w *resource.Writer) (*time.Time, error) {
	found, live, err := i.describeAssociation(ctx, p)
	if err != nil {
		return nil, err
	}
	id, changed := aws.ToString(live.AssociationId), cmp.Or(live.ModifiedAt, live.CreatedAt)
	err = w.Ensure(ctx, found, resource.Wanted{
		Unowned: outcome.Reject("karpenter_enabled", "cluster %s has a Pod Identity association for service account %s/%s that "+
			"Sawhorse did not make; delete it with `aws eks delete-pod-identity-association --cluster-name %s --association-id %s`",
			p.Cluster.Name, ownership.Namespace, ownership.ServiceAccount, p.Cluster.Name, id),
		Create: func(ctx context.Context) error { changed = new(i.Now()); return i.createAssociation(ctx, p, role) },
		Parts: []resource.Write{{
			Aspect: "/role", Read: aws.ToString(live.RoleArn), Value: *role.Arn, Change: outcome.Change{Action: "repaired"},
			Do: func(ctx context.Context) error {
				changed = new(i.Now())
				_, err := i.EKS.UpdatePodIdentityAssociation(ctx, &eks.UpdatePodIdentityAssociationInput{
					ClusterName: &p.Cluster.Name, AssociationId: &id, RoleArn: role.Arn,
				})
				return resource.Wrap(i.unknownToEKS(role, err), "pod identity association %s: update", id)
			},
		}, i.tagsEKS(p, association, live.AssociationArn, live.Tags)},
	})
	return changed, err
}

func (i *Step) createAssociation(ctx context.Context, p *plan.Plan, role *iamtypes.Role) error {
	_, err := i.EKS.CreatePodIdentityAssociation(ctx, &eks.CreatePodIdentityAssociationInput{
		ClusterName: &p.Cluster.Name, Namespace: new(ownership.Namespace), ServiceAccount: new(ownership.ServiceAccount),
		RoleArn: role.Arn, Tags: p.Infrastructure.Tags,
	})
	if errors.As(err, new(*types.ResourceInUseException)) {
		return outcome.Wait(poll, "EKS has a pod identity association of service account %s/%s that it does not show yet, "+
			"or an earlier one that is being deleted", ownership.Namespace, ownership.ServiceAccount)
	}
	return resource.Wrap(i.unknownToEKS(role, err), "pod identity association of cluster %s: create", p.Cluster.Name)
}

// dissociate deletes the association if Sawhorse made it.
func (i *Step) dissociate(ctx context.Context, p *plan.Plan, w *resource.Writer) error {
	found, live, err := i.describeAssociation(ctx, p)
	if err != nil || !found.Found && p.Cluster.Gone {
		return err
	}
	return w.Delete(ctx, found, resource.Removal{Wait: poll, Do: func(ctx context.Context) error {
		_, err := i.EKS.DeletePodIdentityAssociation(ctx, &eks.DeletePodIdentityAssociationInput{
			ClusterName: &p.Cluster.Name, AssociationId: live.AssociationId,
		})
		return resource.Wrap(resource.Ignore(err, notFound), "pod identity association %s: delete", *live.AssociationId)
	}})
}
