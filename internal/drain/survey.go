package drain

import (
	"cmp"
	"context"
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
	if pod.Spec.NodeSelector[ownership.LabelSystemNode] == "true" {
		m.bound = append(m.bound, pod)
	}
}

func controllerOf(pod *corev1.Pod) string {
	if owner := metav1.GetControllerOf(pod); owner != nil {
		return string(owner.UID)
	}
	return ""
}

// going returns the nodes that can go, in the order in which they do: the ones that are being emptied, then those that lose the
// fewest pods that keep them, that only system nodes take, or at all.
func (s *survey) going() (all []*member) {
	var rest, candidates []*member
	for _, m := range s.nodes {
		switch {
		case m.migrates && markOf(m.object) != "":
			all = append(all, m)
		case m.migrates:
			candidates = append(candidates, m)
			fallthrough
		default:
			rest = append(rest, m)
		}
	}
	byName := func(a, b *member) int { return strings.Compare(a.node.Name, b.node.Name) }
	slices.SortFunc(all, byName)
	slices.SortFunc(rest, byName)
	slices.SortFunc(candidates, func(a, b *member) int {
		return cmp.Or(s.obstacles(a)-s.obstacles(b), len(a.bound)-len(b.bound), len(a.pods)-len(b.pods), byName(a, b))
	})
	zones := zonesOf(slices.Concat(all, rest))
	for _, m := range candidates {
		without := slices.DeleteFunc(slices.Clone(rest), func(other *member) bool { return other == m })
		if s.enough(without, zones) && fits(m.bound, without) {
			all, rest = append(all, m), without
		}
	}
	return all
}

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
		zones[m.node.Labels[corev1.LabelTopologyZone]] = true
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
