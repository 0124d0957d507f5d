package plan

import (
	"slices"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
)

// Replacement is a SPOT system group and the on-demand copy that replaces it. EKS cannot change the capacity type of an
// existing group. The plan has the Replacement as long as the SPOT group exists.
type Replacement struct {
	Group string `json:"group"`
	// Copy is the on-demand group. Sawhorse creates it and never removes it, because the system nodes run in it.
	Copy string `json:"copy"`
	// Tags are the tags of the copy beside those of the group: the rack's, the ownership tags, and the name of the
	// replaced group.
	Tags map[string]string `json:"tags"`
	// Made means that the copy existed when the plan was made. If it is deleted later, the steps are due again.
	Made bool `json:"made,omitempty"`
}

// replaces returns the group that Sawhorse made this one a copy of for the rack, by the ownership tags. It returns ""
// for any other group.
func (g NodeGroup) replaces(config params.Config) string {
	if g.Tags[ownership.TagRack] != config.Rack || !strings.HasSuffix(g.Tags[ownership.TagCluster], ":cluster/"+config.ClusterName) {
		return ""
	}
	return g.Tags[ownership.TagReplaces]
}

// replaced plans the replacement of SPOT system groups. A group named in system_node_groups is replaced by a copy. A
// discovered group is a problem, because Sawhorse only deletes a group that the user has named. A group that EKS is
// deleting is waited for if it has a copy. certain means that the roles of unnamed groups are known.
func (b *builder) replaced(system []NodeGroup, certain bool) {
	if !b.config.Enabled && !b.facts.Records.WasOn {
		return
	}
	for _, g := range b.facts.NodeGroups {
		switch {
		case g.CapacityType == "CAPACITY_BLOCK" && b.config.Enabled && certain && RoleOf(b.config, g) == RoleSystem && !g.Gone():
			b.problem("system_node_groups", "system node group %s has capacity type CAPACITY_BLOCK, and EC2 ends its instances when the block "+
				"ends; with Karpenter the system nodes must be ON_DEMAND; write in system_node_groups those that are for the system, and give %s "+
				"a NoSchedule taint", g.Name, g.Name)
		case g.CapacityType != "SPOT" || RoleOf(b.config, g) != RoleSystem:
		case g.Gone() && !b.copied(g):
		case slices.Contains(b.config.SystemNodeGroups, g.Name):
			b.replace(g)
		case b.config.Enabled && certain:
			b.problem("system_node_groups",
				"system node group %s has capacity type SPOT, and a node group's capacity type cannot be changed; with Karpenter the system nodes "+
					"must be ON_DEMAND; write system_node_groups=%s to name the system node groups, and %s is replaced by an on-demand copy and "+
					"deleted, or replace it yourself", g.Name, strings.Join(groupNames(system), ","), g.Name)
		}
	}
	if b.config.Enabled {
		b.plan.Nodegroups.System = afterwards(b.plan.Nodegroups)
	}
}

func (b *builder) replace(g NodeGroup) {
	r := Replacement{Group: g.Name, Copy: ownership.NodeGroupCopy(g.Name), Tags: b.tags()}
	r.Tags[ownership.TagReplaces] = g.Name
	taken := slices.Contains(groupNames(b.facts.Present()), r.Copy)
	r.Made = b.copied(g)
	b.plan.Nodegroups.Replaced = append(b.plan.Nodegroups.Replaced, r)
	switch {
	case !b.config.Enabled:
	case taken && !r.Made:
		b.problem("system_node_groups", "%s", NotOurCopy(b.config.Rack, r))
	case g.LostTemplate != "" && !r.Made:
		b.problem("system_node_groups",
			"SPOT system node group %s cannot be copied: EC2 no longer has the launch template %s that it was made from; make an on-demand node "+
				"group in its place, and write its name instead; %s is then an additional group, which needs a NoSchedule taint", g.Name,
			g.LostTemplate, g.Name)
	case !b.facts.Deployment.Unknown && !r.Made && !b.facts.Deployment.mayHand(g.NodeRole):
		b.problem("system_node_groups",
			"SPOT system node group %s cannot be copied: its role %s is none of those that this deployment of Sawhorse may give to node groups; "+
				"have the role's name added to the context value nodeRoles of the stack, or make an on-demand node group in its place, and write its "+
				"name instead; %s is then an additional group, which needs a NoSchedule taint", g.Name, g.NodeRole, g.Name)
	default:
		b.warn("system_node_groups",
			"system node group %s has capacity type SPOT, which cannot be changed: "+
				"it is drained and deleted once its on-demand copy %s and the NodePools are Ready; "+
				"the copy then counts as %s, and stays when Karpenter is turned off; tell the tool that made %s, if it would make it again",
			g.Name, r.Copy, g.Name, g.Name)
	}
}

// copied reports whether the on-demand copy of a group exists.
func (b *builder) copied(g NodeGroup) bool {
	return slices.ContainsFunc(b.facts.Present(), func(other NodeGroup) bool {
		return other.Name == ownership.NodeGroupCopy(g.Name) && other.replaces(b.config) == g.Name
	})
}

// NotOurCopy returns the problem for a group that has the name of a copy and was not made by Sawhorse.
func NotOurCopy(rack string, r Replacement) string {
	return "system_node_groups has the SPOT node group " + r.Group + ", whose on-demand copy would be named " + r.Copy +
		"; there is a node group of that name that Sawhorse did not make for rack " + rack +
		"; write " + r.Copy + " in the place of " + r.Group + ", which is then an additional group and needs a NoSchedule taint"
}

// afterwards returns the system groups after the replacement. The plan has these from the beginning, so that the
// replacement makes no other step due.
func afterwards(n Nodegroups) []string {
	groups := slices.Clone(n.System)
	for _, r := range n.Replaced {
		groups = slices.DeleteFunc(groups, func(name string) bool { return name == r.Group || name == r.Copy })
		groups = append(groups, r.Copy)
	}
	if len(n.Replaced) > 0 {
		slices.Sort(groups) // the order in which EKS lists them
	}
	return groups
}
