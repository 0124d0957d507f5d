package nodegroups

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	corev1 "k8s.io/api/core/v1"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// copies creates an on-demand copy of each SPOT system group, and waits until the copies' nodes are Ready.
func (n *run) copies(ctx context.Context) error {
	var waiting []string
	for _, r := range n.plan.Nodegroups.Replaced {
		live, err := n.group(ctx, r.Copy)
		if err != nil {
			return err
		}
		note := ""
		if live == nil {
			note, err = n.create(ctx, r)
		} else {
			note, err = n.made(ctx, r, live)
		}
		if err != nil {
			return err
		}
		if note != "" {
			waiting = append(waiting, note)
		}
	}
	if len(waiting) > 0 {
		return outcome.Wait(poll, "%s", strings.Join(waiting, "; "))
	}
	return nil
}

// create asks EKS for a copy and returns what to wait for.
func (n *run) create(ctx context.Context, r plan.Replacement) (string, error) {
	old, err := n.group(ctx, r.Group)
	if err != nil || old == nil {
		return "", err // deleted since the plan was made: the next plan does not list it
	}
	cluster, err := n.EKS.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: &n.plan.Cluster.Name})
	if err != nil {
		return "", fmt.Errorf("cluster %s: describe: %w", n.plan.Cluster.Name, err)
	}
	wanted := onDemand(old, cluster.Cluster)
	wanted.ClusterName, wanted.NodegroupName = &n.plan.Cluster.Name, &r.Copy
	maps.Copy(wanted.Tags, r.Tags)
	_, err = n.EKS.CreateNodegroup(ctx, wanted)
	if errors.As(err, new(*types.ResourceInUseException)) {
		return "EKS has something else to do before it creates node group " + r.Copy, nil
	}
	if err != nil {
		return "", fmt.Errorf("node group %s: create as a copy of %s: %w", r.Copy, r.Group, err)
	}
	n.progress.Changed("created as an on-demand copy of "+r.Group, "node group %s", r.Copy)
	return "EKS creates node group " + r.Copy, nil
}

// onDemand turns EKS's description of a group into a request for an equal group with on-demand capacity. EKS refuses
// settings that the launch template has too, and offers no AMI of an older Kubernetes version than the cluster's.
func onDemand(old *types.Nodegroup, cluster *types.Cluster) *eks.CreateNodegroupInput {
	in := &eks.CreateNodegroupInput{
		CapacityType: types.CapacityTypesOnDemand, ScalingConfig: old.ScalingConfig, InstanceTypes: old.InstanceTypes,
		NodeRole: old.NodeRole, Subnets: old.Subnets, Taints: old.Taints, UpdateConfig: old.UpdateConfig, NodeRepairConfig: old.NodeRepairConfig,
		Labels: map[string]string{}, Tags: map[string]string{},
	}
	maps.Copy(in.Labels, old.Labels)
	in.Labels[ownership.LabelSystemNode] = "true"
	for key, value := range old.Tags {
		if !strings.HasPrefix(strings.ToLower(key), "aws:") { // reserved by AWS
			in.Tags[key] = value
		}
	}
	if t := old.LaunchTemplate; t != nil {
		in.LaunchTemplate = &types.LaunchTemplateSpecification{Id: t.Id, Version: t.Version}
		if t.Id == nil {
			in.LaunchTemplate.Name = t.Name
		}
	} else {
		in.DiskSize, in.RemoteAccess = old.DiskSize, old.RemoteAccess
	}
	if old.AmiType != types.AMITypesCustom { // the launch template names the AMI
		in.AmiType = old.AmiType
		if old.Version != nil && cluster.Version != nil && *old.Version == *cluster.Version && aws.ToString(old.ReleaseVersion) != "" {
			in.ReleaseVersion = old.ReleaseVersion
		}
	}
	return in
}

// made checks an existing copy and returns what to wait for, if anything.
func (n *run) made(ctx context.Context, r plan.Replacement, live *types.Nodegroup) (string, error) {
	for _, key := range []string{ownership.TagRack, ownership.TagCluster, ownership.TagReplaces} {
		if live.Tags[key] != r.Tags[key] {
			return "", outcome.Reject("system_node_groups", "%s", plan.NotOurCopy(n.plan.Rack, r))
		}
	}
	switch live.Status {
	case types.NodegroupStatusCreating:
		return "EKS creates node group " + r.Copy, nil
	case types.NodegroupStatusCreateFailed:
		return "", fmt.Errorf("node group %s: create as a copy of %s: EKS gave up: %s; correct that and delete node group %s, "+
			"and the next pass makes it again", r.Copy, r.Group, health(live), r.Copy)
	case types.NodegroupStatusDeleting, types.NodegroupStatusDeleteFailed:
		return "", fmt.Errorf("node group %s: it is %s and was to take the place of %s; the first pass after it has gone makes it again",
			r.Copy, live.Status, r.Group)
	}
	if err := n.connect(ctx); err != nil {
		return "", err
	}
	return n.takesPods(ctx, live)
}

// takesPods returns why a group's nodes cannot take the rack's pods yet; empty if they can. All nodes must be Ready and
// carry the system label.
func (n *run) takesPods(ctx context.Context, group *types.Nodegroup) (string, error) {
	name, wanted := *group.NodegroupName, size(group).Desired
	nodes, err := k8s.Typed[corev1.Node](ctx, n.client, k8s.Node, "",
		ownership.LabelNodeGroup+"="+name+","+ownership.LabelSystemNode+"=true")
	if err != nil {
		return "", err
	}
	ready := 0
	for i := range nodes {
		if k8s.AcceptsPods(&nodes[i]) {
			ready++
		}
	}
	if ready >= wanted {
		return "", nil
	}
	note := fmt.Sprintf("%d of the %d nodes of node group %s are Ready", ready, wanted, name)
	if group.Health != nil && len(group.Health.Issues) > 0 {
		note += " (" + health(group) + ")"
	}
	return note, nil
}

// health returns EKS's issues with a group.
func health(group *types.Nodegroup) string {
	var all []string
	if group.Health != nil {
		for _, issue := range group.Health.Issues {
			text := string(issue.Code)
			if issue.Message != nil {
				text += ": " + *issue.Message
			}
			all = append(all, text)
		}
	}
	if len(all) == 0 {
		return "it does not say why"
	}
	return strings.Join(all, "; ")
}
