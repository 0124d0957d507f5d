package awsfake

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
)

// Entry is an access entry with its policies. Associated is when the last of them was associated.
type Entry struct {
	types.AccessEntry
	Policies   []string
	Associated time.Time
}

func (e *EKS) entry(call string, cluster, principal *string) (*Entry, error) {
	if err := e.known(call, cluster, value(principal)); err != nil {
		return nil, err
	}
	if e.Cluster.AccessConfig.AuthenticationMode == types.AuthenticationModeConfigMap {
		return nil, &types.InvalidRequestException{
			Message: new("The cluster's authentication mode must be set to one of [API, API_AND_CONFIG_MAP]"),
		}
	}
	entry := e.Entries[*principal]
	if reads("." + call) {
		entry = e.pastEntries.shown(e.Calls, *principal, entry)
	} else {
		e.pastEntries.wrote(e.Calls, *principal, entry.copied())
	}
	if entry != nil {
		return entry, nil
	}
	return nil, &types.ResourceNotFoundException{}
}

// policies returns the entry for a call about its policies. Such a call does not find a new entry yet.
func (e *EKS) policies(call string, cluster, principal *string) (*Entry, error) {
	entry, err := e.entry(call, cluster, principal)
	if err == nil && e.lags(entry.CreatedAt, e.Lag.Entries) {
		return nil, &types.ResourceNotFoundException{
			Message: new("The specified principalArn could not be found. " +
				"You can view your available access entries with 'list-access-entries'."),
		}
	}
	return entry, err
}

// unknown reports whether EKS does not know a role yet.
func (e *EKS) unknown(arn string) bool {
	role := e.roles.Roles[arn[strings.LastIndex(arn, "/")+1:]]
	return role != nil && e.lags(role.CreateDate, e.Lag.Principals)
}

func (e *EKS) DescribeAccessEntry(_ context.Context, in *eks.DescribeAccessEntryInput,
	_ ...func(*eks.Options)) (*eks.DescribeAccessEntryOutput, error) {
	entry, err := e.entry("DescribeAccessEntry", in.ClusterName, in.PrincipalArn)
	if last := e.ended[*in.PrincipalArn]; e.lags(&last.at, e.Lag.Shown) {
		entry, err = last.was, nil
	}
	if err != nil {
		return nil, err
	}
	return &eks.DescribeAccessEntryOutput{AccessEntry: &entry.AccessEntry}, nil
}

// CreateAccessEntry refuses the groups that EKS refuses.
func (e *EKS) CreateAccessEntry(_ context.Context, in *eks.CreateAccessEntryInput,
	_ ...func(*eks.Options)) (*eks.CreateAccessEntryOutput, error) {
	entry, err := e.entry("CreateAccessEntry", in.ClusterName, in.PrincipalArn)
	if entry != nil {
		return nil, &types.ResourceInUseException{}
	}
	if _, missing := err.(*types.ResourceNotFoundException); !missing {
		return nil, err
	}
	if e.lags(new(e.ended[*in.PrincipalArn].at), e.Lag.Entries) {
		return nil, &types.ResourceInUseException{}
	}
	if e.unknown(*in.PrincipalArn) {
		return nil, &types.InvalidParameterException{Message: new("The specified principalArn is invalid: invalid principal.")}
	}
	kind := value(in.Type)
	if kind == "" {
		kind = "STANDARD"
	}
	for _, group := range in.KubernetesGroups {
		if kind != "STANDARD" || strings.HasPrefix(group, "system:") {
			return nil, &types.InvalidParameterException{Message: new("group " + group)}
		}
	}
	e.Entries[*in.PrincipalArn] = &Entry{AccessEntry: types.AccessEntry{
		PrincipalArn: in.PrincipalArn, Type: &kind, KubernetesGroups: in.KubernetesGroups, Tags: maps.Clone(in.Tags),
		CreatedAt:      new(e.Now()),
		AccessEntryArn: new(entryARN(*in.PrincipalArn)),
	}}
	return &eks.CreateAccessEntryOutput{}, nil
}

func (e *EKS) UpdateAccessEntry(_ context.Context, in *eks.UpdateAccessEntryInput,
	_ ...func(*eks.Options)) (*eks.UpdateAccessEntryOutput, error) {
	entry, err := e.entry("UpdateAccessEntry", in.ClusterName, in.PrincipalArn)
	if err != nil {
		return nil, err
	}
	entry.KubernetesGroups = in.KubernetesGroups
	return &eks.UpdateAccessEntryOutput{}, nil
}

func (e *EKS) DeleteAccessEntry(_ context.Context, in *eks.DeleteAccessEntryInput,
	_ ...func(*eks.Options)) (*eks.DeleteAccessEntryOutput, error) {
	entry, err := e.entry("DeleteAccessEntry", in.ClusterName, in.PrincipalArn)
	if err != nil {
		return nil, err
	}
	delete(e.Entries, *in.PrincipalArn)
	e.ended[*in.PrincipalArn] = gone[Entry]{entry, e.Now()}
	return &eks.DeleteAccessEntryOutput{}, nil
}

func (e *EKS) ListAssociatedAccessPolicies(_ context.Context, in *eks.ListAssociatedAccessPoliciesInput,
	_ ...func(*eks.Options)) (*eks.ListAssociatedAccessPoliciesOutput, error) {
	entry, err := e.policies("ListAssociatedAccessPolicies", in.ClusterName, in.PrincipalArn)
	if err != nil {
		return nil, err
	}
	out := &eks.ListAssociatedAccessPoliciesOutput{}
	for _, arn := range entry.Policies {
		out.AssociatedAccessPolicies = append(out.AssociatedAccessPolicies, types.AssociatedAccessPolicy{
			PolicyArn: &arn, AssociatedAt: new(entry.Associated),
		})
	}
	return out, nil
}

func (e *EKS) AssociateAccessPolicy(_ context.Context, in *eks.AssociateAccessPolicyInput,
	_ ...func(*eks.Options)) (*eks.AssociateAccessPolicyOutput, error) {
	entry, err := e.policies("AssociateAccessPolicy", in.ClusterName, in.PrincipalArn)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(entry.Policies, *in.PolicyArn) {
		entry.Policies, entry.Associated = append(entry.Policies, *in.PolicyArn), e.Now()
	}
	return &eks.AssociateAccessPolicyOutput{}, nil
}

func (e *EKS) ListPodIdentityAssociations(_ context.Context, in *eks.ListPodIdentityAssociationsInput,
	_ ...func(*eks.Options)) (*eks.ListPodIdentityAssociationsOutput, error) {
	if err := e.known("ListPodIdentityAssociations", in.ClusterName, *in.Namespace+"/"+*in.ServiceAccount); err != nil {
		return nil, err
	}
	if in.NextToken == nil { // EKS's reference does not say that it cuts pages after it has filtered
		return &eks.ListPodIdentityAssociationsOutput{NextToken: new("2")}, nil
	}
	out := &eks.ListPodIdentityAssociationsOutput{}
	ids := map[string]bool{}
	for id := range e.Associations {
		ids[id] = true
	}
	for id := range e.pastAssociations {
		ids[id] = true
	}
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		a := e.pastAssociations.shown(e.Calls, id, e.Associations[id])
		if a != nil && *a.Namespace == *in.Namespace && *a.ServiceAccount == *in.ServiceAccount {
			out.Associations = append(out.Associations, types.PodIdentityAssociationSummary{
				AssociationId: &id, Namespace: a.Namespace, ServiceAccount: a.ServiceAccount,
			})
		}
	}
	return out, nil
}

func (e *EKS) association(call string, cluster, id *string) (*types.PodIdentityAssociation, error) {
	if err := e.known(call, cluster, value(id)); err != nil {
		return nil, err
	}
	a := e.Associations[value(id)]
	if reads("." + call) {
		a = e.pastAssociations.shown(e.Calls, value(id), a)
	} else {
		e.pastAssociations.wrote(e.Calls, value(id), copiedAssociation(a))
	}
	if a != nil {
		return a, nil
	}
	return nil, &types.ResourceNotFoundException{}
}

func (e *EKS) DescribePodIdentityAssociation(_ context.Context, in *eks.DescribePodIdentityAssociationInput,
	_ ...func(*eks.Options)) (*eks.DescribePodIdentityAssociationOutput, error) {
	a, err := e.association("DescribePodIdentityAssociation", in.ClusterName, in.AssociationId)
	if err != nil {
		return nil, err
	}
	return &eks.DescribePodIdentityAssociationOutput{Association: a}, nil
}

// CreatePodIdentityAssociation refuses a second association of a service account.
func (e *EKS) CreatePodIdentityAssociation(_ context.Context, in *eks.CreatePodIdentityAssociationInput,
	_ ...func(*eks.Options)) (*eks.CreatePodIdentityAssociationOutput, error) {
	if err := e.known("CreatePodIdentityAssociation", in.ClusterName, *in.Namespace+"/"+*in.ServiceAccount); err != nil {
		return nil, err
	}
	for _, a := range e.Associations {
		if *a.Namespace == *in.Namespace && *a.ServiceAccount == *in.ServiceAccount {
			return nil, &types.ResourceInUseException{}
		}
	}
	if e.unknown(*in.RoleArn) {
		return nil, &types.InvalidParameterException{Message: new("Role provided in the request does not exist.")}
	}
	e.serial++
	id := fmt.Sprintf("a-%d", e.serial)
	e.pastAssociations.wrote(e.Calls, id, nil)
	e.Associations[id] = &types.PodIdentityAssociation{AssociationId: &id, AssociationArn: new(associationARN(id)), Namespace: in.Namespace,
		ServiceAccount: in.ServiceAccount, RoleArn: in.RoleArn, Tags: maps.Clone(in.Tags), CreatedAt: new(e.Now())}
	return &eks.CreatePodIdentityAssociationOutput{Association: e.Associations[id]}, nil
}

func (e *EKS) UpdatePodIdentityAssociation(_ context.Context, in *eks.UpdatePodIdentityAssociationInput,
	_ ...func(*eks.Options)) (*eks.UpdatePodIdentityAssociationOutput, error) {
	a, err := e.association("UpdatePodIdentityAssociation", in.ClusterName, in.AssociationId)
	if err != nil {
		return nil, err
	}
	if e.unknown(*in.RoleArn) {
		return nil, &types.InvalidParameterException{Message: new("Role provided in the request does not exist.")}
	}
	a.RoleArn, a.ModifiedAt = in.RoleArn, new(e.Now())
	return &eks.UpdatePodIdentityAssociationOutput{}, nil
}

func (e *EKS) DeletePodIdentityAssociation(_ context.Context, in *eks.DeletePodIdentityAssociationInput,
	_ ...func(*eks.Options)) (*eks.DeletePodIdentityAssociationOutput, error) {
	if _, err := e.association("DeletePodIdentityAssociation", in.ClusterName, in.AssociationId); err != nil {
		return nil, err
	}
	delete(e.Associations, *in.AssociationId)
	return &eks.DeletePodIdentityAssociationOutput{}, nil
}

func entryARN(principal string) string {
	return "arn:aws:eks:" + Region + ":" + Account + ":access-entry/demo/role/" +
		Account + principal[strings.LastIndex(principal, "/"):] + "/1"
}

func associationARN(id string) string {
	return "arn:aws:eks:" + Region + ":" + Account + ":podidentityassociation/demo/" + id
}

// TagResource tags a cluster, an access entry or a Pod Identity association.
func (e *EKS) TagResource(_ context.Context, in *eks.TagResourceInput, _ ...func(*eks.Options)) (*eks.TagResourceOutput, error) {
	if err := e.call("EKS.TagResource", *in.ResourceArn); err != nil {
		return nil, err
	}
	for _, cluster := range e.clusters() {
		if value(cluster.Arn) == *in.ResourceArn {
			cluster.Tags = with(cluster.Tags, in.Tags)
			return &eks.TagResourceOutput{}, nil
		}
	}
	for principal, entry := range e.Entries {
		if value(entry.AccessEntryArn) == *in.ResourceArn {
			e.pastEntries.wrote(e.Calls, principal, entry.copied())
			entry.Tags = with(entry.Tags, in.Tags)
			return &eks.TagResourceOutput{}, nil
		}
	}
	for id, a := range e.Associations {
		if value(a.AssociationArn) == *in.ResourceArn {
			e.pastAssociations.wrote(e.Calls, id, copiedAssociation(a))
			a.Tags = with(a.Tags, in.Tags)
			return &eks.TagResourceOutput{}, nil
		}
	}
	return nil, &types.ResourceNotFoundException{}
}

func (e *EKS) clusters() []*types.Cluster {
	all := slices.Collect(maps.Values(e.Others))
	if e.Cluster != nil {
		all = append(all, e.Cluster)
	}
	return all
}

// with returns a copy of tags with more tags.
func with(tags, more map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, tags)
	maps.Copy(all, more)
	return all
}
