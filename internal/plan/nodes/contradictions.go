package nodes

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	karpenter "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
)

// knownValues are the only values that nodes of a rack have of a label. Karpenter drops unknown capacity types from a
// list and logs it, and launches nothing for unknown architectures and operating systems.
var knownValues = map[string][]string{
	keyCapacity: {karpenter.CapacityTypeOnDemand, karpenter.CapacityTypeReserved, karpenter.CapacityTypeSpot},
	keyArch:     {karpenter.ArchitectureAmd64, karpenter.ArchitectureArm64},
	keyOS:       {"linux"},
	keyTenancy:  {"dedicated", "default"},
}

// values refuses values of requirements and labels that no node of a rack can have.
func (d *draft) values() (found findings) {
	if d.kind != "NodePool" {
		return nil
	}
	for _, r := range d.demands() {
		if len(r.Values) > 0 && (r.Operator == "Exists" || r.Operator == "DoesNotExist") {
			found.refuse(r.from, "has values with the operator %s, which Karpenter drops in silence; write In or NotIn, "+
				"or leave the values out", r.Operator)
		}
		if r.allows == nil || knownValues[r.allows.Key] == nil || r.Operator != "In" && r.Operator != "NotIn" {
			continue
		}
		known := knownValues[r.allows.Key]
		for i, value := range r.Values {
			if slices.Contains(known, value) {
				continue
			}
			from := r.from
			if !r.label && from.config {
				from.path += fmt.Sprintf(".values[%d]", i)
			}
			found.refuse(from, "is %s, which is no value of %s; allowed is %s; %s",
				params.Quoted(value), r.Key, strings.Join(known, ", "), params.DidYouMean(value, known, "write "+known[0]))
		}
	}
	return found
}

// demands returns the requirements, and the labels of the pool's nodes, each of which is a requirement too to Karpenter
// (NewNodeClaimTemplate in its pkg/controllers/provisioning/scheduling). The draft must be finished, and callers must not
// change the result.
func (d *draft) demands() []requirement {
	if d.demanded != nil {
		return d.demanded
	}
	d.demanded = d.readRequirements()
	labels := inner(d.spec(), "template", "metadata", "labels")
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if value, is := labels[key].(string); is {
			from := d.blame("template", "metadata", "labels", key)
			demand := newRequirement(oneOf(key, value), from)
			demand.label = true
			d.demanded = append(d.demanded, demand)
		}
	}
	return d.demanded
}

// String describes the requirement.
func (r requirement) String() string {
	if len(r.Values) == 0 {
		return string(r.Operator)
	}
	return string(r.Operator) + " " + some(r.Values)
}

// contradictions refuses requirements and labels that no node can meet together. Karpenter intersects all that are
// about one key: it launches nothing, or, if the key is the user's own, launches nodes without the label, or replaces
// each node again and again.
func (d *draft) contradictions() (found findings) {
	if d.kind != "NodePool" {
		return nil
	}
	met, first := map[string]*scheduling.Requirement{}, map[string]requirement{}
	for _, r := range d.demands() {
		demand := r.allows
		// Requirements of these keys are refused where they are written.
		if demand == nil || r.Key == ownership.LabelNodePool || r.Key == ownership.LabelBuild && d.name == ownership.BuildPool {
			continue
		}
		key := demand.Key
		before := met[key]
		if before == nil {
			met[key], first[key] = demand, r
			continue
		}
		both := before.Intersection(demand)
		if both.Operator() == corev1.NodeSelectorOpDoesNotExist && !(optional(before) && optional(demand)) {
			found.refuse(r.from, "contradicts %s: nodes must meet both, and %s cannot be %s and %s at the same time; %s",
				first[key].from.name(), r.Key, first[key], r, d.agree(r, first[key]))
			continue
		}
		met[key] = both
		if !optional(demand) {
			first[key] = r
		}
	}
	return found
}

// agree returns what to do about a requirement that contradicts another.
func (d *draft) agree(r, other requirement) string {
	switch {
	case !r.label || !karpenter.WellKnownLabels.Has(r.allows.Key):
		return "make one of the two"
	case d.name == ownership.WorkloadPool && other.from.parameter == "node_type":
		return "leave the label out, which Karpenter sets by itself, and write karpenter_arch"
	default:
		return "leave the label out, which Karpenter sets by itself, and write what you want in " + other.from.name()
	}
}

// name returns the path in the parameter's JSON, or the parameter.
func (o origin) name() string {
	if o.path == "" {
		return o.parameter
	}
	return o.path
}
