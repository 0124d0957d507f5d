package nodes

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	ec2 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	karpenter "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"github.com/sawhorse-io/sawhorse/internal/canonical"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// The reasons in the condition Drifted of a NodeClaim, for which Karpenter replaces a node: in Karpenter
// pkg/controllers/nodeclaim/disruption/drift.go, and in its AWS provider pkg/cloudprovider/drift.go.
// InstanceTypeNotFound, an instance type that EC2 no longer offers in the node's zone, is left out: a change can cause
// it only by other subnets, which SubnetDrift covers.
const (
	nodePoolDrifted     = "NodePoolDrifted"
	requirementsDrifted = "RequirementsDrifted"
	nodeClassDrift      = "NodeClassDrift"
	amiDrift            = "AMIDrift"
	subnetDrift         = "SubnetDrift"
	securityGroupDrift  = "SecurityGroupDrift"
	reservationDrift    = "CapacityReservationDrift"
	// rotated is a reason of ours: the node is older than karpenter_rotate_after. The condition has NodePoolDrifted then.
	rotated = "Rotated"
)

// change describes what a plan changes in one pool.
type change struct {
	was, is decoded
	// moved are the drift reasons for changed subnets and security groups, which the manifests select by a tag only, and
	// for another version of Karpenter.
	moved []string
	// age is that at which nodes are replaced now and were not before, 0 if there is none. now is the time it counts from.
	age time.Duration
	now time.Time
}

// certainty says whether Karpenter replaces a node.
type certainty int

const (
	stays certainty = iota
	may
	replaced
)

// describe sets in an effect what Karpenter does because of the change: node by node if the NodeClaims are known,
// otherwise what holds for every possible node of the pool in force.
func (c change) describe(effect *plan.Effect, known bool, claims []karpenter.NodeClaim) {
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

// drifts returns the reasons for which Karpenter replaces, or may replace, the node of a NodeClaim. If claim is nil,
// they hold for any node.
func (c change) drifts(claim *karpenter.NodeClaim) map[string]certainty {
	all := map[string]certainty{}
	note := func(reason string, how certainty) {
		if how != stays {
			all[reason] = max(all[reason], how)
		}
	}
	for _, reason := range c.moved {
		note(reason, may)
	}
	switch {
	case c.age == 0:
	case claim == nil:
		note(rotated, may)
	case claim.Labels[ownership.Rotating] == "" && !c.now.Before(claim.CreationTimestamp.Add(c.age)):
		note(rotated, replaced)
	}
	if !c.was.good || !c.is.good {
		note(nodePoolDrifted, may)
		note(nodeClassDrift, may)
		return all
	}
	hashed := func(was, is, hash, version, current string) certainty {
		if claim != nil && claim.Annotations[version] == current && claim.Annotations[hash] == is {
			return stays // the node was launched while the pool had this hash before
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
	if reason := c.found(claim); reason != "" {
		note(reason, replaced)
	}
	return all
}

// found returns the reason for which Karpenter has already found a node to be drifted, if the change does not affect
// that reason. The NodeClaim's hashes do not show this: they include fields that others set in a pool and that Sawhorse
// leaves alone.
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
	reason := claim.StatusConditions().Get(karpenter.ConditionTypeDrifted).Reason
	if _, rotates := claim.Labels[ownership.Rotating]; touched[reason] || rotates && reason == nodePoolDrifted {
		return "" // because of its age
	}
	return reason
}

// requirements checks whether a NodeClaim's labels meet the pool's requirements, like Karpenter's
// areRequirementsDrifted. Without a NodeClaim, it considers all labels that met the former requirements.
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

// within reports whether everything that meets inner also meets outer.
func within(inner, outer *scheduling.Requirement) bool {
	if optional(inner) && !optional(outer) {
		return false
	}
	both := outer.Intersection(inner)
	both.MinValues = inner.MinValues
	return reflect.DeepEqual(both, inner)
}

// optional reports whether a node without the label meets the requirement.
func optional(r *scheduling.Requirement) bool {
	return r.Operator() == corev1.NodeSelectorOpNotIn || r.Operator() == corev1.NodeSelectorOpDoesNotExist
}

// amis reports whether other AMIs are selected. Only AWS knows which AMIs a name or an alias stands for. If all terms
// are IDs, an AMI that is not among them is not selected.
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
		return may // Karpenter uses the latest AMI that suits the instance type
	}
}

// reservations reports whether other capacity reservations are selected, for nodes that run in one.
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

// reselected returns the drift reasons for changed subnets and security groups. A node's subnet must be one of the
// tagged subnets, and its security groups must be all of the tagged groups. Which ones a node has is known to AWS only.
func reselected(was, is plan.Network) (reasons []string) {
	if !sets.New(was.SecurityGroups...).Equal(sets.New(is.SecurityGroups...)) {
		reasons = append(reasons, securityGroupDrift)
	}
	if !sets.New(is.Subnets...).HasAll(was.Subnets...) || len(was.Subnets) == 0 && len(is.Subnets) > 0 { // the former ones are unknown then
		reasons = append(reasons, subnetDrift)
	}
	return reasons
}

// claimsByPool returns the NodeClaims that Karpenter checks for drift: those that are launched and not being deleted.
func claimsByPool(objects []plan.Object) map[string][]karpenter.NodeClaim {
	all := map[string][]karpenter.NodeClaim{}
	for _, object := range objects {
		var claim karpenter.NodeClaim
		if json.Unmarshal(canonical.JSON(object), &claim) != nil || claim.DeletionTimestamp != nil ||
			!claim.StatusConditions().Get(karpenter.ConditionTypeLaunched).IsTrue() {
			continue
		}
		if _, hash, rotates := strings.Cut(claim.Annotations[ownership.AnnotationHash], "/"); rotates {
			claim.Annotations[karpenter.NodePoolHashAnnotationKey] = hash
		}
		pool := claim.Labels[karpenter.NodePoolLabelKey]
		all[pool] = append(all[pool], claim)
	}
	return all
}
