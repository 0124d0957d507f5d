package infrastructure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// wantedRole is a role as it should be: the plan's, with the ARN of the deployment's permissions boundary.
type wantedRole struct {
	plan.Role
	boundary string
}

func noSuchEntity(err error) bool { return errors.As(err, new(*types.NoSuchEntityException)) }

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
func (i *Step) role(ctx context.Context, p *plan.Plan, wanted wantedRole, progress *outcome.Progress) (*types.Role, error) {
	live, owned, err := i.find(ctx, p, wanted.Name)
	if err != nil {
		return nil, err
	}
	if live != nil && !owned {
		return nil, outcome.Reject("rack", "IAM role %s exists and was not made by Sawhorse for this rack and cluster "+
			"(IAM has no regions: a rack of the same name in another region collides); delete it, or use another rack name", wanted.Name)
	}
	if live == nil {
		if live, err = i.createRole(ctx, p, wanted); err != nil {
			return nil, err
		}
		progress.Changed("created", "role %s", wanted.Name)
	} else {
		if err := i.refuseDeleted(ctx, p, live); err != nil {
			return nil, err
		}
		if err := i.repairRole(ctx, p, live, wanted, progress); err != nil {
			return nil, i.tooEarly(live, err)
		}
	}
	if err := i.inline(ctx, wanted, progress); err != nil {
		return nil, i.tooEarly(live, err)
	}
	if err := i.attach(ctx, wanted, progress); err != nil {
		return nil, i.tooEarly(live, err)
	}
	return live, nil
}

// refuseDeleted returns a wait if a role is one that Sawhorse deleted less than a minute ago. IAM's replicas may still
// return it, and every write about it fails.
func (i *Step) refuseDeleted(ctx context.Context, p *plan.Plan, live *types.Role) error {
	at, err := i.Deletions.Deletion(ctx, p.Rack, *live.RoleName)
	if err != nil || !outcome.Young(&at, i.Now()) || !noted(at, live) {
		return err
	}
	return outcome.NotYet(poll, "IAM still returns role %s, which was deleted less than a minute ago", *live.RoleName)
}

// noted reports whether a recorded deletion is one of this role, and not of an earlier role of the same name.
func noted(at time.Time, live *types.Role) bool {
	return live.CreateDate != nil && !live.CreateDate.After(at)
}

// tooEarly turns the error of a call about a new role into a wait. IAM's replicas lag: one that does not know the role
// answers NoSuchEntity, or checks rights for a role without a path, which this function does not have, and answers
// AccessDenied. An error about a missing policy is returned as it is.
func (i *Step) tooEarly(role *types.Role, err error) error {
	var missing *types.NoSuchEntityException
	unknown := errors.As(err, &missing) && strings.Contains(missing.ErrorMessage(), "role with name")
	denied := outcome.Code(err) == "AccessDenied"
	if !unknown && !denied || !outcome.Young(role.CreateDate, i.Now()) {
		return err
	}
	return outcome.NotYet(poll, "IAM does not know role %s everywhere yet: it was made less than a minute ago", *role.RoleName)
}

// repairRole corrects the permissions boundary, the trust policy and the tags of a role of ours. The boundary comes
// first: without it this function may not write the role's policies. The boundary's ARN changes when the stack is
// removed and deployed again.
func (i *Step) repairRole(ctx context.Context, p *plan.Plan, live *types.Role, wanted wantedRole, progress *outcome.Progress) error {
	if b := live.PermissionsBoundary; b == nil || b.PermissionsBoundaryArn == nil || *b.PermissionsBoundaryArn != wanted.boundary {
		_, err := i.IAM.PutRolePermissionsBoundary(ctx, &iam.PutRolePermissionsBoundaryInput{
			RoleName: &wanted.Name, PermissionsBoundary: &wanted.boundary,
		})
		if err != nil {
			return fmt.Errorf("role %s: put permissions boundary: %w", wanted.Name, err)
		}
		progress.Changed("repaired", "permissions boundary of role %s", wanted.Name)
	}
	if !samePolicy(live.AssumeRolePolicyDocument, wanted.Trust) {
		_, err := i.IAM.UpdateAssumeRolePolicy(ctx, &iam.UpdateAssumeRolePolicyInput{
			RoleName: &wanted.Name, PolicyDocument: new(wanted.Trust.JSON()),
		})
		if err != nil {
			return fmt.Errorf("role %s: update trust: %w", wanted.Name, err)
		}
		progress.Changed("repaired", "trust of role %s", wanted.Name)
	}
	return i.tagRole(ctx, p, live, progress)
}

func (i *Step) createRole(ctx context.Context, p *plan.Plan, wanted wantedRole) (*types.Role, error) {
	input := &iam.CreateRoleInput{
		RoleName: &wanted.Name, Path: new(ownership.IAMPath), Description: &wanted.Description,
		AssumeRolePolicyDocument: new(wanted.Trust.JSON()), PermissionsBoundary: &wanted.boundary, Tags: iamTags(p.Infrastructure.Tags),
	}
	out, err := i.IAM.CreateRole(ctx, input)
	if errors.As(err, new(*types.EntityAlreadyExistsException)) {
		// An earlier call created it, and the read came from a replica that does not know it yet.
		return nil, outcome.NotYet(poll, "IAM does not know role %s everywhere yet: it exists and is not found", wanted.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("role %s: create: %w", wanted.Name, err)
	}
	return out.Role, nil
}

// inline puts the wanted inline policies and deletes all others: the role is ours, so its policies are too.
func (i *Step) inline(ctx context.Context, wanted wantedRole, progress *outcome.Progress) error {
	live, err := i.inlineNames(ctx, wanted.Name)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(wanted.Policies)) {
		document := wanted.Policies[name]
		if slices.Contains(live, name) {
			have, err := i.IAM.GetRolePolicy(ctx, &iam.GetRolePolicyInput{RoleName: &wanted.Name, PolicyName: &name})
			if err != nil && !noSuchEntity(err) {
				return fmt.Errorf("role %s: get policy %s: %w", wanted.Name, name, err)
			}
			if err == nil && samePolicy(have.PolicyDocument, document) {
				continue
			}
		}
		_, err := i.IAM.PutRolePolicy(ctx, &iam.PutRolePolicyInput{
			RoleName: &wanted.Name, PolicyName: &name, PolicyDocument: new(document.JSON()),
		})
		if err != nil {
			return fmt.Errorf("role %s: put policy %s: %w", wanted.Name, name, err)
		}
		progress.Changed("put", "policy %s of role %s", name, wanted.Name)
	}
	for _, name := range live {
		if _, keep := wanted.Policies[name]; keep {
			continue
		}
		_, err := i.IAM.DeleteRolePolicy(ctx, &iam.DeleteRolePolicyInput{RoleName: &wanted.Name, PolicyName: &name})
		if err != nil && !noSuchEntity(err) {
			return fmt.Errorf("role %s: delete policy %s: %w", wanted.Name, name, err)
		}
		progress.Changed("deleted", "policy %s of role %s", name, wanted.Name)
	}
	return nil
}

func (i *Step) inlineNames(ctx context.Context, role string) ([]string, error) {
	var all []string
	for pages := iam.NewListRolePoliciesPaginator(i.IAM, &iam.ListRolePoliciesInput{RoleName: &role}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("role %s: list policies: %w", role, err)
		}
		all = append(all, page.PolicyNames...)
	}
	return all, nil
}

// attach attaches the wanted managed policies and detaches others.
func (i *Step) attach(ctx context.Context, wanted wantedRole, progress *outcome.Progress) error {
	live, err := i.attachedARNs(ctx, wanted.Name)
	if err != nil {
		return err
	}
	for _, arn := range wanted.Attached {
		if slices.Contains(live, arn) {
			continue
		}
		if _, err := i.IAM.AttachRolePolicy(ctx, &iam.AttachRolePolicyInput{RoleName: &wanted.Name, PolicyArn: &arn}); err != nil {
			return fmt.Errorf("role %s: attach %s: %w", wanted.Name, arn, err)
		}
		progress.Changed("attached "+arn, "role %s", wanted.Name)
	}
	for _, arn := range live {
		if slices.Contains(wanted.Attached, arn) {
			continue
		}
		_, err := i.IAM.DetachRolePolicy(ctx, &iam.DetachRolePolicyInput{RoleName: &wanted.Name, PolicyArn: &arn})
		if err != nil && !noSuchEntity(err) {
			return fmt.Errorf("role %s: detach %s: %w", wanted.Name, arn, err)
		}
		progress.Changed("detached "+arn, "role %s", wanted.Name)
	}
	return nil
}

func (i *Step) attachedARNs(ctx context.Context, role string) ([]string, error) {
	var all []string
	for pages := iam.NewListAttachedRolePoliciesPaginator(i.IAM, &iam.ListAttachedRolePoliciesInput{RoleName: &role}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("role %s: list attached policies: %w", role, err)
		}
		for _, policy := range page.AttachedPolicies {
			all = append(all, *policy.PolicyArn)
		}
	}
	return all, nil
}

// removeRole deletes a role of ours with its policies. It waits while an instance profile holds the role: Karpenter
// deletes its profiles with the EC2NodeClass, and IAM may lag behind.
func (i *Step) removeRole(ctx context.Context, p *plan.Plan, name string, progress *outcome.Progress) error {
	live, owned, err := i.find(ctx, p, name)
	if err != nil || !owned {
		return err
	}
	if err := i.removePolicies(ctx, name); err != nil {
		return i.tooLate(ctx, p, live, err)
	}
	if err := i.noteDeletion(ctx, p, live); err != nil {
		return err
	}
	_, err = i.IAM.DeleteRole(ctx, &iam.DeleteRoleInput{RoleName: &name})
	if errors.As(err, new(*types.DeleteConflictException)) {
		return outcome.NotYet(poll, "role %s is still in an instance profile", name)
	}
	if err != nil {
		// The answer does not say whether the role is gone: if the first answer was lost, the SDK retries, and IAM checks
		// rights for a missing role as for one without a path, so it answers AccessDenied.
		left, _, look := i.find(ctx, p, name)
		if look != nil {
			return look
		}
		if left != nil {
			return i.tooLate(ctx, p, live, fmt.Errorf("role %s: delete: %w", name, err))
		}
	}
	progress.Changed("deleted", "role %s", name)
	return nil
}

// removePolicies deletes the inline policies of a role and detaches its managed ones. A removal reports only the role.
func (i *Step) removePolicies(ctx context.Context, role string) error {
	none, unreported := wantedRole{Role: plan.Role{Name: role}}, new(outcome.Progress)
	if err := i.inline(ctx, none, unreported); err != nil {
		return err
	}
	return i.attach(ctx, none, unreported)
}

// renoteAfter is the age at which a recorded deletion no longer counts as the one that is being tried.
const renoteAfter = 5 * time.Minute

// noteDeletion records that a role is about to be deleted. It keeps the record of an attempt that has just been made:
// with a new time for each attempt, a refusal that does not end would look new each time.
func (i *Step) noteDeletion(ctx context.Context, p *plan.Plan, live *types.Role) error {
	at, err := i.Deletions.Deletion(ctx, p.Rack, *live.RoleName)
	if err != nil || noted(at, live) && i.Now().Sub(at) < renoteAfter {
		return err
	}
	return i.Deletions.NoteDeletion(ctx, p.Rack, *live.RoleName, i.Now())
}

// tooLate turns the error of a call about a role that has just been deleted into a wait. The answer to that deletion
// was lost, and IAM's replicas may still return the role for some seconds while writes about it answer NoSuchEntity or
// AccessDenied.
func (i *Step) tooLate(ctx context.Context, p *plan.Plan, live *types.Role, err error) error {
	if !noSuchEntity(err) && outcome.Code(err) != "AccessDenied" {
		return err
	}
	return cmp.Or(i.refuseDeleted(ctx, p, live), err)
}

// samePolicy compares a document as IAM returns it, URL-encoded, with one of ours.
func samePolicy(live *string, wanted plan.Document) bool {
	if live == nil {
		return false
	}
	text, err := url.QueryUnescape(*live)
	return err == nil && outcome.SamePolicy(text, wanted.JSON())
}
