package plan

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/params"
)

// Arch returns the CPU architectures of the workload nodes: those of karpenter_arch, else of the first node_type, else
// of the system node groups, else amd64.
func Arch(config params.Config, facts Facts) []string {
	if len(config.Workload.Arch) > 0 {
		return config.Workload.Arch
	}
	return facts.architectures(config.NodeTypes, facts.OfRole(config, RoleSystem))
}

// BuildArch returns the CPU architectures of the build nodes: that of the first build_node_type, else of the first
// node_type, else of the build node groups, else of the system node groups, else amd64. karpenter_arch applies to
// workload nodes only.
func BuildArch(config params.Config, facts Facts) []string {
	types := config.BuildNodeTypes
	if len(types) == 0 {
		types = config.NodeTypes
	}
	groups := facts.OfRole(config, RoleBuild)
	if len(groups) == 0 {
		groups = facts.OfRole(config, RoleSystem)
	}
	return facts.architectures(types, groups)
}

// architectures returns the architecture of the first instance type or, if there are no types, those of the node
// groups.
func (f Facts) architectures(types []string, groups []NodeGroup) []string {
	var found []string
	types = types[:min(1, len(types))]
	if len(types) == 0 {
		for _, group := range groups {
			if strings.Contains(group.AMIType, "ARM_64") || strings.Contains(group.AMIType, "_ARM") {
				found = append(found, "arm64")
				continue
			}
			types = append(types, group.InstanceTypes...)
		}
	}
	for _, t := range types {
		found = append(found, cmp.Or(f.Architectures[t], params.ArchOf(t)))
	}
	if len(found) == 0 {
		return []string{"amd64"}
	}
	slices.Sort(found)
	return slices.Compact(found)
}
