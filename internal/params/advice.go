package params

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/sawhorse-io/sawhorse/internal/names"
)

// fewForSpot is how many instance types a spot pool should have to choose from, so that one is always to be had (AWS's
// advice on flexibility for spot).
const fewForSpot = 20

// advice are warnings about good values that people tend to regret.
func (r *Result) advice() {
	for _, name := range []string{"node_type", "build_node_type"} {
		types := r.Config.NodeTypes
		if name == "build_node_type" {
			types = r.Config.BuildNodeTypes
		}
		for _, t := range types {
			if !KnownType(t) {
				r.warning(name, "", "%s has the instance type %s, which Karpenter %s does not know; by its name it counts as %s%s", name, t, names.KarpenterVersion, ArchOf(t), r.nearFamily(t))
			}
		}
	}
	const own, quota = 4, 10 // the role's own policies (spec 5); what IAM takes for a role where nobody has asked for more
	if n := len(r.Config.NodePolicyARNs); n+own > quota {
		r.warning(nodePolicies, "", "%s has %d policies, and the nodes' role has %d more; IAM's usual quota is %d for a role; ask AWS for a higher one, or put policies together", nodePolicies, n, own, quota)
	}
	r.pooled(r.Config.Workload, "karpenter_instance_families", "karpenter_instance_sizes", "karpenter_capacity_types", "karpenter_disruption_budget_nodes", "karpenter_node_taints", "")
	build := r.Config.Build
	build.Arch = nil // detected
	if len(build.Families) == 0 {
		build.Families = r.Config.Workload.Families
	}
	if len(build.Sizes) == 0 {
		build.Sizes = r.Config.Workload.Sizes
	}
	r.pooled(build, "karpenter_build_instance_families", "karpenter_build_instance_sizes", "karpenter_build_capacity_types", "", "", "")
	for i, pool := range r.Config.Additional {
		at := fmt.Sprintf("[%d]", i)
		r.pooled(pool, additionalConfig, additionalConfig, additionalConfig, additionalConfig, additionalConfig, at)
	}
	r.overrideAdvice()
}

// pooled is the advice on one pool. The names are of the parameters that its fields come from; at is where in the JSON.
func (r *Result) pooled(pool Pool, families, sizes, capacity, budget, taint, at string) {
	path := func(field string) string {
		if at == "" {
			return ""
		}
		return Join(at, field)
	}
	given := func(parameter string) bool { return at != "" || r.Effective[parameter] != "" }
	unknown := false
	for _, family := range pool.Families {
		if instanceSizes[family] == nil && given(families) {
			unknown = true
			r.warning(families, path("instance_families"), "the instance family %s is none that Karpenter %s knows, so it may launch nothing%s", family, names.KarpenterVersion, r.nearFamily(family))
		}
	}
	for _, size := range pool.Sizes {
		if !slices.Contains(knownSizes(), size) && given(sizes) {
			unknown = true
			r.warning(sizes, path("instance_sizes"), "the instance size %s is none that Karpenter %s knows, so it may launch nothing%s", size, names.KarpenterVersion, near(size, knownSizes()))
		}
	}
	switch choices := pool.choices(); {
	case unknown:
	case choices == 0 && (given(families) || given(sizes)):
		r.warning(families, path("instance_families"), "no instance type that Karpenter %s knows has one of these families, sizes and architectures (%s), so it launches nothing", names.KarpenterVersion, strings.Join(pool.Arch, ", "))
	case choices < fewForSpot && slices.Contains(pool.CapacityTypes, "spot"):
		r.warning(capacity, path("capacity_types"), "spot has only %d instance types to choose from, and is often interrupted or not to be had; allow %d or more by further families or sizes", choices, fewForSpot)
	}
	if b := pool.DisruptionBudget; budget != "" && (b == "0" || b == "0%") {
		r.warning(budget, path("disruption_budget_nodes"), "a disruption budget of %s never lets Karpenter consolidate or replace a node of its own accord", b)
	}
	var taints []string
	for _, t := range pool.Taints {
		if t.Effect != "PreferNoSchedule" && !extendedResource(t.Key) {
			taints = append(taints, t.Key+":"+t.Effect)
		}
	}
	if len(taints) > 0 {
		r.warning(taint, path("taints"), "nothing tolerates the taint %s of its own accord: only the taint of a device that pods request, like nvidia.com/gpu, is tolerated automatically; make sure that the pods meant for these nodes have the toleration", some(taints))
	}
}

// some are the first of a list.
func some(all []string) string {
	const most = 3
	if len(all) <= most {
		return strings.Join(all, " or ")
	}
	return fmt.Sprintf("%s, or %d others", strings.Join(all[:most], ", "), len(all)-most)
}

// extendedResource tells whether a taint's key is a device's: EKS's admission plugin ExtendedResourceToleration gives pods
// that request the device the toleration.
func extendedResource(key string) bool {
	return slices.Contains([]string{"nvidia.com/gpu", "amd.com/gpu", "aws.amazon.com/neuron", "aws.amazon.com/neuroncore", "habana.ai/gaudi", "vpc.amazonaws.com/efa"}, key)
}

func (r *Result) nearFamily(name string) string {
	family, _, _ := strings.Cut(name, ".")
	return near(family, slices.Sorted(maps.Keys(instanceSizes)))
}

// knownSizes are the sizes that any family has, sorted.
var knownSizes = sync.OnceValue(func() []string {
	all := slices.Concat(slices.Collect(maps.Values(instanceSizes))...)
	slices.Sort(all)
	return slices.Compact(all)
})

// near is the end of a sentence about a name that is not in a sorted list.
func near(name string, known []string) string {
	if slices.Contains(known, name) {
		return ""
	}
	if n := Nearest(name, known); n != "" {
		return "; did you mean " + n + "?"
	}
	return ""
}

// overrideAdvice is the advice on karpenter_config.
func (r *Result) overrideAdvice() {
	class, pool := r.Config.Override.EC2NodeClass, r.Config.Override.NodePool
	metadata, _ := class["metadataOptions"].(map[string]any)
	if hops, ok := metadata["httpPutResponseHopLimit"].(int64); ok && hops > 1 {
		r.warning(overrideConfig, "ec2NodeClass.metadataOptions.httpPutResponseHopLimit", "a hop limit of %d lets every pod reach the node's credentials; 1 keeps them to the node", hops)
	}
	disruption, _ := pool["disruption"].(map[string]any)
	budgets, _ := disruption["budgets"].([]any)
	for i, b := range budgets {
		entry, _ := b.(map[string]any)
		if nodes, _ := entry["nodes"].(string); (nodes == "0" || nodes == "0%") && entry["schedule"] == nil {
			r.warning(overrideConfig, fmt.Sprintf("nodePool.disruption.budgets[%d]", i), "a disruption budget of %s without a schedule never lets Karpenter consolidate or replace a node of its own accord", nodes)
		}
	}
}
