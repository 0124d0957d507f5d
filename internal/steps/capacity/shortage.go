package capacity

import (
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
	// now is what the pods lack on the other nodes, left what they lack with the groups at their maximum too.
	now, left lack
	// groups are the system groups, which can grow. builds are the build groups, of which only nodes that are starting
	// count.
	groups, builds []*group
}

// refuse returns the *outcome.Rejected of a removal whose pods do not fit even with the groups at their maximum.
func (s *shortage) refuse() error {
	return outcome.Reject("karpenter_enabled",
		"karpenter_enabled is false, but %s. %s; or put {\"rack\": %q, \"force\": true} "+
			"as Rack Reconcile Requested on the bus to drain Karpenter's nodes all the same. Until then Karpenter goes on.",
		s.figures(), s.remedy(), s.rack)
}

// figures says what the pods request, what is free, what the groups could add, and what is missing then.
func (s *shortage) figures() string {
	said := fmt.Sprintf("by an estimate the %d pods on Karpenter's nodes", len(s.displaced))
	if len(s.more) > 0 {
		said += fmt.Sprintf(" and %d of Cluster Autoscaler", len(s.more))
	}
	said += fmt.Sprintf(" request %s, and the other Ready nodes have %s free",
		amounts(requested(slices.Concat(s.displaced, s.more))), amounts(s.free))
	for _, g := range s.groups {
		said += fmt.Sprintf("; node group %s has %d of at most %d nodes", g.name, g.size.Desired, g.size.Max)
		if g.known && g.size.Max > g.size.Desired {
			said += fmt.Sprintf(" and could add %d with %s each", g.size.Max-g.size.Desired, amounts(g.further.free))
		}
	}
	if pods := s.left.misfits; len(pods) > 0 {
		said += fmt.Sprintf("; %d pod(s) have no place then: %s", len(pods), some(pods))
	}
	if short := s.left.amounts; len(short) > 0 {
		said += fmt.Sprintf("; room for %s is missing then (a node counts for as many pods as it could hold of the smallest)", amounts(short))
	}
	return said
}

// remedy says what to do about pods that do not fit with all groups at their maximum.
func (s *shortage) remedy() string {
	var all []string
	for _, g := range s.groups {
		if more := g.further.nodesFor(s.left); more > 0 {
			most := g.size.Max + more
			all = append(all,
				fmt.Sprintf("raise the maximum of node group %s to %d with `aws eks update-nodegroup-config --cluster-name %s "+
					"--nodegroup-name %s --scaling-config maxSize=%d`", g.name, most, s.cluster, g.name, most))
			break
		}
	}
	for _, g := range s.groups {
		if !g.known {
			all = append(all, fmt.Sprintf("scale node group %s to 1 node: it has none, and how much one holds is unknown", g.name))
		}
	}
	var kept, large []displacedPod
	for _, m := range s.left.misfits {
		switch {
		case slices.ContainsFunc(s.groups, func(g *group) bool { return g.further.takes(m) }):
		case slices.ContainsFunc(s.groups, func(g *group) bool { return g.further.admits(m) }):
			large = append(large, m)
		default:
			kept = append(kept, m)
		}
	}
	if len(kept) > 0 {
		all = append(all,
			"delete, or change nodeSelector, affinity or tolerations of, the pods that these keep off all other nodes: "+some(kept))
	}
	if len(large) > 0 {
		all = append(all, "add a node group with larger nodes for the pods that request more than a node of these groups has: "+some(large))
	}
	if len(all) == 0 {
		all = append(all, "add a node group")
	}
	said := strings.Join(all, "; ")
	return strings.ToUpper(said[:1]) + said[1:]
}

// some names the first few pods with their requests.
func some(pods []displacedPod) string {
	const most = 5
	var all []string
	for _, m := range pods[:min(len(pods), most)] {
		requests := m.requests.DeepCopy()
		delete(requests, corev1.ResourcePods)
		all = append(all, m.name+" ("+amounts(requests)+")")
	}
	if len(pods) > most {
		all = append(all, "…")
	}
	return strings.Join(all, ", ")
}

// amounts prints resources as "cpu 1.5, memory 2 GiB, nvidia.com/gpu 1". The number of pods comes last; ephemeral
// storage is left out unless there is nothing else, zero values always.
func amounts(list corev1.ResourceList) string {
	const gib = 1 << 30
	of := func(name corev1.ResourceName) float64 { q := list[name]; return q.AsApproximateFloat64() }
	var all []string
	if _, ok := list[corev1.ResourceCPU]; ok {
		all = append(all, "cpu "+round(of(corev1.ResourceCPU)))
	}
	if _, ok := list[corev1.ResourceMemory]; ok {
		all = append(all, "memory "+round(of(corev1.ResourceMemory)/gib)+" GiB")
	}
	for _, name := range slices.Sorted(maps.Keys(list)) {
		switch name {
		case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods, corev1.ResourceEphemeralStorage:
		default:
			if of(name) != 0 && strings.Contains(string(name), "/") {
				all = append(all, string(name)+" "+round(of(name)))
			}
		}
	}
	if storage := of(corev1.ResourceEphemeralStorage); len(all) == 0 && storage > 0 {
		all = append(all, "ephemeral storage "+round(storage/gib)+" GiB")
	}
	if pods, ok := list[corev1.ResourcePods]; ok {
		all = append(all, fmt.Sprintf("%d pod(s)", pods.Value()))
	}
	return strings.Join(all, ", ")
}

func round(x float64) string { return strconv.FormatFloat(math.Round(x*100)/100, 'f', -1, 64) }
