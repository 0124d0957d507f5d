package drain

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// survey is what is known of the nodes and the pods of the system groups.
type survey struct {
	plan  plan.Migration
	now   time.Time
	nodes map[string]*member // of the system groups, by name
	// waiting are pods that are not Ready, by the UID of their controller.
	waiting map[string][]*corev1.Pod
}

// member is a node of a system group.
type member struct {
	object   *unstructured.Unstructured
	node     *corev1.Node
	migrates bool
	// free is what its pods leave of it.
	free corev1.ResourceList
	// pods are those that would be lost with it, and bound those of them that only system nodes take.
	pods, bound []*corev1.Pod
}

func (s *survey) add(object *unstructured.Unstructured, migrates bool) error {
	node, err := k8s.As[corev1.Node](object)
	if err == nil && node.DeletionTimestamp == nil {
		s.nodes[node.Name] = &member{object: object, node: node, migrates: migrates, free: node.Status.Allocatable.DeepCopy()}
	}
	return err
}

// count adds the pods of the system groups' nodes, and all that are not Ready.
func (s *survey) count(ctx context.Context, client *k8s.Client) error {
	s.waiting = map[string][]*corev1.Pod{}
	return client.Each(ctx, k8s.Pod, "", "", func(object *unstructured.Unstructured) error {
		if !runs(object) {
			return nil
		}
		name, _, _ := unstructured.NestedString(object.Object, "spec", "nodeName")
		on := s.nodes[name]
		ready, _ := k8s.Ready(object)
		waits := !ready && !k8s.Stays(object) && object.GetDeletionTimestamp() == nil
		if on == nil && !waits {
			return nil
		}
		pod, err := k8s.As[corev1.Pod](object)
		if err != nil {
			return err
		}
		if of := controllerOf(pod); waits && of != "" {
			s.waiting[of] = append(s.waiting[of], pod)
		}
		if on != nil {
			on.take(pod, k8s.Stays(object))
		}
		return nil
	})
}

func (m *member) take(pod *corev1.Pod, stays bool) {
	k8s.Subtract(m.free, k8s.Requests(pod))
	if stays {
		return
	}
	m.pods = append(m.pods, pod)
	if onSystemNodes(pod) {
		m.bound = append(m.bound, pod)
	}
}

func onSystemNodes(pod *corev1.Pod) bool {
	return pod.Spec.NodeSelector[ownership.LabelSystemNode] == "true"
}

func controllerOf(pod *corev1.Pod) string {
	if owner := metav1.GetControllerOf(pod); owner != nil {
		return string(owner.UID)
	}
	return ""
}

// going returns the nodes that can go, in the order in which they do: the ones that are being emptied, then those that lose the
// fewest pods that keep them, that only system nodes take, or at all. stay are nodes that are being emptied and cannot go any more, because
// others were lost meanwhile.
func (s *survey) going() (all, stay []*member) {
	var begun, candidates, rest []*member
	for _, m := range s.nodes {
		switch {
		case m.migrates && markOf(m.object) != "":
			begun = append(begun, m)
		case m.migrates:
			candidates = append(candidates, m)
			fallthrough
		default:
			rest = append(rest, m)
		}
	}
	byName := func(a, b *member) int { return strings.Compare(a.node.Name, b.node.Name) }
	slices.SortFunc(begun, byName)
	slices.SortFunc(rest, byName)
	slices.SortFunc(candidates, func(a, b *member) int {
		return cmp.Or(s.obstacles(a)-s.obstacles(b), len(a.bound)-len(b.bound), len(a.pods)-len(b.pods), byName(a, b))
	})
	zones := zonesOf(slices.Concat(begun, rest))
	for _, m := range begun {
		if s.enough(rest, zones) && fits(s.needy(m), rest) {
			all = append(all, m)
		} else {
			stay = append(stay, m)
		}
	}
	if len(stay) > 0 { // what waits for them comes first
		return all, stay
	}
	for {
		i := slices.IndexFunc(candidates, func(m *member) bool { return m.inFullestZone(rest) })
		if i < 0 {
			return all, nil
		}
		m := candidates[i]
		candidates = slices.Delete(candidates, i, i+1)
		without := slices.DeleteFunc(slices.Clone(rest), func(other *member) bool { return other == m })
		if s.enough(without, zones) && fits(s.needy(m), without) {
			all, rest = append(all, m), without
		}
	}
}

// needy returns the pods that only system nodes take and that need room elsewhere if a node goes: its own, and those like ones that it has
// or had that wait for a node. The replacement of a pod that is being deleted is among these, or has its room.
func (s *survey) needy(m *member) []*corev1.Pod {
	all := slices.DeleteFunc(slices.Clone(m.bound), func(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil })
	for _, uid := range m.controllers() {
		for _, pod := range s.waiting[uid] {
			if pod.Spec.NodeName == "" && onSystemNodes(pod) {
				all = append(all, pod)
			}
		}
	}
	return all
}

// inFullestZone reports whether no zone has more of the remaining nodes of the node's group than its own. Auto Scaling brings the zones
// of a group to the same number of nodes (AZRebalance): it would end nodes of a fuller zone, without emptying them.
func (m *member) inFullestZone(remaining []*member) bool {
	count := map[string]int{}
	for _, other := range remaining {
		if other.node.Labels[ownership.LabelNodeGroup] == m.node.Labels[ownership.LabelNodeGroup] {
			count[other.zone()]++
		}
	}
	return count[m.zone()] == slices.Max(slices.Collect(maps.Values(count)))
}

func (m *member) zone() string { return m.node.Labels[corev1.LabelTopologyZone] }

// obstacles returns how many pods must not be evicted from a node.
func (s *survey) obstacles(m *member) (n int) {
	for _, pod := range m.pods {
		if s.obstacle(pod) != "" {
			n++
		}
	}
	return n
}

// enough reports whether as many nodes remain as the controller has pods, in as many zones as before.
func (s *survey) enough(remaining []*member, zones int) bool {
	var accepting []*member
	for _, m := range remaining {
		if k8s.AcceptsPods(m.node) {
			accepting = append(accepting, m)
		}
	}
	return len(accepting) >= s.plan.Keep && zonesOf(accepting) >= min(zones, s.plan.Keep)
}

func zonesOf(nodes []*member) int {
	zones := map[string]bool{}
	for _, m := range nodes {
		zones[m.zone()] = true
	}
	return len(zones)
}

// fits reports whether pods fit on nodes, one after the other, and takes their requests from what is free there if they do.
func fits(pods []*corev1.Pod, on []*member) bool {
	free := make([]corev1.ResourceList, len(on))
	for i, m := range on {
		free[i] = m.free.DeepCopy()
	}
	for _, pod := range pods {
		demand := k8s.DemandOf(pod)
		i := 0
		for i < len(on) && !(k8s.AcceptsPods(on[i].node) && demand.Fits(free[i]) && demand.AdmittedBy(on[i].node)) {
			i++
		}
		if i == len(on) {
			return false
		}
		k8s.Subtract(free[i], demand.Requests)
	}
	for i, m := range on {
		m.free = free[i]
	}
	return true
}
