package plan

import "slices"

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
			b.warn(parameter, "node group %s is DEGRADED: %s; mend that, because until then EKS may start and update no nodes of it",
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
