package awsfake

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
)

// Role is an IAM role.
type Role struct {
	types.Role
	// Trust is the trust policy as the caller sent it.
	Trust string
	// Inline are policy documents by name.
	Inline   map[string]string
	Attached []string
}

// Profile is an instance profile and the role in it.
type Profile struct{ Path, Role string }

// IAM holds roles and instance profiles by name, and the client ids of OIDC providers by ARN.
type IAM struct {
	*Calls
	Roles     map[string]*Role
	Providers map[string][]string
	Profiles  map[string]*Profile
	// Missing are the ARNs of policies that do not exist.
	Missing map[string]bool

	deleted map[string]gone[Role]
	past    past[Role]
}

func newIAM(calls *Calls) *IAM {
	return &IAM{
		Calls: calls, Roles: map[string]*Role{}, Providers: map[string][]string{}, Profiles: map[string]*Profile{},
		deleted: map[string]gone[Role]{}, past: past[Role]{},
	}
}

// maxInline is IAM's limit for all inline policies of a role together, in characters.
const maxInline = 10_240

func (i *IAM) role(call string, name *string) (*Role, error) {
	if err := i.call("IAM."+call, value(name)); err != nil {
		return nil, err
	}
	role := i.Roles[value(name)]
	early := role != nil && call != "CreateRole" && i.lags(role.CreateDate, i.Lag.Roles)
	reads := strings.HasPrefix(call, "Get") || strings.HasPrefix(call, "List")
	if reads {
		role = i.past.shown(i.Calls, value(name), role)
	} else {
		i.past.wrote(i.Calls, value(name), role.copied())
	}
	if last := i.deleted[value(name)]; role == nil && last.was != nil && reads && i.lags(&last.at, i.Lag.Deleted) {
		return last.was, nil
	}
	switch {
	case role == nil || early && !i.Lag.Denied:
		return nil, &types.NoSuchEntityException{Message: new("The role with name " + value(name) + " cannot be found.")}
	case early && !reads:
		return nil, refuse("AccessDenied", "not authorized to perform iam:%s on resource: role %s", call, value(name))
	}
	return role, nil
}

func (i *IAM) GetRole(_ context.Context, in *iam.GetRoleInput, _ ...func(*iam.Options)) (*iam.GetRoleOutput, error) {
	role, err := i.role("GetRole", in.RoleName)
	if err != nil {
		return nil, err
	}
	out := role.Role
	out.AssumeRolePolicyDocument = new(url.QueryEscape(reordered(role.Trust)))
	return &iam.GetRoleOutput{Role: &out}, nil
}

func (i *IAM) CreateRole(_ context.Context, in *iam.CreateRoleInput, _ ...func(*iam.Options)) (*iam.CreateRoleOutput, error) {
	role, err := i.role("CreateRole", in.RoleName)
	if role != nil {
		return nil, &types.EntityAlreadyExistsException{}
	}
	if _, missing := err.(*types.NoSuchEntityException); !missing {
		return nil, err
	}
	role = &Role{Trust: *in.AssumeRolePolicyDocument, Inline: map[string]string{}, Role: types.Role{
		RoleName: in.RoleName, Path: in.Path, Tags: in.Tags, CreateDate: new(i.Now()),
		Arn: new("arn:aws:iam::" + Account + ":role" + *in.Path + *in.RoleName),
	}}
	if in.PermissionsBoundary != nil {
		role.PermissionsBoundary = &types.AttachedPermissionsBoundary{PermissionsBoundaryArn: in.PermissionsBoundary}
	}
	i.Roles[*in.RoleName] = role
	return &iam.CreateRoleOutput{Role: &role.Role}, nil
}

func (i *IAM) PutRolePermissionsBoundary(_ context.Context, in *iam.PutRolePermissionsBoundaryInput,
	_ ...func(*iam.Options)) (*iam.PutRolePermissionsBoundaryOutput, error) {
	role, err := i.role("PutRolePermissionsBoundary", in.RoleName)
	if err != nil {
		return nil, err
	}
	role.PermissionsBoundary = &types.AttachedPermissionsBoundary{PermissionsBoundaryArn: in.PermissionsBoundary}
	return &iam.PutRolePermissionsBoundaryOutput{}, nil
}

func (i *IAM) DeleteRole(_ context.Context, in *iam.DeleteRoleInput, _ ...func(*iam.Options)) (*iam.DeleteRoleOutput, error) {
	role, err := i.role("DeleteRole", in.RoleName)
	if err != nil {
		return nil, err
	}
	if len(role.Inline)+len(role.Attached) > 0 || i.held(value(in.RoleName)) {
		return nil, &types.DeleteConflictException{}
	}
	i.deleted[*in.RoleName] = gone[Role]{role, i.Now()}
	delete(i.Roles, *in.RoleName)
	return &iam.DeleteRoleOutput{}, nil
}

func (i *IAM) TagRole(_ context.Context, in *iam.TagRoleInput, _ ...func(*iam.Options)) (*iam.TagRoleOutput, error) {
	role, err := i.role("TagRole", in.RoleName)
	if err != nil {
		return nil, err
	}
	role.Tags = put(role.Tags, in.Tags, func(t types.Tag) string { return *t.Key })
	return &iam.TagRoleOutput{}, nil
}

func (i *IAM) UpdateAssumeRolePolicy(_ context.Context, in *iam.UpdateAssumeRolePolicyInput,
	_ ...func(*iam.Options)) (*iam.UpdateAssumeRolePolicyOutput, error) {
	role, err := i.role("UpdateAssumeRolePolicy", in.RoleName)
	if err != nil {
		return nil, err
	}
	role.Trust = *in.PolicyDocument
	return &iam.UpdateAssumeRolePolicyOutput{}, nil
}

// ListRolePolicies returns two names per page.
func (i *IAM) ListRolePolicies(_ context.Context, in *iam.ListRolePoliciesInput,
	_ ...func(*iam.Options)) (*iam.ListRolePoliciesOutput, error) {
	role, err := i.role("ListRolePolicies", in.RoleName)
	if err != nil {
		return nil, err
	}
	page, next := pageOf(slices.Sorted(maps.Keys(role.Inline)), in.Marker, 2)
	return &iam.ListRolePoliciesOutput{PolicyNames: page, Marker: next, IsTruncated: next != nil}, nil
}

func (i *IAM) GetRolePolicy(_ context.Context, in *iam.GetRolePolicyInput, _ ...func(*iam.Options)) (*iam.GetRolePolicyOutput, error) {
	role, err := i.role("GetRolePolicy", in.RoleName)
	if err != nil {
		return nil, err
	}
	document, ok := role.Inline[*in.PolicyName]
	if !ok {
		return nil, &types.NoSuchEntityException{}
	}
	return &iam.GetRolePolicyOutput{PolicyDocument: new(url.QueryEscape(reordered(document)))}, nil
}

func (i *IAM) PutRolePolicy(_ context.Context, in *iam.PutRolePolicyInput, _ ...func(*iam.Options)) (*iam.PutRolePolicyOutput, error) {
	role, err := i.role("PutRolePolicy", in.RoleName)
	if err != nil {
		return nil, err
	}
	size := len(*in.PolicyDocument)
	for name, document := range role.Inline {
		if name != *in.PolicyName {
			size += len(document)
		}
	}
	if size > maxInline {
		return nil, &types.LimitExceededException{Message: new("Maximum policy size of 10240 bytes exceeded")}
	}
	role.Inline[*in.PolicyName] = *in.PolicyDocument
	return &iam.PutRolePolicyOutput{}, nil
}

func (i *IAM) DeleteRolePolicy(_ context.Context, in *iam.DeleteRolePolicyInput,
	_ ...func(*iam.Options)) (*iam.DeleteRolePolicyOutput, error) {
	role, err := i.role("DeleteRolePolicy", in.RoleName)
	if err != nil {
		return nil, err
	}
	if _, ok := role.Inline[*in.PolicyName]; !ok {
		return nil, &types.NoSuchEntityException{}
	}
	delete(role.Inline, *in.PolicyName)
	return &iam.DeleteRolePolicyOutput{}, nil
}

// ListAttachedRolePolicies returns three policies per page.
func (i *IAM) ListAttachedRolePolicies(_ context.Context, in *iam.ListAttachedRolePoliciesInput,
	_ ...func(*iam.Options)) (*iam.ListAttachedRolePoliciesOutput, error) {
	role, err := i.role("ListAttachedRolePolicies", in.RoleName)
	if err != nil {
		return nil, err
	}
	page, next := pageOf(role.Attached, in.Marker, 3)
	out := &iam.ListAttachedRolePoliciesOutput{Marker: next, IsTruncated: next != nil}
	for _, arn := range page {
		out.AttachedPolicies = append(out.AttachedPolicies, types.AttachedPolicy{PolicyArn: &arn})
	}
	return out, nil
}

func (i *IAM) AttachRolePolicy(_ context.Context, in *iam.AttachRolePolicyInput,
	_ ...func(*iam.Options)) (*iam.AttachRolePolicyOutput, error) {
	role, err := i.role("AttachRolePolicy", in.RoleName)
	if err != nil {
		return nil, err
	}
	if i.Missing[*in.PolicyArn] {
		return nil, &types.NoSuchEntityException{Message: new("Policy " + *in.PolicyArn + " does not exist or is not attachable.")}
	}
	if !slices.Contains(role.Attached, *in.PolicyArn) {
		role.Attached = append(role.Attached, *in.PolicyArn)
	}
	return &iam.AttachRolePolicyOutput{}, nil
}

func (i *IAM) DetachRolePolicy(_ context.Context, in *iam.DetachRolePolicyInput,
	_ ...func(*iam.Options)) (*iam.DetachRolePolicyOutput, error) {
	role, err := i.role("DetachRolePolicy", in.RoleName)
	if err != nil {
		return nil, err
	}
	at := slices.Index(role.Attached, *in.PolicyArn)
	if at < 0 {
		return nil, &types.NoSuchEntityException{}
	}
	role.Attached = slices.Delete(slices.Clone(role.Attached), at, at+1)
	return &iam.DetachRolePolicyOutput{}, nil
}

// ListInstanceProfiles returns one profile per page. It supports the path prefix.
func (i *IAM) ListInstanceProfiles(_ context.Context, in *iam.ListInstanceProfilesInput,
	_ ...func(*iam.Options)) (*iam.ListInstanceProfilesOutput, error) {
	if err := i.call("IAM.ListInstanceProfiles", value(in.PathPrefix)); err != nil {
		return nil, err
	}
	var all []types.InstanceProfile
	for _, name := range slices.Sorted(maps.Keys(i.Profiles)) {
		p := i.Profiles[name]
		if !strings.HasPrefix(p.Path, value(in.PathPrefix)) {
			continue
		}
		profile := types.InstanceProfile{Path: &p.Path, InstanceProfileName: new(name)}
		if p.Role != "" {
			profile.Roles = []types.Role{{RoleName: &p.Role}}
		}
		all = append(all, profile)
	}
	page, next := pageOf(all, in.Marker, 1)
	return &iam.ListInstanceProfilesOutput{InstanceProfiles: page, Marker: next, IsTruncated: next != nil}, nil
}

func (i *IAM) RemoveRoleFromInstanceProfile(_ context.Context, in *iam.RemoveRoleFromInstanceProfileInput,
	_ ...func(*iam.Options)) (*iam.RemoveRoleFromInstanceProfileOutput, error) {
	if err := i.call("IAM.RemoveRoleFromInstanceProfile", *in.InstanceProfileName); err != nil {
		return nil, err
	}
	if p := i.Profiles[*in.InstanceProfileName]; p == nil || p.Role != *in.RoleName {
		return nil, &types.NoSuchEntityException{}
	}
	i.Profiles[*in.InstanceProfileName].Role = ""
	return &iam.RemoveRoleFromInstanceProfileOutput{}, nil
}

// DeleteInstanceProfile deletes a profile, but refuses one that contains a role.
func (i *IAM) DeleteInstanceProfile(_ context.Context, in *iam.DeleteInstanceProfileInput,
	_ ...func(*iam.Options)) (*iam.DeleteInstanceProfileOutput, error) {
	if err := i.call("IAM.DeleteInstanceProfile", *in.InstanceProfileName); err != nil {
		return nil, err
	}
	switch p := i.Profiles[*in.InstanceProfileName]; {
	case p == nil:
		return nil, &types.NoSuchEntityException{}
	case p.Role != "":
		return nil, &types.DeleteConflictException{}
	}
	delete(i.Profiles, *in.InstanceProfileName)
	return &iam.DeleteInstanceProfileOutput{}, nil
}

// held reports whether an instance profile contains a role.
func (i *IAM) held(role string) bool {
	for _, p := range i.Profiles {
		if p.Role == role {
			return true
		}
	}
	return false
}

func (i *IAM) GetOpenIDConnectProvider(_ context.Context, in *iam.GetOpenIDConnectProviderInput,
	_ ...func(*iam.Options)) (*iam.GetOpenIDConnectProviderOutput, error) {
	if err := i.call("IAM.GetOpenIDConnectProvider", *in.OpenIDConnectProviderArn); err != nil {
		return nil, err
	}
	clients, ok := i.Providers[*in.OpenIDConnectProviderArn]
	if !ok {
		return nil, &types.NoSuchEntityException{}
	}
	return &iam.GetOpenIDConnectProviderOutput{ClientIDList: clients}, nil
}
