// Package infrastructure is Karpenter's identity in AWS: the controller's role and credentials, the nodes' role and their
// access to the cluster.
package infrastructure

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"github.com/sawhorse-io/sawhorse/internal/names"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/steps"
)

// IAM is what the step needs of IAM.
type IAM interface {
	GetRole(context.Context, *iam.GetRoleInput, ...func(*iam.Options)) (*iam.GetRoleOutput, error)
	CreateRole(context.Context, *iam.CreateRoleInput, ...func(*iam.Options)) (*iam.CreateRoleOutput, error)
	DeleteRole(context.Context, *iam.DeleteRoleInput, ...func(*iam.Options)) (*iam.DeleteRoleOutput, error)
	TagRole(context.Context, *iam.TagRoleInput, ...func(*iam.Options)) (*iam.TagRoleOutput, error)
	PutRolePermissionsBoundary(context.Context, *iam.PutRolePermissionsBoundaryInput, ...func(*iam.Options)) (*iam.PutRolePermissionsBoundaryOutput, error)
	UpdateAssumeRolePolicy(context.Context, *iam.UpdateAssumeRolePolicyInput, ...func(*iam.Options)) (*iam.UpdateAssumeRolePolicyOutput, error)
	ListRolePolicies(context.Context, *iam.ListRolePoliciesInput, ...func(*iam.Options)) (*iam.ListRolePoliciesOutput, error)
	GetRolePolicy(context.Context, *iam.GetRolePolicyInput, ...func(*iam.Options)) (*iam.GetRolePolicyOutput, error)
	PutRolePolicy(context.Context, *iam.PutRolePolicyInput, ...func(*iam.Options)) (*iam.PutRolePolicyOutput, error)
	DeleteRolePolicy(context.Context, *iam.DeleteRolePolicyInput, ...func(*iam.Options)) (*iam.DeleteRolePolicyOutput, error)
	ListAttachedRolePolicies(context.Context, *iam.ListAttachedRolePoliciesInput, ...func(*iam.Options)) (*iam.ListAttachedRolePoliciesOutput, error)
	AttachRolePolicy(context.Context, *iam.AttachRolePolicyInput, ...func(*iam.Options)) (*iam.AttachRolePolicyOutput, error)
	ListInstanceProfiles(context.Context, *iam.ListInstanceProfilesInput, ...func(*iam.Options)) (*iam.ListInstanceProfilesOutput, error)
	RemoveRoleFromInstanceProfile(context.Context, *iam.RemoveRoleFromInstanceProfileInput, ...func(*iam.Options)) (*iam.RemoveRoleFromInstanceProfileOutput, error)
	DeleteInstanceProfile(context.Context, *iam.DeleteInstanceProfileInput, ...func(*iam.Options)) (*iam.DeleteInstanceProfileOutput, error)
	DetachRolePolicy(context.Context, *iam.DetachRolePolicyInput, ...func(*iam.Options)) (*iam.DetachRolePolicyOutput, error)
}

// EKS is what the step needs of EKS.
type EKS interface {
	DescribeAccessEntry(context.Context, *eks.DescribeAccessEntryInput, ...func(*eks.Options)) (*eks.DescribeAccessEntryOutput, error)
	CreateAccessEntry(context.Context, *eks.CreateAccessEntryInput, ...func(*eks.Options)) (*eks.CreateAccessEntryOutput, error)
	DeleteAccessEntry(context.Context, *eks.DeleteAccessEntryInput, ...func(*eks.Options)) (*eks.DeleteAccessEntryOutput, error)
	ListPodIdentityAssociations(context.Context, *eks.ListPodIdentityAssociationsInput, ...func(*eks.Options)) (*eks.ListPodIdentityAssociationsOutput, error)
	DescribePodIdentityAssociation(context.Context, *eks.DescribePodIdentityAssociationInput, ...func(*eks.Options)) (*eks.DescribePodIdentityAssociationOutput, error)
	CreatePodIdentityAssociation(context.Context, *eks.CreatePodIdentityAssociationInput, ...func(*eks.Options)) (*eks.CreatePodIdentityAssociationOutput, error)
	UpdatePodIdentityAssociation(context.Context, *eks.UpdatePodIdentityAssociationInput, ...func(*eks.Options)) (*eks.UpdatePodIdentityAssociationOutput, error)
	DeletePodIdentityAssociation(context.Context, *eks.DeletePodIdentityAssociationInput, ...func(*eks.Options)) (*eks.DeletePodIdentityAssociationOutput, error)
	TagResource(context.Context, *eks.TagResourceInput, ...func(*eks.Options)) (*eks.TagResourceOutput, error)
}

// Infrastructure is the step.
type Infrastructure struct {
	IAM IAM
	EKS EKS
	// ControllerBoundary and NodeBoundary are the ARNs of the roles' permissions boundaries; the step's own rights demand them.
	ControllerBoundary, NodeBoundary string
	// Delay is how old what the step makes must be before the step is done.
	Delay time.Duration
	Now   func() time.Time
}

// poll is how long to wait for what uses a role to let go of it, and for AWS to know what is new.
const poll = 5 * time.Second

// Run creates the roles, then the credentials, then the nodes' access entry; or removes them in reverse.
func (i *Infrastructure) Run(ctx context.Context, p *plan.Plan, _ string) (steps.Progress, error) {
	if !p.Infrastructure.Present {
		return i.remove(ctx, p)
	}
	var progress steps.Progress
	err := i.create(ctx, p, &progress)
	return progress.Until(err)
}

func (i *Infrastructure) create(ctx context.Context, p *plan.Plan, progress *steps.Progress) error {
	wanted, err := controllerRole(p)
	if err != nil {
		return err
	}
	wanted.boundary = i.ControllerBoundary
	controller, err := i.role(ctx, p, wanted, progress)
	if err != nil {
		return err
	}
	if wanted, err = nodeRole(p); err != nil {
		return err
	}
	wanted.boundary = i.NodeBoundary
	nodes, err := i.role(ctx, p, wanted, progress)
	if err != nil {
		return err
	}
	progress.Outputs = map[string]string{"karpenter_role_arn": *controller.Arn, "karpenter_node_role_arn": *nodes.Arn}
	made := []*time.Time{controller.CreateDate}
	if p.Infrastructure.PodIdentity {
		associated, err := i.associate(ctx, p, controller, progress)
		if err != nil {
			return err
		}
		made = append(made, associated)
	}
	entered, err := i.entry(ctx, p, nodes, progress)
	if err != nil {
		return err
	}
	return i.settled(append(made, entered))
}

// settled waits until the last of what was made is as old as the delay, and has all be looked at twice until then. Pods get
// credentials only when they are admitted, and EKS's webhook learns of an association seconds after it was made; a role's policies
// reach EC2 seconds after they were put, and Karpenter keeps EC2's refusal for 30 minutes; an access entry that was deleted may
// take the new one along.
func (i *Infrastructure) settled(made []*time.Time) error {
	var left time.Duration
	for _, at := range made {
		if at != nil {
			left = max(left, at.Add(i.Delay).Sub(i.Now()))
		}
	}
	if left == 0 {
		return nil
	}
	return steps.NotYet(min(left, 2*poll), "Karpenter's credentials and access are new, and must be known everywhere before it starts")
}

func (i *Infrastructure) remove(ctx context.Context, p *plan.Plan) (steps.Progress, error) {
	var progress steps.Progress
	if err := i.dissociate(ctx, p, &progress); err != nil {
		return progress, err
	}
	if err := i.removeEntry(ctx, p, &progress); err != nil {
		return progress, err
	}
	if err := i.removeProfiles(ctx, p, &progress); err != nil {
		return progress, err
	}
	for _, name := range []string{p.Infrastructure.ControllerRole, p.Infrastructure.NodeRole} {
		busy, err := i.removeRole(ctx, p, name, &progress)
		if err != nil {
			return progress, err
		}
		if busy {
			return progress.NotYet(poll, "role %s is still in an instance profile", name)
		}
	}
	progress.Outputs = map[string]string{"karpenter_role_arn": "", "karpenter_node_role_arn": ""}
	return progress, nil
}

// ours tells whether tags hold both marks of this rack and cluster.
func ours(p *plan.Plan, tags map[string]string) bool {
	return tags[names.TagRack] == p.Rack && tags[names.TagCluster] == p.Cluster.ARN
}
