package plan

import (
	"slices"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/params"
)

// migration plans which system groups are emptied. Other groups keep their autoscaler, which would bring the nodes back, or are
// emptied anyway. certain means that the roles of groups are known.
func (b *builder) migration(certain bool) {
	m := Migration{Keep: 1}
	if b.config.HighAvailability {
		m.Keep = 2
	}
	for _, g := range b.facts.Present() {
		if !slices.Contains(b.config.MigrateNodeGroups, g.Name) && !slices.Contains(b.config.MigrateNodeGroups, g.replaces(b.config)) {
			continue
		}
		switch role := RoleOf(b.config, g); {
		case role == RoleSystem:
			m.Groups = append(m.Groups, b.remaining(g.Name))
		case !certain: // its role may be another
		case role == RoleAdditional:
			b.problemUnlessDisabling(params.ParamMigrate, "%s has the node group %q, which is an additional group: Cluster Autoscaler goes on "+
				"scaling it, and would bring its nodes back; take it out, or write it in system_node_groups, if its pods are to run on "+
				"Karpenter's nodes", params.ParamMigrate, g.Name)
		case !b.config.BuildNodes:
			b.problemUnlessDisabling(params.ParamMigrate, "%s has the node group %q, which is a build group: without a pool for builds, Cluster "+
				"Autoscaler goes on scaling it, and would bring its nodes back; take it out, or write build_node_enabled=true, and it goes to "+
				"zero when its builds have ended", params.ParamMigrate, g.Name)
		default:
			b.warn(params.ParamMigrate, "node group %s is a build group: with build_node_enabled=true it goes to zero when its builds have "+
				"ended, and %s does nothing more; take it out", g.Name, params.ParamMigrate)
		}
	}
	slices.Sort(m.Groups)
	m.Groups = slices.Compact(m.Groups)
	if !b.config.Enabled || len(m.Groups) == 0 {
		return
	}
	m.Others = slices.DeleteFunc(slices.Clone(b.plan.Nodegroups.System), func(name string) bool { return slices.Contains(m.Groups, name) })
	b.plan.Nodegroups.Migration = m
}

// remaining returns the group that takes a group's place: its copy, if it is being replaced.
func (b *builder) remaining(group string) string {
	for _, r := range b.plan.Nodegroups.Replaced {
		if r.Group == group {
			return r.Copy
		}
	}
	return group
}

// Emptied returns what a plan does to the node groups that the plan in force, which may be nil, does not empty.
func Emptied(before *Plan, after Plan, facts Facts) (effects []Effect) {
	for _, g := range facts.Present() {
		if !slices.Contains(after.Nodegroups.Migration.Groups, g.Name) ||
			before != nil && slices.Contains(before.Nodegroups.Migration.Groups, g.Name) {
			continue
		}
		effect := Effect{Pool: g.Name, Change: events.GroupEmptied, Nodes: &g.Scaling.Desired}
		if pods, counted := facts.GroupPods[g.Name]; counted {
			effect.Pods = &pods
		}
		effects = append(effects, effect)
	}
	return effects
}
