package params

import (
	"slices"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// advice adds warnings about valid values that often cause trouble. Package plan/nodes adds the warnings about pools,
// because only it has the finished objects.
func (r *Result) advice() {
	r.typesAdvice("node_type", "workload", r.Config.NodeTypes)
	r.typesAdvice("build_node_type", "build", r.Config.BuildNodeTypes)
	r.windowAdvice()
	// own is the number of policies that Sawhorse attaches to the node role, quota IAM's default quota of managed
	// policies for a role.
	const own, quota = 4, 10
	if n := len(r.Config.NodePolicyARNs); n+own > quota {
		r.warning(nodePolicies, "", "%s has %d policies, and the nodes' role has %d more; IAM's usual quota is %d for a role; "+
			"ask AWS for a higher one, or put policies together", nodePolicies, n, own, quota)
	}
}

// typesAdvice adds warnings about instance types that the architecture of nodes is detected from.
func (r *Result) typesAdvice(name, pool string, types []string) {
	for _, t := range types {
		family, _, _ := strings.Cut(t, ".")
		if !KnownType(t) {
			r.warning(name, "", "%s has the instance type %s, which Karpenter %s does not know; by its name it counts as %s; %s",
				name, t, ownership.KarpenterVersion, ArchOf(t), DidYouMean(t, typesLike(family), "if it is only new, set karpenter_arch"))
		}
	}
	other := slices.IndexFunc(types, func(t string) bool { return ArchOf(t) != ArchOf(types[0]) })
	if other < 0 {
		return
	}
	leading, ignored := types[0], types[other]
	r.warning(name, "",
		"%s has instance types of both architectures; the first of them, %s, makes the %s nodes %s, and %s counts for nothing; "+
			"write karpenter_arch=amd64,arm64 for workload nodes of both", name, leading, pool, ArchOf(leading), ignored)
}

// typesLike returns the known instance types of a family or, if the family is unknown, of the family nearest to it.
func typesLike(family string) []string {
	if SizesOf(family) == nil {
		family = Nearest(family, Families())
	}
	var all []string
	for _, size := range SizesOf(family) {
		all = append(all, family+"."+size)
	}
	return all
}
