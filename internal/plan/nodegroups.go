package plan

import (
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/names"
	"github.com/sawhorse-io/sawhorse/internal/params"
)

// GroupRole is what a managed node group is for (spec 4).
type GroupRole string

// The roles of node groups.
const (
	RoleSystem     GroupRole = "system"
	RoleBuild      GroupRole = "build"
	RoleAdditional GroupRole = "additional"
)

// Role tells a node group's role by its labels.
func (g NodeGroup) Role() GroupRole {
	if g.Labels[names.LabelBuild] == "true" {
		return RoleBuild
	}
	if _, ok := g.Labels[names.LabelAdditional]; ok {
		return RoleAdditional
	}
	return RoleSystem
}

// Dedicated tells whether the group's taints keep pods away that were not meant for it.
func (g NodeGroup) Dedicated() bool {
	for _, t := range g.Taints {
		if t.Effect == "NO_SCHEDULE" || t.Effect == "NO_EXECUTE" {
			return true
		}
	}
	return false
}

// ofRole are the groups of one role, in the order of the facts.
func (f Facts) ofRole(role GroupRole) []NodeGroup {
	var groups []NodeGroup
	for _, g := range f.NodeGroups {
		if g.Role() == role {
			groups = append(groups, g)
		}
	}
	return groups
}

func groupNames(groups []NodeGroup) []string {
	var all []string
	for _, g := range groups {
		all = append(all, g.Name)
	}
	return all
}

// pinned are the Deployments that belong on system nodes (spec 5); the Cluster Autoscaler is pinned by its own step.
func pinned(rack string) []string {
	return []string{
		"kube-system/metrics-server",
		rack + "-system/api",
		rack + "-system/resolver",
		rack + "-system/ingress-nginx",
		rack + "-system/ingress-nginx-internal",
	}
}

// nodegroups is what the plan wants of the node groups, and why it can't.
func (b *builder) nodegroups() {
	system, build := b.facts.ofRole(RoleSystem), b.facts.ofRole(RoleBuild)
	b.plan.Nodegroups.System = groupNames(system)
	b.plan.Nodegroups.Build = groupNames(build)
	if !b.config.Enabled {
		return
	}
	b.plan.Nodegroups.BuildEmpty = true
	b.plan.Nodegroups.Pinned = pinned(b.config.Rack)
	if len(system) == 0 {
		b.problem("karpenter_enabled", "cluster %s has no system node group, and Karpenter's controller must run on nodes that Karpenter does not manage; create a managed node group with on-demand capacity", b.config.ClusterName)
	}
	for _, g := range system {
		if g.CapacityType == "SPOT" {
			b.problem("karpenter_enabled", "system node group %s has capacity type SPOT, and a node group's capacity type cannot be changed; with Karpenter the system nodes must be ON_DEMAND; replace the group by an on-demand one", g.Name)
		}
	}
	var shared []string
	for _, g := range b.facts.ofRole(RoleAdditional) {
		if !g.Dedicated() {
			shared = append(shared, g.Name)
		}
	}
	if len(shared) > 0 {
		b.problem("karpenter_enabled", "additional node groups that are not dedicated: %s; with Karpenter each one needs a NoSchedule or NoExecute taint, so that Cluster Autoscaler and Karpenter do not scale for the same pods; add the taint or delete the group", strings.Join(shared, ", "))
	}
}

// autoscaler is the row of the Cluster Autoscaler table that applies (spec 5).
func (b *builder) autoscaler() {
	b.plan.Autoscaler.FallbackArgs = []string{
		"--node-group-auto-discovery=asg:tag=k8s.io/cluster-autoscaler/enabled,k8s.io/cluster-autoscaler/" + b.config.ClusterName,
		"--balance-similar-node-groups",
	}
	additional := b.facts.ofRole(RoleAdditional)
	switch {
	case !b.config.Enabled:
		b.plan.Autoscaler.State = AutoscalerBaseline
	case len(additional) == 0:
		b.plan.Autoscaler.State = AutoscalerOff
	default:
		b.plan.Autoscaler.State = AutoscalerGroups
		for _, g := range additional {
			for _, asg := range g.Resources.AutoScalingGroups {
				b.plan.Autoscaler.Groups = append(b.plan.Autoscaler.Groups, AutoscaledGroup{Min: g.Scaling.Min, Max: g.Scaling.Max, ASG: asg.Name})
			}
		}
	}
}

// pools is the section of the finished manifests: none where Karpenter is off.
func pools(config params.Config, objects []Object) NodePools {
	if !config.Enabled {
		return NodePools{}
	}
	return NodePools{Objects: objects}
}
