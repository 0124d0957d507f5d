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

// RoleOf tells a node group's role: by the parameters that name groups, else by its labels. A group that nothing says anything
// about is an additional one, which Cluster Autoscaler goes on scaling, where system_node_groups names the system groups, and where
// its taints reserve it for special work, as in clusters that Convox did not make. The copy of a group counts under that one's name.
func RoleOf(config params.Config, g NodeGroup) GroupRole {
	_, additional := g.Labels[names.LabelAdditional]
	switch {
	case slices.Contains(config.SystemNodeGroups, g.Name), slices.Contains(config.SystemNodeGroups, g.replaces(config)):
		return RoleSystem
	case slices.Contains(config.BuildNodeGroups, g.Name):
		return RoleBuild
	case len(config.BuildNodeGroups) == 0 && g.Labels[names.LabelBuild] == "true":
		return RoleBuild
	case additional || len(config.SystemNodeGroups) > 0 || g.reserved():
		return RoleAdditional
	default:
		return RoleSystem
	}
}

// Dedicated tells whether the group's taints keep pods away that were not meant for it.
func (g NodeGroup) Dedicated() bool { return slices.ContainsFunc(g.Taints, NodeGroupTaint.keepsAway) }

// reserved tells whether the group's taints reserve it for other work than the system's.
func (g NodeGroup) reserved() bool { return slices.ContainsFunc(g.Taints, NodeGroupTaint.reserves) }

// reserves tells whether the taint keeps system pods away too: Karpenter's controller, for one, does not tolerate it.
func (t NodeGroupTaint) reserves() bool { return t.keepsAway() && t.Key != names.TaintSystem }

// ClosedToController are the system groups, each with a taint that Karpenter's controller does not tolerate, where that is all of them: a
// controller that ends starts nowhere.
func (f Facts) ClosedToController(config params.Config) []string {
	var closed []string
	for _, g := range f.OfRole(config, RoleSystem) {
		i := slices.IndexFunc(g.Taints, NodeGroupTaint.reserves)
		if i < 0 {
			return nil
		}
		closed = append(closed, g.Name+" ("+g.Taints[i].Key+")")
	}
	return closed
}

// keepsAway tells whether pods without a toleration do not get onto the group's nodes.
func (t NodeGroupTaint) keepsAway() bool {
	return t.Effect == "NO_SCHEDULE" || t.Effect == "NO_EXECUTE"
}

// OfRole are the groups of one role that are present, in the order of the facts.
func (f Facts) OfRole(config params.Config, role GroupRole) []NodeGroup {
	var groups []NodeGroup
	for _, g := range f.Present() {
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
	certain := b.named()
	b.states()
	b.replaced(system, certain)
	if !b.config.Enabled {
		return
	}
	b.builds(build)
	b.plan.Nodegroups.Pinned = pinned(b.config)
	if certain && len(system) == 0 && (len(b.facts.NodeGroups) > 0 || !b.facts.Offline) {
		b.withoutSystemGroup()
	}
	if closed := b.facts.ClosedToController(b.config); len(closed) > 0 {
		b.warn("system_node_groups", "every system node group has a taint that Karpenter's controller does not tolerate: %s; "+
			"a controller that is restarted stays Pending, and no node is launched any more; take the taint off one of them, "+
			"use the key %s, which the controller tolerates, or name a group without taints in system_node_groups too",
			strings.Join(closed, ", "), names.TaintSystem)
	}
	var shared []string
	for _, g := range b.facts.OfRole(b.config, RoleAdditional) {
		if _, itself := g.Labels[names.LabelAdditional]; !g.Dedicated() && (certain || itself) {
			shared = append(shared, g.Name)
		}
	}
	if len(shared) > 0 {
		b.problem("karpenter_enabled", "additional node groups that are not dedicated: %s; with Karpenter each one needs a NoSchedule or NoExecute taint, "+
			"so that Cluster Autoscaler and Karpenter do not scale for the same pods; "+
			"add the taint, or write all groups that are for the system in system_node_groups, if these are among them", strings.Join(shared, ", "))
	}
}

// builds is what becomes of the build groups: they are emptied where the pool build takes their place, else they stay (spec 4).
func (b *builder) builds(build []NodeGroup) {
	b.plan.Nodegroups.BuildEmpty = b.config.BuildNodes && len(build) > 0
	if b.config.BuildNodes {
		return
	}
	var used, shared []string
	for _, g := range build {
		if g.Scaling.Desired > 0 {
			used = append(used, g.Name)
		}
		if !g.Dedicated() {
			shared = append(shared, g.Name)
		}
	}
	if len(used) > 0 {
		b.warn("build_node_enabled", "build node groups with nodes and no pool to replace them: %s; they keep their size, and Cluster Autoscaler goes on scaling them; "+
			"write build_node_enabled=true, and Karpenter launches nodes for builds and these groups go to zero", strings.Join(used, ", "))
	}
	if len(shared) > 0 {
		b.warn("build_node_enabled", "build node groups that are not dedicated: %s; Cluster Autoscaler goes on scaling them, for the same pods as Karpenter; "+
			"add a NoSchedule taint, like dedicated=build:NoSchedule, or write build_node_enabled=true", strings.Join(shared, ", "))
	}
}

// Back is the size that a build group goes back to which had the size before, and has the size live now. Where the plan gives a
// size, nodes that are there stay: a group whose builds had not ended was never emptied, and by now Cluster Autoscaler may have
// added some; it also takes away what is idle.
func (n Nodegroups) Back(before, live Scaling) Scaling {
	if n.BuildMin == nil {
		return before
	}
	least, most := *n.BuildMin, max(*n.BuildMin, before.Max, 1) // EKS refuses a max of 0
	return Scaling{Min: least, Max: most, Desired: min(max(least, live.Desired), most)}
}

// withoutSystemGroup refuses a cluster that has nowhere to run Karpenter's controller.
func (b *builder) withoutSystemGroup() {
	way := "write karpenter_enabled=false, if all of it is to stay on Fargate"
	if all := groupNames(b.facts.NodeGroups); len(all) > 0 {
		way = "name those of its node groups that are for the system in system_node_groups (it has " + strings.Join(all, ", ") + ")"
	}
	b.problem("karpenter_enabled", "cluster %s has no system node group, and Karpenter's controller must run on nodes that Karpenter does not manage; Fargate has no nodes that Sawhorse could label for it; "+
		"create a managed node group with on-demand capacity and without taints, or %s", b.config.ClusterName, way)
}

// named refuses names of node groups that the cluster does not have. certain tells whether the roles of groups can be told: while one of
// the parameters that name groups is wrong, what the others seem to be for only follows from that.
func (b *builder) named() (certain bool) {
	certain = !b.config.HasRefused("system_node_groups") && !b.config.HasRefused("build_node_groups")
	all := groupNames(b.facts.Present())
	if len(all) == 0 && (b.facts.Offline || b.config.Enabled) { // Karpenter's need for a system group says it all
		return certain
	}
	known := slices.Clone(all)
	for _, g := range b.facts.Present() {
		known = append(known, g.replaces(b.config)) // a copy counts under the name of the group that it replaced
	}
	for _, parameter := range []struct {
		name   string
		groups []string
	}{{"system_node_groups", b.config.SystemNodeGroups}, {"build_node_groups", b.config.BuildNodeGroups}} {
		for _, group := range parameter.groups {
			switch {
			case slices.Contains(known, group):
				continue
			case len(all) == 0:
				b.hindrance(parameter.name, "%s has the node group %q, and cluster %s has none at all; create it, or take it out",
					parameter.name, group, b.config.ClusterName)
			default:
				b.hindrance(parameter.name, "%s has the node group %q, which cluster %s does not have; it has %s; write one of these", parameter.name, group, b.config.ClusterName, strings.Join(all, ", "))
			}
			certain = false
		}
	}
	return certain
}

// autoscaler is the row of the Cluster Autoscaler table that applies (spec 5).
func (b *builder) autoscaler() {
	b.plan.Autoscaler.Deployment = b.config.Autoscaler
	b.plan.Autoscaler.FallbackArgs = []string{
		"--node-group-auto-discovery=asg:tag=k8s.io/cluster-autoscaler/enabled,k8s.io/cluster-autoscaler/" + b.config.ClusterName,
		"--balance-similar-node-groups",
	}
	if b.config.Enabled {
		b.plan.Autoscaler.Managed = b.facts.scalingGroups()
	}
	scaled := b.scaled()
	switch {
	case !b.config.Enabled:
		b.plan.Autoscaler.State = AutoscalerBaseline
	case len(scaled) == 0:
		b.plan.Autoscaler.State = AutoscalerOff
	default:
		b.plan.Autoscaler.State = AutoscalerGroups
		for _, g := range scaled {
			for _, asg := range g.Resources.AutoScalingGroups {
				b.plan.Autoscaler.Groups = append(b.plan.Autoscaler.Groups, AutoscaledGroup{Min: g.Scaling.Min, Max: g.Scaling.Max, ASG: asg.Name})
			}
		}
	}
}

// scalingGroups are the names of the Auto Scaling groups of all managed node groups, sorted.
func (f Facts) scalingGroups() []string {
	var all []string
	for _, g := range f.NodeGroups {
		for _, asg := range g.Resources.AutoScalingGroups {
			all = append(all, asg.Name)
		}
	}
	slices.Sort(all)
	return all
}

// scaled are the groups that Cluster Autoscaler goes on scaling beside Karpenter: the additional ones, and the build groups that
// no pool replaces, in the size that they go back to.
func (b *builder) scaled() []NodeGroup {
	groups := b.facts.OfRole(b.config, RoleAdditional)
	if b.plan.Nodegroups.BuildEmpty {
		return groups
	}
	for _, g := range b.facts.OfRole(b.config, RoleBuild) {
		if before, emptied := b.facts.Records.Emptied[g.Name]; emptied {
			g.Scaling = b.plan.Nodegroups.Back(before, g.Scaling)
		}
		groups = append(groups, g)
	}
	return groups
}

// pools is the section of the finished manifests: none where Karpenter is off.
func pools(config params.Config, objects []Object) NodePools {
	if !config.Enabled {
		return NodePools{}
	}
	return NodePools{Objects: objects}
}
