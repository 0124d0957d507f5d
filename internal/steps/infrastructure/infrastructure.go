// Package infrastructure creates and removes Karpenter's identity in AWS: the controller's role and credentials, the
// nodes' roles, and the nodes' access to the cluster.
package infrastructure

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/resource"
)

// IAM lists the IAM calls of the step.
type IAM interface {
	GetRole(context.Context, *iam.GetRoleInput, ...func(*iam.Options)) (*iam.GetRoleOutput, error)
	CreateRole(context.Context, *iam.CreateRoleInput, ...func(*iam.Options)) (*iam.CreateRoleOutput, error)
	DeleteRole(context.Context, *iam.DeleteRoleInput, ...func(*iam.Options)) (*iam.DeleteRoleOutput, error)
	TagRole(context.Context, *iam.TagRoleInput, ...func(*iam.Options)) (*iam.TagRoleOutput, error)
	PutRolePermissionsBoundary(context.Context, *iam.PutRolePermissionsBoundaryInput,
		...func(*iam.Options)) (*iam.PutRolePermissionsBoundaryOutput, error)
	UpdateAssumeRolePolicy(context.Context, *iam.UpdateAssumeRolePolicyInput, ...func(*iam.Options)) (*iam.UpdateAssumeRolePolicyOutput, error)
	ListRolePolicies(context.Context, *iam.ListRolePoliciesInput, ...func(*iam.Options)) (*iam.ListRolePoliciesOutput, error)
	GetRolePolicy(context.Context, *iam.GetRolePolicyInput, ...func(*iam.Options)) (*iam.GetRolePolicyOutput, error)
	PutRolePolicy(context.Context, *iam.PutRolePolicyInput, ...func(*iam.Options)) (*iam.PutRolePolicyOutput, error)
	DeleteRolePolicy(context.Context, *iam.DeleteRolePolicyInput, ...func(*iam.Options)) (*iam.DeleteRolePolicyOutput, error)
	iam.ListAttachedRolePoliciesAPIClient
	AttachRolePolicy(context.Context, *iam.AttachRolePolicyInput, ...func(*iam.Options)) (*iam.AttachRolePolicyOutput, error)
	ListInstanceProfiles(context.Context, *iam.ListInstanceProfilesInput, ...func(*iam.Options)) (*iam.ListInstanceProfilesOutput, error)
	RemoveRoleFromInstanceProfile(context.Context, *iam.RemoveRoleFromInstanceProfileInput,
		...func(*iam.Options)) (*iam.RemoveRoleFromInstanceProfileOutput, error)
	DeleteInstanceProfile(context.Context, *iam.DeleteInstanceProfileInput, ...func(*iam.Options)) (*iam.DeleteInstanceProfileOutput, error)
	DetachRolePolicy(context.Context, *iam.DetachRolePolicyInput, ...func(*iam.Options)) (*iam.DetachRolePolicyOutput, error)
}

// EKS lists the EKS calls of the step.
type EKS interface {
	DescribeAccessEntry(context.Context, *eks.DescribeAccessEntryInput, ...func(*eks.Options)) (*eks.DescribeAccessEntryOutput, error)
	CreateAccessEntry(context.Context, *eks.CreateAccessEntryInput, ...func(*eks.Options)) (*eks.CreateAccessEntryOutput, error)
	DeleteAccessEntry(context.Context, *eks.DeleteAccessEntryInput, ...func(*eks.Options)) (*eks.DeleteAccessEntryOutput, error)
	eks.ListPodIdentityAssociationsAPIClient
	DescribePodIdentityAssociation(context.Context, *eks.DescribePodIdentityAssociationInput,
		...func(*eks.Options)) (*eks.DescribePodIdentityAssociationOutput, error)
	CreatePodIdentityAssociation(context.Context, *eks.CreatePodIdentityAssociationInput,
		...func(*eks.Options)) (*eks.CreatePodIdentityAssociationOutput, error)
	UpdatePodIdentityAssociation(context.Context, *eks.UpdatePodIdentityAssociationInput,
		...func(*eks.Options)) (*eks.UpdatePodIdentityAssociationOutput, error)
	DeletePodIdentityAssociation(context.Context, *eks.DeletePodIdentityAssociationInput,
		...func(*eks.Options)) (*eks.DeletePodIdentityAssociationOutput, error)
	TagResource(context.Context, *eks.TagResourceInput, ...func(*eks.Options)) (*eks.TagResourceOutput, error)
}

// Step creates and removes the roles, the controller's credentials and the nodes' access entry.
type Step struct {
	IAM IAM
	EKS EKS
	// ControllerBoundary and NodeBoundary are the ARNs of the roles' permissions boundaries. The function's own policy
	// allows it to create and write only roles that have them. They are this deployment's, also for a stored plan.
	ControllerBoundary, NodeBoundary string
	Written                          resource.Records
	// Delay is the minimum age of what the step creates before the step is done.
	Delay time.Duration
	Now   func() time.Time
}

// poll is how long to wait until a role is no longer in use, or until AWS knows what is new.
const poll = 5 * time.Second

// Run creates the roles, the credentials and the nodes' access entry in this order, or removes them in reverse.
func (i *Step) Run(ctx context.Context, p *plan.Plan, _ string) (outcome.Progress, error) {
	do := i.create
	if !p.Infrastructure.Present {
		do = i.remove
	}
	w, err := resource.Open(ctx, i.Written, p.Rack, "infrastructure", i.Now)
	if err != nil {
		return outcome.Progress{}, err
	}
	return w.End(ctx, do(ctx, p, w))
}

func (i *Step) create(ctx context.Context, p *plan.Plan, w *resource.Writer) error {
	controller, err := i.role(ctx, p, wantedRole{p.Infrastructure.Controller, i.ControllerBoundary}, w)
	if err != nil {
		return err
	}
	nodes, err := i.role(ctx, p, wantedRole{p.Infrastructure.Nodes, i.NodeBoundary}, w)
	if err != nil {
		return err
	}
	w.Outputs = map[string]string{"karpenter_role_arn": *controller.Arn, "karpenter_node_role_arn": *nodes.Arn}
	made := []*time.Time{controller.CreateDate}
	entered, err := i.buildNodes(ctx, p, w)
	if err != nil {
		return err
	}
	made = append(made, entered)
	if p.Infrastructure.PodIdentity {
		associated, err := i.associate(ctx, p, controller, w)
		if err != nil {
			return err
		}
		made = append(made, associated)
	}
	if entered, err = i.entry(ctx, p, nodes, w); err != nil {
		return err
	}
	if err := i.awaitAge(append(made, entered)); err != nil {
		return err
	}
	return i.awaitPolicies(p, w)
}

// awaitPolicies returns a wait if this call has put a policy of the controller's role. Another version of Karpenter needs
// its rights when it starts, and policies reach EC2 seconds after they were put. The next call finds them as they should be.
func (i *Step) awaitPolicies(p *plan.Plan, w *resource.Writer) error {
	role := "role " + p.Infrastructure.Controller.Name
	put := func(c outcome.Change) bool { return c.Action == "put" && strings.HasSuffix(c.Subject, " of "+role) }
	if !slices.ContainsFunc(w.Changes, put) {
		return nil
	}
	return outcome.Wait(i.Delay, "the policies of %s have changed, and must be known everywhere before Karpenter uses them", role)
}

// awaitAge returns a wait until everything that was created is at least Delay old. It waits at most 10 s at a time, so
// that each call of the step checks everything again. There are three reasons to wait:
//   - A pod gets credentials only at admission, and EKS's webhook learns of an association seconds after its creation.
//   - A role's policies reach EC2 seconds after they were put, and Karpenter caches EC2's refusal for 30 minutes.
//   - The deletion of an earlier access entry may delete the new one too.
func (i *Step) awaitAge(made []*time.Time) error {
	var left time.Duration
	for _, at := range made {
		if at != nil {
			left = max(left, at.Add(i.Delay).Sub(i.Now()))
		}
	}
	if left == 0 {
		return nil
	}
	return outcome.Wait(min(left, 2*poll), "Karpenter's credentials and access are new, and must be known everywhere before it starts")
}

func (i *Step) remove(ctx context.Context, p *plan.Plan, w *resource.Writer) error {
	if err := i.dissociate(ctx, p, w); err != nil {
		return err
	}
	nodes := []string{p.Infrastructure.Nodes.Name, ownership.BuildNodeRole(p.Rack)}
	for _, role := range nodes {
		if err := i.removeEntry(ctx, p, role, w); err != nil {
			return err
		}
	}
	if err := i.removeProfiles(ctx, p, w); err != nil {
		return err
	}
	for _, role := range append([]string{p.Infrastructure.Controller.Name}, nodes...) {
		if err := i.removeRole(ctx, p, role, w); err != nil {
			return err
		}
	}
	w.Outputs = map[string]string{"karpenter_role_arn": "", "karpenter_node_role_arn": "", buildOutput: "", plan.OutputBaseline: ""}
	return nil
}

// ours reports whether tags hold both ownership tags: that of this rack and that of this cluster.
func ours(p *plan.Plan, tags map[string]string) bool {
	return ownership.Owned(tags, p.Rack, p.Cluster.ARN)
}
