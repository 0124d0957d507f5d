package nodes

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// Aliases returns problems with aliases that lack an AMI which a pool's nodes need under the cluster's version of Kubernetes. Where
// the plan in force (nil if there is none) has the alias for the same nodes, the cluster has been upgraded since, and where it has the
// same nodes, nobody has written the release that an age names: those are warnings, so that the pool keeps what it has.
func (c Compiled) Aliases(facts plan.Facts, inForce *plan.Plan) (problems, warnings []params.Problem) {
	var refused, known findings
	for _, d := range c.drafts {
		if d.kind != "NodePool" || d.idle {
			continue
		}
		for i, term := range objects(d.class.spec()["amiSelectorTerms"]) {
			alias, _ := term["alias"].(string)
			missing, none := absentOf(alias, c.version, d, facts), c.withoutAL2(alias)
			if len(missing) == 0 && !none {
				continue
			}
			found, end := &refused, "Karpenter would launch none"
			is, aged := params.Quoted(alias), false
			if !c.config.SelectsImages(d.name) {
				is, aged = named(alias, facts)
			}
			had := containsAll(absentOf(alias, c.version, inForceDraft(inForce, d.name), facts), missing)
			switch {
			case selects(inForce, d.name, "amiSelectorTerms", term) && (none || had):
				found, end = &known, "Karpenter launches them only with images that it found under an earlier Kubernetes, and nodes that run stay"
			case aged && had && specIn(inForce, "NodePool", d.name) != nil:
				found, end = &known, "Karpenter launches none of them until there is one, and nodes that run stay"
			}
			from := d.class.blame("amiSelectorTerms", fmt.Sprint(i), "alias")
			if none {
				found.refuse(from, "is %s, and EKS has no AMI of Amazon Linux 2 for Kubernetes 1.%d and later, which the cluster runs (%s), "+
					"for nodes of NodePool %s: %s; write al2023@latest or bottlerocket@latest", is, plan.WithoutAL2, c.version, d.name, end)
				continue
			}
			family, _, _ := strings.Cut(alias, "@")
			found.refuse(from, "is %s, of which AWS has no AMI for %s under Kubernetes %s, "+
				"and NodePool %s may have such nodes: %s; write a version that has it, or %s@latest, or requirements that leave these nodes out",
				is, strings.Join(missing, ", "), c.version, d.name, end, family)
		}
	}
	refused, known = firsts(refused), firsts(known)
	for _, family := range slices.Sorted(maps.Keys(c.config.AMIAliases)) {
		alias := c.config.AMIAliases[family]
		if _, _, aged := plan.AgedAlias(alias); !aged {
			continue
		}
		switch release, seen := facts.Aged[alias]; {
		case !seen:
			known.refuse(origin{parameter: params.ParamAlias}, "names a release by its age, %s: a pass finds it, and %s@latest stands for it here",
				alias, family)
		case release == "":
			refused.refuse(origin{parameter: params.ParamAlias}, "is %s, and AWS has no release of %s for Kubernetes %s; "+
				"write %s@latest, or a release", params.Quoted(alias), family, c.version, family)
		}
	}
	return refused, known
}

// named returns an alias as it was written, and whether that names a release by its age.
func named(alias string, facts plan.Facts) (text string, aged bool) {
	for written, release := range facts.Aged {
		if release == alias {
			return params.Quoted(written) + ", now " + alias, true
		}
	}
	return params.Quoted(alias), false
}

// firsts returns the first problem of each place: one alias is for many pools.
func firsts(all findings) (first []params.Problem) {
	for _, p := range all {
		if !slices.ContainsFunc(first, func(f params.Problem) bool { return f.Parameter == p.Parameter && f.Path == p.Path }) {
			first = append(first, p)
		}
	}
	return first
}

// absentOf returns which of the AMIs that a pool's nodes need an alias lacks, for example "arm64 (nvidia)". What was not looked up is
// there.
func absentOf(alias, kubernetes string, pool *draft, facts plan.Facts) (missing []string) {
	needed := variantsOf(pool.requirements())
	for _, image := range plan.BehindAlias(alias, kubernetes) {
		kind := image.Arch + " (" + image.Variant + ")"
		if id, seen := facts.AliasImages[image.Parameter]; seen && id == "" && needed[kind] {
			missing = append(missing, kind)
		}
	}
	return missing
}

// inForceDraft returns the NodePool of a name in a plan, without requirements if there is none.
func inForceDraft(p *plan.Plan, name string) *draft {
	return &draft{kind: "NodePool", name: name, object: plan.Object{"spec": specIn(p, "NodePool", name)}}
}

// Families of instance types that have GPUs or accelerators of Neuron. Karpenter tells them by what EC2 says of each type, which
// for every family follows from its name: p, g and gr are GPUs of NVIDIA or AMD, dl are Habana's, which count as GPUs to it.
var (
	gpuCategories    = []string{"p", "g", "gr", "dl"}
	neuronCategories = []string{"inf", "trn"}
)

// variantOf returns the variant of the AMI that Karpenter takes for an instance category (Variant.Requirements in its
// pkg/providers/amifamily/types.go).
func variantOf(category string) string {
	switch {
	case slices.Contains(gpuCategories, category):
		return plan.VariantNVIDIA
	case slices.Contains(neuronCategories, category):
		return plan.VariantNeuron
	}
	return plan.VariantStandard
}

// variantsOf returns the architectures and variants of the known instance types that meet the requirements.
func variantsOf(requirements []requirement) map[string]bool {
	needed := map[string]bool{}
	if slices.ContainsFunc(requirements, func(r requirement) bool { return r.allows == nil }) {
		return needed // refused
	}
	for i, may := range remaining(requirements) {
		if variant := variantOf(columns()[keyCategory].at(i)); may && allowsDevice(requirements, variant) {
			needed[columns()[keyArch].at(i)+" ("+variant+")"] = true
		}
	}
	return needed
}

// allowsDevice reports whether requirements of GPUs and accelerators allow a variant.
func allowsDevice(requirements []requirement, variant string) bool {
	for _, device := range []struct{ variant, prefix string }{
		{plan.VariantNVIDIA, "karpenter.k8s.aws/instance-gpu-"}, {plan.VariantNeuron, "karpenter.k8s.aws/instance-accelerator-"},
	} {
		for _, r := range requirements {
			none := r.Operator == corev1.NodeSelectorOpDoesNotExist
			if strings.HasPrefix(r.Key, device.prefix) && r.Operator != corev1.NodeSelectorOpNotIn && none == (device.variant == variant) {
				return false
			}
		}
	}
	return true
}

// containsAll reports whether a list has all of the elements.
func containsAll(list, elements []string) bool {
	return !slices.ContainsFunc(elements, func(element string) bool { return !slices.Contains(list, element) })
}
