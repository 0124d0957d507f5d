package plan

import (
	"slices"
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

// RoleOf tells a node group's role: by the parameters that name groups, else by its labels. Where system_node_groups names
// the system groups, a group that nothing says anything about is an additional one: Cluster Autoscaler goes on scaling it.
// The copy of a group counts under that one's name.
func RoleOf(config params.Config, g NodeGroup) GroupRole {
	_, additional := g.Labels[names.LabelAdditional]
	switch {
	case slices.Contains(config.SystemNodeGroups, g.Name), slices.Contains(config.SystemNodeGroups, g.replaces(config)):
		return RoleSystem
	case slices.Contains(config.BuildNodeGroups, g.Name):
		return RoleBuild
	case len(config.BuildNodeGroups) == 0 && g.Labels[names.LabelBuild] == "true":
		return RoleBuild
	case additional || len(config.SystemNodeGroups) > 0:
		return RoleAdditional
	default:
		return RoleSystem
	}
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

// OfRole are the groups of one role, in the order of the facts.
func (f Facts) OfRole(config params.Config, role GroupRole) []NodeGroup {
	var groups []NodeGroup
	for _, g := range f.NodeGroups {
		if RoleOf(config, g) == role {
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

// pinned are the Deployments that belong on system nodes: those of the parameter, else the spec's (section 5); the Cluster
// Autoscaler is pinned by its own step.
func pinned(config params.Config) []string {
	if len(config.SystemDeployments) > 0 {
		return config.SystemDeployments
	}
	rack := config.Rack
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
	system, build := b.facts.OfRole(b.config, RoleSystem), b.facts.OfRole(b.config, RoleBuild)
	b.plan.Nodegroups.System = groupNames(system)
	b.plan.Nodegroups.Build = groupNames(build)
	b.plan.Nodegroups.BuildMin = b.config.BuildNodeMin
	b.named()
	b.replaced(system)
	if !b.config.Enabled {
		return
	}
	b.plan.Nodegroups.BuildEmpty = true
	b.plan.Nodegroups.Pinned = pinned(b.config)
	if len(system) == 0 && (len(b.facts.NodeGroups) > 0 || !b.facts.Offline) {
		b.problem("karpenter_enabled", "cluster %s has no system node group, and Karpenter's controller must run on nodes that Karpenter does not manage; create a managed node group with on-demand capacity", b.config.ClusterName)
	}
	var shared []string
	for _, g := range b.facts.OfRole(b.config, RoleAdditional) {
		if !g.Dedicated() {
			shared = append(shared, g.Name)
		}
	}
	if len(shared) > 0 {
		b.problem("karpenter_enabled", "additional node groups that are not dedicated: %s; with Karpenter each one needs a NoSchedule or NoExecute taint, so that Cluster Autoscaler and Karpenter do not scale for the same pods; add the taint or delete the group", strings.Join(shared, ", "))
	}
}

// named refuses names of node groups that the cluster does not have.
func (b *builder) named() {
	if b.facts.Offline && len(b.facts.NodeGroups) == 0 {
		return
	}
	all := groupNames(b.facts.NodeGroups)
	known := slices.Clone(all)
	for _, g := range b.facts.NodeGroups {
		known = append(known, g.replaces(b.config)) // a copy counts under the name of the group that it replaced
	}
	for _, parameter := range []struct {
		name   string
		groups []string
	}{{"system_node_groups", b.config.SystemNodeGroups}, {"build_node_groups", b.config.BuildNodeGroups}} {
		for _, group := range parameter.groups {
			if !slices.Contains(known, group) {
				b.hindrance(parameter.name, "%s has the node group %q, which cluster %s does not have; it has %s; write one of these", parameter.name, group, b.config.ClusterName, strings.Join(all, ", "))
			}
		}
	}
}

// autoscaler is the row of the Cluster Autoscaler table that applies (spec 5).
func (b *builder) autoscaler() {
	b.plan.Autoscaler.Deployment = b.config.Autoscaler
	b.plan.Autoscaler.FallbackArgs = []string{
		"--node-group-auto-discovery=asg:tag=k8s.io/cluster-autoscaler/enabled,k8s.io/cluster-autoscaler/" + b.config.ClusterName,
		"--balance-similar-node-groups",
	}
	additional := b.facts.OfRole(b.config, RoleAdditional)
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
