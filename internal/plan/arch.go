package plan

import (
	"regexp"
	"slices"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/params"
)

// graviton matches the family names of EC2's ARM instance types: a g among the letters behind the generation (m7g, c6gn,
// im4gn), or the first of them, a1.
var graviton = regexp.MustCompile(`^(a1|[a-z]+[0-9]+[a-z-]*g[a-z0-9-]*)\.`)

// Arch is the CPU architectures of the workload nodes: as karpenter_arch says, else those of node_type, else those of the
// system node groups, else amd64.
func Arch(config params.Config, facts Facts) []string {
	if len(config.Workload.Arch) > 0 {
		return config.Workload.Arch
	}
	types := config.NodeTypes
	var found []string
	if len(types) == 0 {
		for _, group := range facts.NodeGroups {
			if group.Role() != RoleSystem {
				continue
			}
			if strings.Contains(group.AMIType, "ARM_64") || strings.Contains(group.AMIType, "_ARM") {
				found = append(found, "arm64")
				continue
			}
			types = append(types, group.InstanceTypes...)
		}
	}
	for _, t := range types {
		if graviton.MatchString(t) {
			found = append(found, "arm64")
		} else {
			found = append(found, "amd64")
		}
	}
	if len(found) == 0 {
		return []string{"amd64"}
	}
	slices.Sort(found)
	return slices.Compact(found)
}
