package plan

import (
	"slices"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
)

// GroupRole is the purpose of a managed node group.
type GroupRole string

// The roles of node groups.
const (
	RoleSystem     GroupRole = "system"
	RoleBuild      GroupRole = "build"
	RoleAdditional GroupRole = "additional"
)

// RoleOf returns a node group's role: by the parameters that name groups, else by its labels. Any other group is
// additional, so that Cluster Autoscaler keeps scaling it, if system_node_groups names the system groups or if its
// taints reserve it for special work, as in clusters that Convox did not make. Otherwise it is a system group. The copy
// of a group counts under that group's name.
func RoleOf(config params.Config, g NodeGroup) GroupRole {
	_, additional := g.Labels[ownership.LabelAdditional]
	switch {
	case slices.Contains(config.SystemNodeGroups, g.Name), slices.Contains(config.SystemNodeGroups, g.replaces(config)):
		return RoleSystem
	case slices.Contains(config.BuildNodeGroups, g.Name):
		return RoleBuild
	case len(config.BuildNodeGroups) == 0 && g.Labels[ownership.LabelBuild] == "true":
		return RoleBuild
	case additional, len(config.SystemNodeGroups) > 0, slices.ContainsFunc(g.Taints, NodeGroupTaint.reserves):
		return RoleAdditional
	default:
		return RoleSystem
	}
}

// Dedicated reports whether the group has a taint that keeps other pods away.
func (g NodeGroup) Dedicated() bool { return slices.ContainsFunc(g.Taints, NodeGroupTaint.keepsAway) }

// reserves reports whether the taint reserves the group for other work than the system's: it keeps system pods away too.
// Karpenter's controller, for example, does not tolerate it unless its tolerations say so.
func (t NodeGroupTaint) reserves() bool { return t.keepsAway() && t.Key != ownership.TaintSystem }

// KeepsAway has the effects of taints that pods must tolerate to run on a group's nodes: Kubernetes' names by EKS's.
var KeepsAway = map[string]string{"NO_SCHEDULE": "NoSchedule", "NO_EXECUTE": "NoExecute"}

// keepsAway reports whether pods need a toleration to run on the group's nodes.
func (t NodeGroupTaint) keepsAway() bool { return KeepsAway[t.Effect] != "" }

// OfRole returns the present groups of one role, in the order of the facts.
func (f Facts) OfRole(config params.Config, role GroupRole) []NodeGroup {
	return slices.DeleteFunc(f.Present(), func(g NodeGroup) bool { return RoleOf(config, g) != role })
}

func groupNames(groups []NodeGroup) []string {
	var all []string
	for _, g := range groups {
		all = append(all, g.Name)
	}
	return all
}

// pinned returns the Deployments that belong on system nodes: those of the parameter, else the default list. The step
// autoscaler places Cluster Autoscaler.
func pinned(config params.Config) []string {
	if len(config.SystemDeployments) > 0 {
		return config.SystemDeployments
	}
	own := ownership.RackNamespace(config.Rack)
	return []string{
		ownership.Namespace + "/metrics-server",
		own + "/api",
		own + "/resolver",
		own + "/ingress-nginx",
		own + "/ingress-nginx-internal",
	}
}

// nodegroups plans the node groups and reports what is wrong with them.
func (b *builder) nodegroups() {
	system, build := b.facts.OfRole(b.config, RoleSystem), b.facts.OfRole(b.config, RoleBuild)
	b.plan.Nodegroups.System = groupNames(system)
	b.plan.Nodegroups.Build = groupNames(build)
	b.plan.Nodegroups.Additional = groupNames(b.facts.OfRole(b.config, RoleAdditional))
	b.plan.Nodegroups.BuildMin = b.config.BuildNodeMin
	certain := b.named()
	b.states()
	b.replaced(system, certain)
	b.migration(certain)
	if !b.config.Enabled {
		return
	}
	b.builds(build)
	b.plan.Nodegroups.Pinned = pinned(b.config)
	if certain && len(system) == 0 && (len(b.facts.NodeGroups) > 0 || !b.facts.Offline) {
		b.withoutSystemGroup()
	}
	var shared []string
	for _, g := range b.facts.OfRole(b.config, RoleAdditional) {
		if _, itself := g.Labels[ownership.LabelAdditional]; !g.Dedicated() && (certain || itself) {
			shared = append(shared, g.Name)
		}
	}
	if len(shared) > 0 {
		b.problem("karpenter_enabled",
			"additional node groups that are not dedicated: %s; with Karpenter each one needs a NoSchedule or NoExecute taint, "+
				"so that Cluster Autoscaler and Karpenter do not scale for the same pods; "+
				"add the taint, or write all groups that are for the system in system_node_groups, if these are among them",
			strings.Join(shared, ", "))
	}
}

// builds decides about the build groups: they are emptied if the build pool replaces them, else they stay.
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
		b.warn("build_node_enabled",
			"build node groups with nodes and no pool to replace them: %s; they keep their size, and Cluster Autoscaler goes on scaling them; "+
				"write build_node_enabled=true, and Karpenter launches nodes for builds and these groups go to zero",
			strings.Join(used, ", "))
	}
	if len(shared) > 0 {
		b.warn("build_node_enabled",
			"build node groups that are not dedicated: %s; Cluster Autoscaler goes on scaling them, for the same pods as Karpenter; "+
				"add a NoSchedule taint, like dedicated=build:NoSchedule, or write build_node_enabled=true", strings.Join(shared, ", "))
	}
}

// Back returns the size that a group returns to which was emptied as a build group. before is the size it had, live is its size
// now. Existing nodes stay, because builds may still run on them or Cluster Autoscaler may have added them. Cluster Autoscaler
// removes idle ones.
func (n Nodegroups) Back(group string, before, live Scaling) Scaling {
	if n.BuildMin == nil || !slices.Contains(n.Build, group) {
		return Restored(before, live)
	}
	least, most := *n.BuildMin, max(*n.BuildMin, before.Max, live.Max, 1) // EKS refuses a max of 0
	return Scaling{Min: least, Max: most, Desired: min(max(least, live.Desired), most)}
}

// Restored returns the size that an emptied group returns to. Nodes that were added since stay, because pods may run on them, and so
// does a maximum that was raised since: emptying leaves the maximum as it is.
func Restored(before, live Scaling) Scaling {
	desired := max(before.Desired, live.Desired)
	return Scaling{Min: before.Min, Max: max(before.Max, live.Max, desired), Desired: desired}
}

// All returns the names of all groups.
func (n Nodegroups) All() []string { return slices.Concat(n.System, n.Build, n.Additional) }

// withoutSystemGroup refuses a cluster that has no nodes for Karpenter's controller.
func (b *builder) withoutSystemGroup() {
	way := "write karpenter_enabled=false, if all of it is to stay on Fargate"
	if all := groupNames(b.facts.NodeGroups); len(all) > 0 {
		way = "name those of its node groups that are for the system in system_node_groups (it has " + strings.Join(all, ", ") + ")"
	}
	b.problem("karpenter_enabled",
		"cluster %s has no system node group, and Karpenter's controller must run on nodes that Karpenter does not manage; "+
			"Fargate has no nodes that Sawhorse could label for it; "+
			"create a managed node group with on-demand capacity and without taints, or %s", b.config.ClusterName, way)
}

// named refuses names of node groups that the cluster does not have. certain is false if one of the parameters that
// name groups is wrong, because then the roles of all other groups are unknown.
func (b *builder) named() (certain bool) {
	certain = !b.config.HasRefused("system_node_groups") && !b.config.HasRefused("build_node_groups")
	all := groupNames(b.facts.Present())
	// The missing system group is then the only problem to report.
	if len(all) == 0 && (b.facts.Offline || b.config.Enabled) {
		return certain
	}
	known := slices.Clone(all)
	for _, g := range b.facts.Present() {
		known = append(known, g.replaces(b.config)) // a copy counts under the name of the replaced group
	}
	for _, parameter := range []struct {
		name   string
		groups []string
	}{
		{"system_node_groups", b.config.SystemNodeGroups}, {"build_node_groups", b.config.BuildNodeGroups},
		{params.ParamMigrate, b.config.MigrateNodeGroups},
	} {
		for _, group := range parameter.groups {
			switch {
			case slices.Contains(known, group):
				continue
			case len(all) == 0:
				b.problemUnlessDisabling(parameter.name, "%s has the node group %q, and cluster %s has none at all; create it, or take it out",
					parameter.name, group, b.config.ClusterName)
			default:
				b.problemUnlessDisabling(parameter.name, "%s has the node group %q, which cluster %s does not have; it has %s; write one of these",
					parameter.name, group, b.config.ClusterName, strings.Join(all, ", "))
			}
			certain = certain && parameter.name == params.ParamMigrate
		}
	}
	return certain
}

// Gone reports whether a group counts as absent: EKS is deleting it, or failed to create it. Such a group cannot be
// changed.
func (g NodeGroup) Gone() bool { return g.Status == "DELETING" || g.Status == "CREATE_FAILED" }

// Present returns the node groups that are not Gone.
func (f Facts) Present() []NodeGroup {
	return slices.DeleteFunc(slices.Clone(f.NodeGroups), NodeGroup.Gone)
}

// states adds warnings for groups that are impaired. Their existing nodes keep running.
func (b *builder) states() {
	for _, g := range b.facts.Present() {
		parameter := parameterOf(RoleOf(b.config, g))
		if g.Status == "DEGRADED" {
			b.warn(parameter, "node group %s is DEGRADED: %s; correct that, because until then EKS may start and update no nodes of it",
				g.Name, g.Health)
		}
		if g.LostTemplate != "" {
			b.warn(parameter, "node group %s was made from launch template %s, which EC2 no longer has; "+
				"its nodes go on, but it gets no new ones, and their security groups are unknown; "+
				"name the security groups in security_group_ids, and make a group from a template that exists to take its place", g.Name,
				g.LostTemplate)
		}
	}
}

// parameterOf returns the parameter under which problems of a group with this role are reported.
func parameterOf(role GroupRole) string {
	switch role {
	case RoleSystem:
		return "system_node_groups"
	case RoleBuild:
		return "build_node_groups"
	default:
		return "karpenter_enabled"
	}
}
