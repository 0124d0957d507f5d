package infrastructure

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/iam"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/resource"
)

// inline puts the wanted inline policies and deletes all others: the role is ours, so its policies are too.
func (i *Step) inline(ctx context.Context, wanted wantedRole, w *resource.Writer) error {
	live, err := i.inlineNames(ctx, wanted.Name)
	if err != nil {
		return err
	}
	path := aspect(wanted.Name) + "/policies/"
	for _, name := range slices.Sorted(maps.Keys(wanted.Policies)) {
		same := false
		if slices.Contains(live, name) {
			have, err := i.IAM.GetRolePolicy(ctx, &iam.GetRolePolicyInput{RoleName: &wanted.Name, PolicyName: &name})
			if err != nil && !noSuchEntity(err) {
				return fmt.Errorf("role %s: get policy %s: %w", wanted.Name, name, err)
			}
			same = err == nil && samePolicy(have.PolicyDocument, wanted.Policies[name])
		}
		if err := i.putPolicy(ctx, wanted, name, same, w); err != nil {
			return err
		}
	}
	for _, name := range union(live, w.Unseen(path)) {
		if _, keep := wanted.Policies[name]; keep {
			continue
		}
		err := w.Write(ctx, resource.Write{
			Aspect: path + name, Read: resource.There,
			Change: outcome.Change{Subject: "policy " + name + " of role " + wanted.Name, Action: "deleted"},
			Do: func(ctx context.Context) error {
				_, err := i.IAM.DeleteRolePolicy(ctx, &iam.DeleteRolePolicyInput{RoleName: &wanted.Name, PolicyName: &name})
				return resource.Wrap(resource.Ignore(err, noSuchPolicy), "role %s: delete policy %s", wanted.Name, name)
			},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// putPolicy puts an inline policy, unless it was read as it should be.
func (i *Step) putPolicy(ctx context.Context, wanted wantedRole, name string, same bool, w *resource.Writer) error {
	document := wanted.Policies[name]
	hash := resource.Hash(document)
	return w.Write(ctx, resource.Write{
		Aspect: aspect(wanted.Name) + "/policies/" + name, Read: resource.Read(same, hash), Value: hash,
		Change: outcome.Change{Subject: "policy " + name + " of role " + wanted.Name, Action: "put"},
		Do: func(ctx context.Context) error {
			_, err := i.IAM.PutRolePolicy(ctx, &iam.PutRolePolicyInput{
				RoleName: &wanted.Name, PolicyName: &name, PolicyDocument: new(document.JSON()),
			})
			return resource.Wrap(err, "role %s: put policy %s", wanted.Name, name)
		},
	})
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
func (i *Step) attach(ctx context.Context, wanted wantedRole, w *resource.Writer) error {
	live, err := i.attachedARNs(ctx, wanted.Name)
	if err != nil {
		return err
	}
	path := aspect(wanted.Name) + "/attached/"
	for _, arn := range wanted.Attached {
		err := w.Write(ctx, resource.Write{
			Aspect: path + arn, Read: resource.Read(slices.Contains(live, arn), resource.There), Value: resource.There,
			Change: outcome.Change{Subject: "role " + wanted.Name, Action: "attached " + arn},
			Do: func(ctx context.Context) error {
				_, err := i.IAM.AttachRolePolicy(ctx, &iam.AttachRolePolicyInput{RoleName: &wanted.Name, PolicyArn: &arn})
				if noSuchPolicy(err) {
					return fmt.Errorf("role %s: attach %s: there is no such policy; if node_policy_arns has it, correct it there: %w",
						wanted.Name, arn, err)
				}
				return resource.Wrap(err, "role %s: attach %s", wanted.Name, arn)
			},
		})
		if err != nil {
			return err
		}
	}
	for _, arn := range union(live, w.Unseen(path)) {
		if slices.Contains(wanted.Attached, arn) {
			continue
		}
		err := w.Write(ctx, resource.Write{
			Aspect: path + arn, Read: resource.There, Change: outcome.Change{Subject: "role " + wanted.Name, Action: "detached " + arn},
			Do: func(ctx context.Context) error {
				_, err := i.IAM.DetachRolePolicy(ctx, &iam.DetachRolePolicyInput{RoleName: &wanted.Name, PolicyArn: &arn})
				return resource.Wrap(resource.Ignore(err, noSuchPolicy), "role %s: detach %s", wanted.Name, arn)
			},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// removePolicies deletes the inline policies of a role and detaches its managed ones.
func (i *Step) removePolicies(ctx context.Context, role string, w *resource.Writer) error {
	none := wantedRole{Role: plan.Role{Name: role}}
	if err := i.inline(ctx, none, w); err != nil {
		return err
	}
	return i.attach(ctx, none, w)
}

// union returns what is in one of two lists, sorted.
func union(a, b []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b))))
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

// samePolicy compares a document as IAM returns it, URL-encoded, with one of ours.
func samePolicy(live *string, wanted plan.Document) bool {
	if live == nil {
		return false
	}
	text, err := url.QueryUnescape(*live)
	return err == nil && outcome.SamePolicy(text, wanted.JSON())
}
