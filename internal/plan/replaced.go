package plan

import (
	"slices"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/names"
	"github.com/sawhorse-io/sawhorse/internal/params"
)

// Replacement is a SPOT system group and the on-demand copy that takes its place (spec 4): EKS fixes a group's capacity type
// when it makes it. It is in the plan as long as the SPOT group exists.
type Replacement struct {
	Group string `json:"group"`
	// Copy is the on-demand group. It is what Sawhorse makes and does not remove again: the system nodes live on it.
	Copy string `json:"copy"`
	// Tags are on the copy beside the group's own: the rack's, the marks, and what it replaces.
	Tags map[string]string `json:"tags"`
	// Made tells that the copy was there when the plan was made. One that has been deleted since makes the steps due again.
	Made bool `json:"made,omitempty"`
}

// The steps around the others where a group is replaced. The copy comes before anything relies on system nodes, so that the
// controller starts on nodes that stay; the SPOT group goes last of all, behind nodepools. Off again, the copy stays; a SPOT
// group whose nodes were being drained gets them back before there must be room on it.
var (
	copyGroups   = Step{Name: "nodegroups/copy", Deadline: 2400, Guards: "nodegroups/retire", Why: "on-demand copies of SPOT system node groups"}
	retireGroups = Step{Name: "nodegroups/retire", Deadline: 5400, Why: "SPOT system node groups drained and deleted"}
	keepGroups   = Step{Name: "nodegroups/keep", Deadline: 300, Guards: "nodepools", Why: "SPOT system node groups that have not been replaced yet stay"}
)

// replaces is the group in whose place Sawhorse made this one for the rack: it carries both marks. "" for any other group.
func (g NodeGroup) replaces(config params.Config) string {
	if g.Tags[names.TagRack] != config.Rack || !strings.HasSuffix(g.Tags[names.TagCluster], ":cluster/"+config.ClusterName) {
		return ""
	}
	return g.Tags[names.TagReplaces]
}

// replaced are the SPOT groups among the system groups: a named one gives way to a copy, one that was only discovered is a
// problem, because deleting a group of somebody else's wants somebody's word. One that EKS deletes already is waited for where
// it has a copy. certain tells whether one that nobody named is known to be a system group.
func (b *builder) replaced(system []NodeGroup, certain bool) {
	if !b.config.Enabled && !b.facts.Records.WasOn {
		return
	}
	for _, g := range b.facts.NodeGroups {
		switch {
		case g.CapacityType != "SPOT" || RoleOf(b.config, g) != RoleSystem:
		case g.Gone() && !b.copied(g):
		case slices.Contains(b.config.SystemNodeGroups, g.Name):
			b.replace(g)
		case b.config.Enabled && certain:
			b.problem("system_node_groups", "system node group %s has capacity type SPOT, and a node group's capacity type cannot be changed; with Karpenter the system nodes must be ON_DEMAND; "+
				"write system_node_groups=%s to name the system node groups, and %s is replaced by an on-demand copy and deleted, or replace it yourself", g.Name, strings.Join(groupNames(system), ","), g.Name)
		}
	}
	if b.config.Enabled {
		b.plan.Nodegroups.System = afterwards(b.plan.Nodegroups)
	}
}

// replace plans the copy of one group.
func (b *builder) replace(g NodeGroup) {
	r := Replacement{Group: g.Name, Copy: names.NodeGroupCopy(g.Name), Tags: b.marks()}
	r.Tags[names.TagReplaces] = g.Name
	taken := slices.Contains(groupNames(b.facts.Present()), r.Copy)
	r.Made = b.copied(g)
	b.plan.Nodegroups.Replaced = append(b.plan.Nodegroups.Replaced, r)
	switch {
	case !b.config.Enabled:
	case taken && !r.Made:
		b.problem("system_node_groups", "%s", NotOurCopy(b.config.Rack, r))
	case g.LostTemplate != "" && !r.Made:
		b.problem("system_node_groups", "SPOT system node group %s cannot be copied: EC2 no longer has the launch template %s that it was made from; make an on-demand node group in its place, "+
			"and write its name instead; %s is then an additional group, which needs a NoSchedule taint", g.Name, g.LostTemplate, g.Name)
	case !b.facts.Offline && !r.Made && !b.facts.Deployment.mayHand(g.NodeRole):
		b.problem("system_node_groups", "SPOT system node group %s cannot be copied: its role %s is none of those that this deployment of Sawhorse may give to node groups; "+
			"have the role's name added to the context value nodeRoles of the stack, or make an on-demand node group in its place, "+
			"and write its name instead; %s is then an additional group, which needs a NoSchedule taint", g.Name, g.NodeRole, g.Name)
	default:
		b.warn("system_node_groups", "system node group %s has capacity type SPOT, which cannot be changed: it is drained and deleted once its on-demand copy %s and the NodePools are Ready; "+
			"the copy then counts as %s, and stays when Karpenter is turned off; tell the tool that made %s, if it would make it again", g.Name, r.Copy, g.Name, g.Name)
	}
}

// copied tells whether a group's on-demand copy is there.
func (b *builder) copied(g NodeGroup) bool {
	return slices.ContainsFunc(b.facts.Present(), func(other NodeGroup) bool {
		return other.Name == names.NodeGroupCopy(g.Name) && other.replaces(b.config) == g.Name
	})
}

// NotOurCopy says what to do about a group that has the name of a copy and is none.
func NotOurCopy(rack string, r Replacement) string {
	return "system_node_groups has the SPOT node group " + r.Group + ", whose on-demand copy would be named " + r.Copy + "; there is a node group of that name that Sawhorse did not make for rack " + rack +
		"; write " + r.Copy + " in the place of " + r.Group + ", which is then an additional group and needs a NoSchedule taint"
}

// afterwards are the system groups once the copies have taken over. They are the plan's from the beginning, so that the
// replacement itself makes no other step due.
func afterwards(n Nodegroups) []string {
	groups := slices.Clone(n.System)
	for _, r := range n.Replaced {
		groups = slices.DeleteFunc(groups, func(name string) bool { return name == r.Group || name == r.Copy })
		groups = append(groups, r.Copy)
	}
	if len(n.Replaced) > 0 {
		slices.Sort(groups) // as EKS's list will be
	}
	return groups
}

// around adds the steps of the replacement to an order.
func (b *builder) around(steps []Step) []Step {
	switch {
	case len(b.plan.Nodegroups.Replaced) == 0:
		return steps
	case b.plan.Goal == GoalKarpenter:
		return slices.Concat([]Step{copyGroups}, steps, []Step{retireGroups})
	default:
		return slices.Concat([]Step{keepGroups}, steps)
	}
}
