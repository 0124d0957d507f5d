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
func (i *Step) entry(ctx context.Context, p *plan.Plan, role *iamtypes.Role, w *resource.Writer) (*time.Time, error) {
	subject := entryOf(*role.RoleName)
	live, err := i.describeEntry(ctx, p, *role.Arn)
	if err != nil {
		return nil, err
	}
	if live != nil && !w.Deleted(subject) {
		good := working(live, role)
		if good && !ours(p, live.Tags) {
			return nil, nil // an administrator's entry: it works, and with ownership tags Sawhorse would later delete it
		}
		if good {
			return live.CreatedAt, i.tagEKS(ctx, p, live.AccessEntryArn, live.Tags, subject, w)
		}
		if !w.Confirms(subject+"/type", nodeEntry) { // it may be the one that was replaced
			return nil, outcome.NotYet(poll, "EKS still shows the %s from before it was replaced less than three minutes ago", subject)
		}
		if err := i.deleteEntry(ctx, p, *role.RoleName, " that did not work", w); err != nil {
			return nil, err
		}
	}
	err = w.Write(ctx, resource.Write{
		Aspect: subject, Value: there, Change: outcome.Change{Subject: subject, Action: "created"},
		Parts: map[string]string{"/tags": resource.Hash(p.Infrastructure.Tags)},
		Do:    func(ctx context.Context) error { return i.createEntry(ctx, p, role) },
	})
	return new(i.Now()), err
}

// entryOf names the access entry of a role of nodes.
func entryOf(role string) string { return "access entry of role " + role }

func (i *Step) createEntry(ctx context.Context, p *plan.Plan, role *iamtypes.Role) error {
	_, err := i.EKS.CreateAccessEntry(ctx, &eks.CreateAccessEntryInput{
		ClusterName: &p.Cluster.Name, PrincipalArn: role.Arn, Type: new(nodeEntry), Tags: p.Infrastructure.Tags,
	})
	if errors.As(err, new(*types.ResourceInUseException)) {
		return outcome.NotYet(poll, "EKS has an access entry of role %s that it does not show yet, or an earlier one that is being deleted",
			*role.RoleName)
	}
	return wrap(i.unknownToEKS(role, err), "access entry %s: create", *role.Arn)
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
		return resource.NotMade(outcome.NotYet(poll, "EKS does not know role %s yet: it was made less than a minute ago", *role.RoleName))
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

// deleteEntry deletes the access entry of a role of nodes. note is added to its name in the report.
func (i *Step) deleteEntry(ctx context.Context, p *plan.Plan, role, note string, w *resource.Writer) error {
	principal := plan.RoleARN(p.Cluster, role)
	return w.Write(ctx, resource.Write{
		Aspect: entryOf(role), Read: there, Change: outcome.Change{Subject: entryOf(role) + note, Action: "deleted"},
		Do: func(ctx context.Context) error {
			_, err := i.EKS.DeleteAccessEntry(ctx, &eks.DeleteAccessEntryInput{ClusterName: &p.Cluster.Name, PrincipalArn: &principal})
			return wrap(ignore(err, notFound), "access entry %s: delete", principal)
		},
	})
}

// removeEntry deletes the access entry of a role of nodes if Sawhorse made it.
func (i *Step) removeEntry(ctx context.Context, p *plan.Plan, role string, w *resource.Writer) error {
	live, err := i.describeEntry(ctx, p, plan.RoleARN(p.Cluster, role))
	if err == nil && live == nil && !p.Cluster.Gone && w.Created(entryOf(role)) {
		return resource.NotShown(poll, entryOf(role))
	}
	if err != nil || live == nil || w.Deleted(entryOf(role)) || !ours(p, live.Tags) {
		return err
	}
	return i.deleteEntry(ctx, p, role, "", w)
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

// association of the controller's service account, in the record of what was written.
const association = "pod identity association of service account " + ownership.Namespace + "/" + ownership.ServiceAccount

// associate gives the controller its credentials through EKS Pod Identity, and returns when the association was created
// or last changed.
func (i *Step) associate(ctx context.Context, p *plan.Plan, role *iamtypes.Role, w *resource.Writer) (*time.Time, error) {
	live, err := i.association(ctx, p)
	if err != nil {
		return nil, err
	}
	if live == nil || w.Deleted(association) {
		return new(i.Now()), w.Write(ctx, resource.Write{
			Aspect: association, Value: there, Change: outcome.Change{Subject: association, Action: "created"},
			Parts: map[string]string{"/role": *role.Arn, "/tags": resource.Hash(p.Infrastructure.Tags)},
			Do:    func(ctx context.Context) error { return i.createAssociation(ctx, p, role) },
		})
	}
	if !ours(p, live.Tags) {
		return nil, outcome.Reject("karpenter_enabled", "cluster %s has a Pod Identity association for service account %s/%s that "+
			"Sawhorse did not make; delete it with `aws eks delete-pod-identity-association --cluster-name %s --association-id %s`",
			p.Cluster.Name, ownership.Namespace, ownership.ServiceAccount, p.Cluster.Name, *live.AssociationId)
	}
	err = w.Write(ctx, resource.Write{
		Aspect: association + "/role", Read: aws.ToString(live.RoleArn), Value: *role.Arn,
		Change: outcome.Change{Subject: association, Action: "repaired"},
		Do: func(ctx context.Context) error {
			live.ModifiedAt = new(i.Now())
			_, err := i.EKS.UpdatePodIdentityAssociation(ctx, &eks.UpdatePodIdentityAssociationInput{
				ClusterName: &p.Cluster.Name, AssociationId: live.AssociationId, RoleArn: role.Arn,
			})
			return wrap(i.unknownToEKS(role, err), "pod identity association %s: update", *live.AssociationId)
		},
	})
	if err != nil {
		return nil, err
	}
	return cmp.Or(live.ModifiedAt, live.CreatedAt), i.tagEKS(ctx, p, live.AssociationArn, live.Tags, association, w)
}

func (i *Step) createAssociation(ctx context.Context, p *plan.Plan, role *iamtypes.Role) error {
	_, err := i.EKS.CreatePodIdentityAssociation(ctx, &eks.CreatePodIdentityAssociationInput{
		ClusterName: &p.Cluster.Name, Namespace: new(ownership.Namespace), ServiceAccount: new(ownership.ServiceAccount),
		RoleArn: role.Arn, Tags: p.Infrastructure.Tags,
	})
	if errors.As(err, new(*types.ResourceInUseException)) {
		return outcome.NotYet(poll, "EKS has a pod identity association of service account %s/%s that it does not show yet, "+
			"or an earlier one that is being deleted", ownership.Namespace, ownership.ServiceAccount)
	}
	return wrap(i.unknownToEKS(role, err), "pod identity association of cluster %s: create", p.Cluster.Name)
}

// dissociate deletes the association if Sawhorse made it.
func (i *Step) dissociate(ctx context.Context, p *plan.Plan, w *resource.Writer) error {
	live, err := i.association(ctx, p)
	if err == nil && live == nil && !p.Cluster.Gone && w.Created(association) {
		return resource.NotShown(poll, association)
	}
	if err != nil || live == nil || w.Deleted(association) || !ours(p, live.Tags) {
		return err
	}
	return w.Write(ctx, resource.Write{
		Aspect: association, Read: there, Change: outcome.Change{Subject: association, Action: "deleted"},
		Do: func(ctx context.Context) error {
			_, err := i.EKS.DeletePodIdentityAssociation(ctx, &eks.DeletePodIdentityAssociationInput{ClusterName: &p.Cluster.Name,
				AssociationId: live.AssociationId})
			return wrap(ignore(err, notFound), "pod identity association %s: delete", *live.AssociationId)
		},
	})
}
