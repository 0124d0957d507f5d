package nodes

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	ec2 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	corev1 "k8s.io/api/core/v1"
	karpenter "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// The reasons for which Karpenter replaces a node, as the condition Drifted of its NodeClaim has them: in Karpenter
// pkg/controllers/nodeclaim/disruption/drift.go, and in its AWS provider pkg/cloudprovider/drift.go. InstanceTypeNotFound, a
// type that EC2 no longer offers in the node's zone, is not among them: what a change can do to that, SubnetDrift tells.
const (
	nodePoolDrifted     = "NodePoolDrifted"
	requirementsDrifted = "RequirementsDrifted"
	nodeClassDrift      = "NodeClassDrift"
	amiDrift            = "AMIDrift"
	subnetDrift         = "SubnetDrift"
	securityGroupDrift  = "SecurityGroupDrift"
	reservationDrift    = "CapacityReservationDrift"
)

// change is what a plan changes of one pool.
type change struct {
	was, is decoded
	// moved are the reasons that subnets and security groups are, which the manifests only name by a tag.
	moved []string
}

// certainty is whether Karpenter replaces a node.
type certainty int

const (
	stays certainty = iota
	may
	replaced
)

// tell says in an effect what Karpenter makes of the change: node by node where the NodeClaims are known, else what holds for any node
// that the pool in force may have.
func (c change) tell(effect *plan.Effect, known bool, claims []karpenter.NodeClaim) {
	nodes := []*karpenter.NodeClaim{nil}
	if known {
		nodes = nil
		for i := range claims {
			nodes = append(nodes, &claims[i])
		}
	}
	count, reasons := 0, map[string]bool{}
	for _, node := range nodes {
		drifts, worst := c.drifts(node), stays
		for _, how := range drifts {
			worst = max(worst, how)
		}
		for reason, how := range drifts {
			if how == worst {
				reasons[reason] = true
			}
		}
		switch worst {
		case replaced:
			effect.Replaces = true
			count++
		case may:
			effect.MayReplace = true
		}
	}
	if known {
		effect.Replaced = &count
	}
	effect.Reasons = slices.Sorted(maps.Keys(reasons))
}

// drifts are the reasons for which Karpenter replaces the node of a NodeClaim, or may; of any node where claim is nil.
func (c change) drifts(claim *karpenter.NodeClaim) map[string]certainty {
	all := map[string]certainty{}
	note := func(reason string, how certainty) {
		if how != stays {
			all[reason] = how
		}
	}
	if !c.was.good || !c.is.good {
		note(nodePoolDrifted, may)
		note(nodeClassDrift, may)
		return all
	}
	hashed := func(was, is, hash, version, current string) certainty {
		if claim != nil && claim.Annotations[version] == current && claim.Annotations[hash] == is {
			return stays // it was launched when the pool was so before
		}
		if was != is {
			return replaced
		}
		return stays
	}
	note(nodePoolDrifted, hashed(c.was.poolHash, c.is.poolHash,
		karpenter.NodePoolHashAnnotationKey, karpenter.NodePoolHashVersionAnnotationKey, karpenter.NodePoolHashVersion))
	note(nodeClassDrift, hashed(c.was.classHash, c.is.classHash,
		ec2.AnnotationEC2NodeClassHash, ec2.AnnotationEC2NodeClassHashVersion, ec2.EC2NodeClassHashVersion))
	note(requirementsDrifted, c.requirements(claim))
	note(amiDrift, c.amis(claim))
	note(reservationDrift, c.reservations(claim))
	for _, reason := range c.moved {
		note(reason, may)
	}
	if reason := c.found(claim); reason != "" {
		note(reason, replaced)
	}
	return all
}

// found is the reason for which Karpenter has found the node of a NodeClaim to be drifted, where the change leaves that as it is. It is
// not told by the NodeClaim's hashes: what others have set in a pool, and Sawhorse leaves alone, is in them too.
func (c change) found(claim *karpenter.NodeClaim) string {
	if claim == nil || !claim.StatusConditions().Get(karpenter.ConditionTypeDrifted).IsTrue() {
		return ""
	}
	was, is := c.was.class.Spec, c.is.class.Spec
	touched := map[string]bool{
		nodePoolDrifted:     c.was.poolHash != c.is.poolHash,
		requirementsDrifted: true,
		nodeClassDrift:      c.was.classHash != c.is.classHash,
		amiDrift:            !reflect.DeepEqual(was.AMISelectorTerms, is.AMISelectorTerms),
		subnetDrift:         slices.Contains(c.moved, subnetDrift),
		securityGroupDrift:  slices.Contains(c.moved, securityGroupDrift),
		reservationDrift:    !reflect.DeepEqual(was.CapacityReservationSelectorTerms, is.CapacityReservationSelectorTerms),
	}
	if reason := claim.StatusConditions().Get(karpenter.ConditionTypeDrifted).Reason; !touched[reason] {
		return reason
	}
	return ""
}

// requirements asks Karpenter, as its areRequirementsDrifted does, whether the labels of a NodeClaim meet the pool's requirements. Without
// one, any labels that met the former requirements count.
func (c change) requirements(claim *karpenter.NodeClaim) certainty {
	is := scheduling.NewNodeSelectorRequirementsWithMinValues(c.is.pool.Spec.Template.Spec.Requirements...)
	if claim != nil {
		if scheduling.NewLabelRequirements(claim.Labels).Compatible(is) != nil {
			return replaced
		}
		return stays
	}
	was := scheduling.NewNodeSelectorRequirementsWithMinValues(c.was.pool.Spec.Template.Spec.Requirements...)
	worst := stays
	for key, wanted := range is {
		switch had, known := was[key]; {
		case known && within(had, wanted):
		case known && !had.HasIntersection(wanted) && !(optional(had) && optional(wanted)):
			return replaced
		default:
			worst = may
		}
	}
	return worst
}

// within tells whether whatever meets a requirement meets another one.
func within(inner, outer *scheduling.Requirement) bool {
	if optional(inner) && !optional(outer) {
		return false
	}
	both := outer.Intersection(inner)
	both.MinValues = inner.MinValues
	return reflect.DeepEqual(both, inner)
}

// optional tells whether a node without the label meets a requirement.
func optional(r *scheduling.Requirement) bool {
	return r.Operator() == corev1.NodeSelectorOpNotIn || r.Operator() == corev1.NodeSelectorOpDoesNotExist
}

// amis is whether other AMIs are selected. Which ones a name or an alias stands for, AWS alone knows; an AMI that is not among named ones
// is not selected.
func (c change) amis(claim *karpenter.NodeClaim) certainty {
	terms := c.is.class.Spec.AMISelectorTerms
	if reflect.DeepEqual(c.was.class.Spec.AMISelectorTerms, terms) {
		return stays
	}
	if claim == nil || claim.Status.ImageID == "" {
		return may
	}
	unnamed := slices.ContainsFunc(terms, func(t ec2.AMISelectorTerm) bool { return t.ID == "" })
	named := slices.ContainsFunc(terms, func(t ec2.AMISelectorTerm) bool { return t.ID == claim.Status.ImageID })
	switch {
	case !unnamed && !named:
		return replaced
	case named && len(terms) == 1:
		return stays
	default:
		return may // a node is to have the latest of those that suit its instance type
	}
}

// reservations is whether other capacity reservations are selected: of a node that runs in one.
func (c change) reservations(claim *karpenter.NodeClaim) certainty {
	terms := c.is.class.Spec.CapacityReservationSelectorTerms
	if reflect.DeepEqual(c.was.class.Spec.CapacityReservationSelectorTerms, terms) {
		return stays
	}
	if claim == nil {
		was := scheduling.NewNodeSelectorRequirementsWithMinValues(c.was.pool.Spec.Template.Spec.Requirements...)
		if !was.Get(karpenter.CapacityTypeLabelKey).Has(karpenter.CapacityTypeReserved) {
			return stays
		}
		return may
	}
	if claim.Labels[karpenter.CapacityTypeLabelKey] != karpenter.CapacityTypeReserved {
		return stays
	}
	id := claim.Labels[ec2.LabelCapacityReservationID]
	unnamed := slices.ContainsFunc(terms, func(t ec2.CapacityReservationSelectorTerm) bool { return t.ID == "" })
	switch named := slices.ContainsFunc(terms, func(t ec2.CapacityReservationSelectorTerm) bool { return t.ID == id }); {
	case id == "" || unnamed && !named:
		return may
	case named:
		return stays
	default:
		return replaced
	}
}

// reselected are the reasons that nodes may have to go where other subnets and security groups carry the discovery tag: a node's subnet
// must be one of the subnets, its security groups must be all of the groups. Which ones it has, AWS alone knows.
func reselected(was, is plan.Network) (reasons []string) {
	if !sameSet(was.SecurityGroups, is.SecurityGroups) {
		reasons = append(reasons, securityGroupDrift)
	}
	gone := slices.ContainsFunc(was.Subnets, func(id string) bool { return !slices.Contains(is.Subnets, id) })
	if gone || len(was.Subnets) == 0 && len(is.Subnets) > 0 { // which there were is not known then
		reasons = append(reasons, subnetDrift)
	}
	return reasons
}

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Compact(slices.Sorted(slices.Values(a))), slices.Compact(slices.Sorted(slices.Values(b))))
}

// claimsByPool are the NodeClaims whose nodes Karpenter may find drifted: those that were launched and are not on their way out.
func claimsByPool(objects []plan.Object) map[string][]karpenter.NodeClaim {
	all := map[string][]karpenter.NodeClaim{}
	for _, object := range objects {
		var claim karpenter.NodeClaim
		if json.Unmarshal(encode(object), &claim) != nil || claim.DeletionTimestamp != nil ||
			!claim.StatusConditions().Get(karpenter.ConditionTypeLaunched).IsTrue() {
			continue
		}
		pool := claim.Labels[karpenter.NodePoolLabelKey]
		all[pool] = append(all[pool], claim)
	}
	return all
}
