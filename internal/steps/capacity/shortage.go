package capacity

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
)

// shortage describes the missing capacity. All of it is an estimate.
type shortage struct {
	rack, cluster string
	// displaced are the pods of Karpenter's nodes, more those of Cluster Autoscaler that come back.
	displaced, more []displacedPod
	// free is what the other nodes have.
	free corev1.ResourceList
	// now is what the pods lack on the other nodes, missing what they lack with the groups at their maximum too.
	now, missing lack
	// groups are the system groups, which can grow. others are the build groups, and groups of other roles that come back: of these
	// only nodes that are starting count.
	groups, others []*group
}

// refuse returns the *outcome.Rejected of a removal whose pods do not fit even with the groups at their maximum.
func (s *shortage) refuse() error {
	return outcome.Reject("karpenter_enabled",
		"karpenter_enabled is false, but %s. %s; or put {\"rack\": %q, \"force\": [\"room\"]} "+
			"as Rack Reconcile Requested on the bus to drain Karpenter's nodes all the same. Until then Karpenter goes on, "+
			"and each audit of the schedule tries again.",
		s.figures(), s.remedy(), s.rack)
}

// figures says what the pods request, what is free, what the groups could add, and what is missing then.
func (s *shortage) figures() string {
	pods := slices.Concat(s.displaced, s.more)
	printed := func(list corev1.ResourceList) string { return amounts(list, requested(pods)) }
	text := fmt.Sprintf("by an estimate the %d pods on Karpenter's nodes", len(s.displaced))
	if len(s.more) > 0 {
		text += fmt.Sprintf(" and %d of Cluster Autoscaler", len(s.more))
	}
	text += fmt.Sprintf(" request %s, and the other Ready nodes have %s free", printed(requested(pods)),
		cmp.Or(printed(s.free), "nothing"))
	for _, g := range s.groups {
		has := "has"
		if g.back {
			has = "comes back with"
		}
		text += fmt.Sprintf("; node group %s %s %d of at most %d nodes", g.name, has, g.size.Desired, g.size.Max)
		if g.size.Max > g.size.Desired && len(g.further.free) > 0 {
			text += fmt.Sprintf(" and could add %d with %s each", g.size.Max-g.size.Desired, printed(g.further.free))
		}
	}
	if misfits := s.missing.misfits; len(misfits) > 0 {
		text += fmt.Sprintf("; %d pod(s) have no place then: %s", len(misfits), some(misfits))
	}
	if short := s.missing.amounts; len(short) > 0 {
		text += "; room for " + printed(short) + " is missing then (a node counts for as many pods as it could hold of the smallest)"
	}
	return text
}

// remedy says what to do about what is missing with all groups at their maximum.
func (s *shortage) remedy() string {
	var all []string
	for _, g := range s.groups {
		if more := g.further.nodesFor(s.missing); more > 0 {
			most := g.size.Max + more
			all = append(all,
				fmt.Sprintf("raise the maximum of node group %s to %d with `aws eks update-nodegroup-config --cluster-name %s "+
					"--nodegroup-name %s --scaling-config maxSize=%d`", g.name, most, s.cluster, g.name, most))
			break
		}
	}
	for _, g := range s.groups {
		if len(g.further.free) == 0 {
			all = append(all, fmt.Sprintf("scale node group %s to 1 node: it has none, and how much one holds is unknown", g.name))
		}
	}
	var others []displacedPod
	for _, m := range s.missing.misfits {
		if !slices.ContainsFunc(s.groups, func(g *group) bool { return g.further.takes(m) }) {
			others = append(others, m)
		}
	}
	if len(others) > 0 || len(all) == 0 {
		all = append(all, "add a node group with the labels, the taints and the size that the pods need, or delete or change the pods: "+
			"their nodeSelector, affinity, tolerations and requests keep them off the nodes of these groups "+some(others))
	}
	text := strings.Join(all, "; ")
	return strings.ToUpper(text[:1]) + text[1:]
}

// some names the first few pods with their requests.
func some(pods []displacedPod) string {
	const most = 5
	var all []string
	for _, m := range pods[:min(len(pods), most)] {
		requests := m.Requests.DeepCopy()
		delete(requests, corev1.ResourcePods)
		all = append(all, m.name+" ("+amounts(requests, requests)+")")
	}
	if len(pods) > most {
		all = append(all, "…")
	}
	return strings.Join(all, ", ")
}

// amounts prints those resources of a list that are wanted, as "cpu 1.5, memory 2 GiB, pods 3". Zero values are left out.
func amounts(list, wanted corev1.ResourceList) string {
	const gib = 1 << 30
	var all []string
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		quantity := list[name]
		switch amount := quantity.AsApproximateFloat64(); {
		case amount == 0:
		case name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage:
			all = append(all, fmt.Sprintf("%s %s GiB", name, round(amount/gib)))
		default:
			all = append(all, fmt.Sprintf("%s %s", name, round(amount)))
		}
	}
	return strings.Join(all, ", ")
}

func round(x float64) string { return strconv.FormatFloat(math.Round(x*100)/100, 'f', -1, 64) }
