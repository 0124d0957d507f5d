package awsfake

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
)

// EKS has one cluster, or none if Cluster is nil, and Others, which can only be described and tagged. It makes an accepted update
// once the cluster or group has been described Delay times.
type EKS struct {
	*Calls
	Cluster      *types.Cluster
	Others       map[string]*types.Cluster
	Groups       map[string]*types.Nodegroup
	Addons       map[string]types.AddonStatus
	Entries      map[string]*Entry // by principal ARN
	Associations map[string]*types.PodIdentityAssociation
	Delay        int
	// Issues prevent EKS from creating and deleting groups.
	Issues []types.Issue
	// Fails are the errors with which the next accepted updates end, each as Failed and without effect, in order. Updates has all.
	Fails   []types.ErrorDetail
	Updates []*types.Update
	// Changed is called when EKS has created a group, or deleted it (there is false).
	Changed func(group *types.Nodegroup, there bool)

	// settling is for settle: groups may be described at the same time.
	settling sync.Mutex
	mode     types.AuthenticationMode
	looks    map[string]int // how often the cluster ("") or a group has been described during its update
	serial   int
	roles    *IAM
	// ended holds the deleted access entries, by principal ARN.
	ended            map[string]gone[Entry]
	pastEntries      past[Entry]
	pastAssociations past[types.PodIdentityAssociation]
	pastGroups       past[types.Nodegroup]
}

func newEKS(calls *Calls, roles *IAM) *EKS {
	return &EKS{
		Calls: calls, roles: roles, Delay: 1, looks: map[string]int{},
		Groups: map[string]*types.Nodegroup{}, Addons: map[string]types.AddonStatus{}, Entries: map[string]*Entry{},
		Associations: map[string]*types.PodIdentityAssociation{}, Others: map[string]*types.Cluster{}, ended: map[string]gone[Entry]{},
		pastEntries: past[Entry]{}, pastAssociations: past[types.PodIdentityAssociation]{}, pastGroups: past[types.Nodegroup]{},
		Cluster: &types.Cluster{
			Name: new("demo"), Arn: new(ClusterARN), Status: types.ClusterStatusActive, Version: new("1.35"),
			Identity:           &types.Identity{Oidc: &types.OIDC{Issuer: new("https://oidc.example/id/ABC")}},
			ResourcesVpcConfig: &types.VpcConfigResponse{ClusterSecurityGroupId: new("sg-cluster"), VpcId: new(VPC)},
			AccessConfig:       &types.AccessConfigResponse{AuthenticationMode: types.AuthenticationModeConfigMap},
			Tags:               map[string]string{"sawhorse.dev/rack": "demo"}, // the owner's permission for the rack
		},
	}
}

func (e *EKS) known(call string, cluster *string, subject string) error {
	if err := e.call("EKS."+call, subject); err != nil {
		return err
	}
	if e.Cluster == nil || value(cluster) != *e.Cluster.Name {
		return &types.ResourceNotFoundException{Message: new("No cluster found for name: " + value(cluster))}
	}
	return nil
}

func (e *EKS) DescribeCluster(_ context.Context, in *eks.DescribeClusterInput,
	_ ...func(*eks.Options)) (*eks.DescribeClusterOutput, error) {
	err := e.known("DescribeCluster", in.Name, value(in.Name))
	if other := e.Others[value(in.Name)]; errors.As(err, new(*types.ResourceNotFoundException)) && other != nil {
		return &eks.DescribeClusterOutput{Cluster: other}, nil
	}
	if err != nil {
		return nil, err
	}
	if e.mode != "" {
		if e.looks[""]++; e.looks[""] > e.Delay {
			e.Cluster.AccessConfig.AuthenticationMode, e.Cluster.Status, e.mode = e.mode, types.ClusterStatusActive, ""
		}
	}
	out := *e.Cluster
	if out.AccessConfig != nil {
		out.AccessConfig = &types.AccessConfigResponse{AuthenticationMode: e.Cluster.AccessConfig.AuthenticationMode}
	}
	return &eks.DescribeClusterOutput{Cluster: &out}, nil
}

// Other adds a cluster of another name, with tags.
func (e *EKS) Other(name string, tags map[string]string) {
	e.Others[name] = &types.Cluster{Name: &name, Arn: new(strings.TrimSuffix(ClusterARN, "demo") + name), Tags: tags}
}

// UpdateClusterConfig changes the access mode, only to the next one.
func (e *EKS) UpdateClusterConfig(_ context.Context, in *eks.UpdateClusterConfigInput,
	_ ...func(*eks.Options)) (*eks.UpdateClusterConfigOutput, error) {
	if err := e.known("UpdateClusterConfig", in.Name, string(in.AccessConfig.AuthenticationMode)); err != nil {
		return nil, err
	}
	if e.Cluster.Status != types.ClusterStatusActive {
		return nil, &types.ResourceInUseException{}
	}
	order := []types.AuthenticationMode{
		types.AuthenticationModeConfigMap, types.AuthenticationModeApiAndConfigMap, types.AuthenticationModeApi,
	}
	from, to := slices.Index(order, e.Cluster.AccessConfig.AuthenticationMode), slices.Index(order, in.AccessConfig.AuthenticationMode)
	if to != from+1 {
		return nil, &types.InvalidParameterException{Message: new("Unsupported authentication mode update")}
	}
	update, made := e.began()
	if e.mode = in.AccessConfig.AuthenticationMode; !made {
		e.mode = e.Cluster.AccessConfig.AuthenticationMode
	}
	e.Cluster.Status, e.looks[""] = types.ClusterStatusUpdating, 0
	return &eks.UpdateClusterConfigOutput{Update: update}, nil
}

// began returns an update, and whether it will be made.
func (e *EKS) began() (*types.Update, bool) {
	update := &types.Update{Id: new(fmt.Sprint("update-", len(e.Updates)+1)), Status: types.UpdateStatusSuccessful}
	e.Updates = append(e.Updates, update)
	if len(e.Fails) > 0 {
		update.Status, update.Errors, e.Fails = types.UpdateStatusFailed, e.Fails[:1], e.Fails[1:]
	}
	return update, update.Status == types.UpdateStatusSuccessful
}

// DescribeUpdate shows an update as it ends.
func (e *EKS) DescribeUpdate(_ context.Context, in *eks.DescribeUpdateInput, _ ...func(*eks.Options)) (*eks.DescribeUpdateOutput, error) {
	if err := e.known("DescribeUpdate", in.Name, value(in.NodegroupName)); err != nil {
		return nil, err
	}
	for _, update := range e.Updates {
		if *update.Id == *in.UpdateId {
			return &eks.DescribeUpdateOutput{Update: update}, nil
		}
	}
	return nil, &types.ResourceNotFoundException{}
}

func (e *EKS) DescribeAddon(_ context.Context, in *eks.DescribeAddonInput, _ ...func(*eks.Options)) (*eks.DescribeAddonOutput, error) {
	if err := e.known("DescribeAddon", in.ClusterName, *in.AddonName); err != nil {
		return nil, err
	}
	status, ok := e.Addons[*in.AddonName]
	if !ok {
		return nil, &types.ResourceNotFoundException{}
	}
	return &eks.DescribeAddonOutput{Addon: &types.Addon{AddonName: in.AddonName, Status: status}}, nil
}

// ListNodegroups returns one name per page.
func (e *EKS) ListNodegroups(_ context.Context, in *eks.ListNodegroupsInput, _ ...func(*eks.Options)) (*eks.ListNodegroupsOutput, error) {
	if err := e.known("ListNodegroups", in.ClusterName, ""); err != nil {
		return nil, err
	}
	page, next := pageOf(slices.Sorted(maps.Keys(e.Groups)), in.NextToken, 1)
	return &eks.ListNodegroupsOutput{Nodegroups: page, NextToken: next}, nil
}

func (e *EKS) DescribeNodegroup(_ context.Context, in *eks.DescribeNodegroupInput,
	_ ...func(*eks.Options)) (*eks.DescribeNodegroupOutput, error) {
	if err := e.known("DescribeNodegroup", in.ClusterName, *in.NodegroupName); err != nil {
		return nil, err
	}
	group := e.pastGroups.shown(e.Calls, *in.NodegroupName, e.settle(*in.NodegroupName))
	if group == nil {
		return nil, &types.ResourceNotFoundException{}
	}
	out := *group
	out.Labels = maps.Clone(group.Labels)
	return &eks.DescribeNodegroupOutput{Nodegroup: &out}, nil
}

// UpdateNodegroupConfig changes labels and size.
func (e *EKS) UpdateNodegroupConfig(_ context.Context, in *eks.UpdateNodegroupConfigInput,
	_ ...func(*eks.Options)) (*eks.UpdateNodegroupConfigOutput, error) {
	group, err := e.group("UpdateNodegroupConfig", in.ClusterName, *in.NodegroupName)
	if err != nil {
		return nil, err
	}
	if group.Status != types.NodegroupStatusActive {
		return nil, &types.ResourceInUseException{}
	}
	e.pastGroups.wrote(e.Calls, *in.NodegroupName, copiedGroup(group))
	s := in.ScalingConfig
	if s != nil && (*s.MaxSize < 1 || *s.MinSize > *s.DesiredSize || *s.DesiredSize > *s.MaxSize) {
		return nil, &types.InvalidParameterException{Message: new("desired must lie between min and max, max be 1 or more")}
	}
	update, made := e.began()
	if made && s != nil {
		group.ScalingConfig = s
	}
	if made && in.Labels != nil {
		group.Labels = with(group.Labels, in.Labels.AddOrUpdateLabels)
	}
	group.Status, e.looks[*in.NodegroupName] = types.NodegroupStatusUpdating, 0
	return &eks.UpdateNodegroupConfigOutput{Update: update}, nil
}

func (e *EKS) group(call string, cluster *string, name string) (*types.Nodegroup, error) {
	if err := e.known(call, cluster, name); err != nil {
		return nil, err
	}
	if group := e.Groups[name]; group != nil {
		return group, nil
	}
	return nil, &types.ResourceNotFoundException{}
}

// Group adds a node group.
func (e *EKS) Group(name string, size types.NodegroupScalingConfig, labels map[string]string) *types.Nodegroup {
	e.Groups[name] = &types.Nodegroup{
		NodegroupName: &name, Status: types.NodegroupStatusActive, ScalingConfig: &size, Labels: labels, CreatedAt: new(e.Now()),
		CapacityType:  types.CapacityTypesOnDemand,
		InstanceTypes: []string{"m6i.large"}, AmiType: types.AMITypesAl2023X8664Standard, Subnets: []string{"subnet-b", "subnet-a"},
		Resources: &types.NodegroupResources{AutoScalingGroups: []types.AutoScalingGroup{{Name: new("eks-" + name)}}},
	}
	return e.Groups[name]
}
