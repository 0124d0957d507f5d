package infrastructure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/resource"
)

// wantedRole is a role as it should be: the plan's, with the ARN of the deployment's permissions boundary.
type wantedRole struct {
	plan.Role
	boundary string
}

func noSuchEntity(err error) bool { return errors.As(err, new(*types.NoSuchEntityException)) }

// noSuchRole reports whether IAM does not know the role itself, and not one of its policies.
func noSuchRole(err error) bool {
	var missing *types.NoSuchEntityException
	return errors.As(err, &missing) && strings.Contains(missing.ErrorMessage(), "role with name")
}

func noSuchPolicy(err error) bool { return noSuchEntity(err) && !noSuchRole(err) }

// find returns a role, nil if there is none, and whether it is ours.
func (i *Step) find(ctx context.Context, p *plan.Plan, name string) (*types.Role, bool, error) {
	out, err := i.IAM.GetRole(ctx, &iam.GetRoleInput{RoleName: &name})
	if noSuchEntity(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("role %s: get: %w", name, err)
	}
	return out.Role, ours(p, roleTags(out.Role)), nil
}

// role creates or repairs one role and returns it.
func (i *Step) role(ctx context.Context, p *plan.Plan, wanted wantedRole, w *resource.Writer) (*types.Role, error) {
	live, owned, err := i.find(ctx, p, wanted.Name)
	switch {
	case err != nil:
	case owned && w.Deleted(aspect(wanted.Name)):
		err = outcome.Wait(poll, "IAM still returns role %s, which was deleted less than three minutes ago", wanted.Name)
	case owned:
		err = i.refuseDeleted(live, w)
	}
	if err != nil {
		return nil, err
	}
	if owned && aws.ToString(live.Path) != wanted.Path() {
		return nil, outcome.Reject("rack", "IAM role %s has the path %s, and the stack was deployed for %s (context rolePath), where "+
			"alone it may change roles; IAM cannot move a role: deploy the stack with the earlier rolePath, or turn Karpenter off before you "+
			"change it",
			wanted.Name, aws.ToString(live.Path), wanted.Path())
	}
	err = w.Ensure(ctx, liveRole(wanted.Name, live, owned), resource.Wanted{
		Unowned: outcome.Reject("rack", "IAM role %s exists and was not made by Sawhorse for this rack and cluster "+
			"(IAM has no regions: a rack of the same name in another region collides); delete it, or use another rack name", wanted.Name),
		Create: func(ctx context.Context) (err error) { live, err = i.createRole(ctx, p, wanted); return err },
		Parts:  i.roleParts(p, cmp.Or(live, &types.Role{}), wanted),
	})
	if err == nil {
		err = i.inline(ctx, wanted, w)
	}
	if err == nil {
		err = i.attach(ctx, wanted, w)
	}
	return live, i.waitIfNew(live, err)
}

// aspect names a role in the record of what was written.
func aspect(role string) string { return "role " + role }

func liveRole(name string, live *types.Role, owned bool) resource.Live {
	return resource.Live{Name: aspect(name), Found: live != nil, Owned: owned}
}

// refuseDeleted returns a wait if a role is one that Sawhorse tried to delete moments ago, though no answer said that it
// did, or in whose place it has made another since. IAM's replicas may still return it, and every write about it fails.
func (i *Step) refuseDeleted(live *types.Role, w *resource.Writer) error {
	deletion, is := w.Removed(aspect(*live.RoleName))
	earlier := live.CreateDate != nil && live.CreateDate.Before(deletion.Begun.Truncate(time.Second)) // IAM's times are whole seconds
	if !is || !earlier || !outcome.Young(&deletion.Begun, i.Now()) {
		return nil
	}
	return outcome.Wait(poll, "IAM still returns role %s, which was deleted moments ago", *live.RoleName)
}

// waitIfNew turns the error of a call about a new role into a wait. IAM's replicas lag: one that does not know the role
// answers NoSuchEntity, or checks rights for a role without a path, which this function does not have, and answers
// AccessDenied. An error about a missing policy is returned as it is, and so is that of a creation: there is no role then.
func (i *Step) waitIfNew(role *types.Role, err error) error {
	denied := outcome.Code(err) == "AccessDenied"
	if role == nil || !noSuchRole(err) && !denied || !outcome.Young(role.CreateDate, i.Now()) {
		return err
	}
	return outcome.Wait(poll, "IAM does not know role %s everywhere yet: it was made moments ago", *role.RoleName)
}

// roleParts returns the permissions boundary, the trust policy and the tags of a role. The boundary comes first: without it
// this function may not write the role's policies. The boundary's ARN changes when the stack is removed and deployed again.
func (i *Step) roleParts(p *plan.Plan, live *types.Role, wanted wantedRole) []resource.Write {
	boundary := ""
	if b := live.PermissionsBoundary; b != nil && b.PermissionsBoundaryArn != nil {
		boundary = *b.PermissionsBoundaryArn
	}
	trust := resource.Hash(wanted.Trust)
	return []resource.Write{{
		Aspect: "/boundary", Read: boundary, Value: wanted.boundary,
		Change: outcome.Change{Subject: "permissions boundary of role " + wanted.Name, Action: "repaired"},
		Do: func(ctx context.Context) error {
			_, err := i.IAM.PutRolePermissionsBoundary(ctx, &iam.PutRolePermissionsBoundaryInput{
				RoleName: &wanted.Name, PermissionsBoundary: &wanted.boundary,
			})
			return resource.Wrap(err, "role %s: put permissions boundary", wanted.Name)
		},
	}, {
		Aspect: "/trust", Read: resource.Read(samePolicy(live.AssumeRolePolicyDocument, wanted.Trust), trust), Value: trust,
		Change: outcome.Change{Subject: "trust of role " + wanted.Name, Action: "repaired"},
		Do: func(ctx context.Context) error {
			_, err := i.IAM.UpdateAssumeRolePolicy(ctx, &iam.UpdateAssumeRolePolicyInput{
				RoleName: &wanted.Name, PolicyDocument: new(wanted.Trust.JSON()),
			})
			return resource.Wrap(err, "role %s: update trust", wanted.Name)
		},
	}, resource.Tags(roleTags(live), p.Infrastructure.Tags, func(ctx context.Context) error {
		_, err := i.IAM.TagRole(ctx, &iam.TagRoleInput{RoleName: &wanted.Name, Tags: iamTags(p.Infrastructure.Tags)})
		return resource.Wrap(err, "role %s: tag", wanted.Name)
	})}
}

func (i *Step) createRole(ctx context.Context, p *plan.Plan, wanted wantedRole) (*types.Role, error) {
	out, err := i.IAM.CreateRole(ctx, &iam.CreateRoleInput{
		RoleName: &wanted.Name, Path: new(wanted.Path()), Description: &wanted.Description,
		AssumeRolePolicyDocument: new(wanted.Trust.JSON()), PermissionsBoundary: &wanted.boundary, Tags: iamTags(p.Infrastructure.Tags),
	})
	if errors.As(err, new(*types.EntityAlreadyExistsException)) {
		// An earlier call created it, and the read came from a replica that does not know it yet.
		return nil, outcome.Wait(poll, "IAM does not know role %s everywhere yet: it exists and is not found", wanted.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("role %s: create: %w", wanted.Name, err)
	}
	return out.Role, nil
}

// removeRole deletes a role of ours with its policies. It waits while an instance profile holds the role: Karpenter
// deletes its profiles with the EC2NodeClass, and IAM may lag behind.
func (i *Step) removeRole(ctx context.Context, p *plan.Plan, name string, w *resource.Writer) error {
	live, owned, err := i.find(ctx, p, name)
	if err != nil {
		return err
	}
	return w.Delete(ctx, liveRole(name, live, owned), resource.Removal{
		Wait: poll,
		First: func(ctx context.Context) error {
			return i.waitIfNew(live, i.waitIfDeleted(live, w, i.removePolicies(ctx, name, w)))
		},
		Do: func(ctx context.Context) error { return i.deleteRole(ctx, p, live, w) },
	})
}

// deleteRole deletes a role that has no policies. The answer may not say whether the role is gone: if the first answer was
// lost, the SDK retries, and IAM checks rights for a missing role as for one without a path, so it answers AccessDenied.
func (i *Step) deleteRole(ctx context.Context, p *plan.Plan, live *types.Role, w *resource.Writer) error {
	_, err := i.IAM.DeleteRole(ctx, &iam.DeleteRoleInput{RoleName: live.RoleName})
	if errors.As(err, new(*types.DeleteConflictException)) {
		return resource.NotMade(outcome.Wait(poll, "role %s is still in an instance profile", *live.RoleName))
	}
	if err == nil {
		return nil
	}
	left, _, failed := i.find(ctx, p, *live.RoleName)
	if failed != nil || left == nil {
		return failed
	}
	return i.waitIfDeleted(live, w, fmt.Errorf("role %s: delete: %w", *live.RoleName, err))
}

// waitIfDeleted turns the error of a call about a role that has just been deleted into a wait. The answer to that deletion
// was lost, and IAM's replicas may still return the role for some seconds while writes about it answer NoSuchEntity or
// AccessDenied.
func (i *Step) waitIfDeleted(live *types.Role, w *resource.Writer, err error) error {
	if !noSuchEntity(err) && outcome.Code(err) != "AccessDenied" {
		return err
	}
	return cmp.Or(i.refuseDeleted(live, w), err)
}
