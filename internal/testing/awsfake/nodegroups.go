package awsfake

import (
	"context"
	"maps"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
)

// settle completes a group's update, creation or deletion once the group has been described often enough. It returns
// nil if the group is gone.
func (e *EKS) settle(name string) *types.Nodegroup {
	e.settling.Lock()
	defer e.settling.Unlock()
	group := e.Groups[name]
	if group == nil {
		return nil
	}
	switch group.Status {
	case types.NodegroupStatusUpdating, types.NodegroupStatusCreating, types.NodegroupStatusDeleting:
		if e.looks[name]++; e.looks[name] <= e.Delay {
			return group
		}
	default:
		return group
	}
	switch {
	case group.Status == types.NodegroupStatusDeleting && len(e.Issues) > 0:
		group.Status, group.Health = types.NodegroupStatusDeleteFailed, &types.NodegroupHealth{Issues: e.Issues}
	case group.Status == types.NodegroupStatusDeleting:
		delete(e.Groups, name)
		e.changed(group, false)
		return nil
	case group.Status == types.NodegroupStatusCreating && len(e.Issues) > 0:
		group.Status, group.Health = types.NodegroupStatusCreateFailed, &types.NodegroupHealth{Issues: e.Issues}
	case group.Status == types.NodegroupStatusCreating:
		group.Status = types.NodegroupStatusActive
		e.changed(group, true)
	default:
		group.Status = types.NodegroupStatusActive
	}
	return group
}

func (e *EKS) changed(group *types.Nodegroup, there bool) {
	if e.Changed != nil {
		e.Changed(group, there)
	}
}

// CreateNodegroup refuses the settings that EKS refuses in a copy of a group.
func (e *EKS) CreateNodegroup(_ context.Context, in *eks.CreateNodegroupInput,
	_ ...func(*eks.Options)) (*eks.CreateNodegroupOutput, error) {
	name := *in.NodegroupName
	if err := e.known("CreateNodegroup", in.ClusterName, name); err != nil {
		return nil, err
	}
	if e.Groups[name] != nil {
		return nil, &types.ResourceInUseException{Message: new("NodeGroup already exists with name " + name)}
	}
	invalid := ""
	for key := range in.Tags {
		if strings.HasPrefix(key, "aws:") {
			invalid = "tag " + key
		}
	}
	template := in.LaunchTemplate
	switch {
	case template != nil && (template.Id == nil) == (template.Name == nil):
		invalid = "either the id or the name of a launch template"
	case template != nil && (in.DiskSize != nil || in.RemoteAccess != nil):
		invalid = "disk size and remote access belong into the launch template"
	case in.AmiType == types.AMITypesCustom:
		invalid = "amiType CUSTOM"
	case in.ReleaseVersion != nil && !strings.HasPrefix(*in.ReleaseVersion, *e.Cluster.Version):
		invalid = "releaseVersion " + *in.ReleaseVersion
	}
	if invalid != "" {
		return nil, &types.InvalidParameterException{Message: &invalid}
	}
	e.Groups[name] = &types.Nodegroup{
		NodegroupName: &name, Status: types.NodegroupStatusCreating, ScalingConfig: in.ScalingConfig, CapacityType: in.CapacityType,
		Labels: maps.Clone(in.Labels), Tags: maps.Clone(in.Tags), Taints: in.Taints, Subnets: in.Subnets, NodeRole: in.NodeRole,
		InstanceTypes: in.InstanceTypes, AmiType: in.AmiType, DiskSize: in.DiskSize, RemoteAccess: in.RemoteAccess,
		LaunchTemplate: template, ReleaseVersion: in.ReleaseVersion, Version: e.Cluster.Version,
		UpdateConfig: in.UpdateConfig, NodeRepairConfig: in.NodeRepairConfig,
		Resources: &types.NodegroupResources{AutoScalingGroups: []types.AutoScalingGroup{{Name: new("eks-" + name)}}},
	}
	e.looks[name] = 0
	return &eks.CreateNodegroupOutput{}, nil
}

// DeleteNodegroup refuses to delete a group during another change, as EKS does.
func (e *EKS) DeleteNodegroup(_ context.Context, in *eks.DeleteNodegroupInput,
	_ ...func(*eks.Options)) (*eks.DeleteNodegroupOutput, error) {
	group, err := e.group("DeleteNodegroup", in.ClusterName, *in.NodegroupName)
	if err != nil {
		return nil, err
	}
	switch group.Status {
	case types.NodegroupStatusUpdating, types.NodegroupStatusCreating, types.NodegroupStatusDeleting:
		return nil, &types.ResourceInUseException{}
	}
	group.Status, e.looks[*in.NodegroupName] = types.NodegroupStatusDeleting, 0
	return &eks.DeleteNodegroupOutput{}, nil
}
