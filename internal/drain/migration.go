package drain

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// View is what there is to do for a migration. It is made from the cluster alone: the node that is being emptied is marked by
// ownership.AnnotationMigrating, with the controllers (UIDs) of the pods that it had. So whoever looks next goes on.
type View struct {
	// Nodes is how many nodes are to be emptied, with the present one, and Groups how many groups have such nodes.
	Groups, Nodes int
	// Node is the node that is being emptied, or the next one; nil if there is none. Mark is its annotation's value.
	Node *unstructured.Unstructured
	Mark string
	// Evict are those of its pods that may be evicted now.
	Evict []unstructured.Unstructured
	// Empty means that it has no pods any more, and that those that it had run elsewhere.
	Empty bool
	// Held says which pod holds the node, and why; "" if none does.
	Held string
	// ToRelease are marked nodes of groups that are not to be emptied any more.
	ToRelease []unstructured.Unstructured
}

// Due reports whether something can be done now.
func (v View) Due() bool { return v.Node != nil && (v.Empty || len(v.Evict) > 0 || !begun(v.Node)) }

// begun reports whether a node takes no new pods any more because it is being emptied. Before, it may have more pods than were
// seen.
func begun(node *unstructured.Unstructured) bool { return markOf(node) != "" && Cordoned(node) }

// Group returns the node group of the node.
func (v View) Group() string { return v.Node.GetLabels()[ownership.LabelNodeGroup] }

const (
	emptying = "emptying"
	// Ended is the mark of a node whose instance ends. Nothing is to be done with it any more.
	Ended = "ended"
)

func markOf(node *unstructured.Unstructured) string {
	return node.GetAnnotations()[ownership.AnnotationMigrating]
}

// ReadView reads what there is to do for a migration.
func ReadView(ctx context.Context, client *k8s.Client, m plan.Migration) (View, error) {
	var v View
	nodes, err := Nodes(ctx, client, "")
	if err != nil {
		return v, err
	}
	s := &survey{plan: m, nodes: map[string]*member{}}
	for i := range nodes {
		group := nodes[i].GetLabels()[ownership.LabelNodeGroup]
		migrates := slices.Contains(m.Groups, group)
		if mark := markOf(&nodes[i]); mark == Ended {
			continue
		} else if mark != "" && !migrates {
			v.ToRelease = append(v.ToRelease, nodes[i])
		}
		if migrates || slices.Contains(m.Others, group) {
			if err := s.add(&nodes[i], migrates); err != nil {
				return v, err
			}
		}
	}
	if len(m.Groups) == 0 {
		return v, nil
	}
	if err := s.count(ctx, client); err != nil {
		return v, err
	}
	return v, s.decide(ctx, client, &v)
}

// survey is what a look finds out.
type survey struct {
	plan  plan.Migration
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
	node, err := k8s.AsNode(object)
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
		waits := !ready && !stays(object) && object.GetDeletionTimestamp() == nil
		if on == nil && !waits {
			return nil
		}
		pod, err := k8s.AsPod(object)
		if err != nil {
			return err
		}
		if of := controllerOf(pod); waits && of != "" {
			s.waiting[of] = append(s.waiting[of], pod)
		}
		if on != nil {
			on.take(pod, stays(object))
		}
		return nil
	})
}

func (m *member) take(pod *corev1.Pod, stays bool) {
	subtract(m.free, k8s.Requests(pod))
	if stays {
		return
	}
	m.pods = append(m.pods, pod)
	if pod.Spec.NodeSelector[ownership.LabelSystemNode] == "true" {
		m.bound = append(m.bound, pod)
	}
}

func subtract(from, some corev1.ResourceList) {
	for name, quantity := range some {
		rest := from[name]
		rest.Sub(quantity)
		from[name] = rest
	}
}

func controllerOf(pod *corev1.Pod) string {
	if owner := metav1.GetControllerOf(pod); owner != nil {
		return string(owner.UID)
	}
	return ""
}

// decide chooses the node, and says what can be done with it.
func (s *survey) decide(ctx context.Context, client *k8s.Client, v *View) error {
	going := s.going()
	groups := map[string]bool{}
	for _, m := range going {
		groups[m.node.Labels[ownership.LabelNodeGroup]] = true
	}
	if v.Nodes, v.Groups = len(going), len(groups); len(going) == 0 {
		return nil
	}
	m := going[0]
	v.Node, v.Mark = m.object, m.mark()
	if len(m.pods) > 0 {
		return s.evictable(ctx, client, m, v)
	}
	for _, uid := range strings.Fields(v.Mark)[1:] {
		if pods := s.waiting[uid]; len(pods) > 0 {
			v.Held = waits(pods[0], m.node.Name)
			return nil
		}
	}
	v.Empty = begun(m.object)
	return nil
}

// mark returns the mark of the node while it is being emptied: the controllers of all pods that it has, and had.
func (m *member) mark() string {
	had := strings.Fields(markOf(m.object))
	uids := map[string]bool{}
	for _, uid := range had[min(1, len(had)):] {
		uids[uid] = true
	}
	for _, pod := range m.pods {
		if uid := controllerOf(pod); uid != "" {
			uids[uid] = true
		}
	}
	return strings.Join(append([]string{emptying}, slices.Sorted(maps.Keys(uids))...), " ")
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
		return cmp.Or(a.obstacles()-b.obstacles(), len(a.bound)-len(b.bound), len(a.pods)-len(b.pods), byName(a, b))
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

// obstacles returns how many pods must not be evicted from the node.
func (m *member) obstacles() (n int) {
	for _, pod := range m.pods {
		if obstacle(pod) != "" {
			n++
		}
	}
	return n
}

// enough reports whether as many nodes remain as the controller has pods, in as many zones as before.
func (s *survey) enough(remaining []*member, zones int) bool {
	var accepting []*member
	for _, m := range remaining {
		if m.acceptsPods() {
			accepting = append(accepting, m)
		}
	}
	return len(accepting) >= s.plan.Keep && zonesOf(accepting) >= min(zones, s.plan.Keep)
}

func (m *member) acceptsPods() bool {
	ready, _ := k8s.Ready(m.object)
	return ready && !m.node.Spec.Unschedulable
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
		for i < len(on) && !(on[i].acceptsPods() && demand.Fits(free[i]) && demand.AdmittedBy(on[i].node)) {
			i++
		}
		if i == len(on) {
			return false
		}
		subtract(free[i], demand.Requests)
	}
	for i, m := range on {
		m.free = free[i]
	}
	return true
}

// obstacle returns why a pod must not be evicted; "" if it may be. The controller's pods have the annotation against Karpenter itself,
// and a PodDisruptionBudget of their own.
func obstacle(pod *corev1.Pod) string {
	switch {
	case controllerOf(pod) == "":
		return "belongs to no controller that would start it elsewhere; delete it, if it is not needed"
	case pod.Namespace == ownership.Namespace && pod.Labels["app.kubernetes.io/name"] == ownership.ReleaseController:
		return ""
	case pod.Annotations["karpenter.sh/do-not-disrupt"] == "true":
		return "has karpenter.sh/do-not-disrupt"
	}
	return ""
}

// evictable finds the pods of a node that may be evicted. If none may, one of the others holds the node.
func (s *survey) evictable(ctx context.Context, client *k8s.Client, m *member, v *View) error {
	budgets, err := budgets(ctx, client)
	if err != nil {
		return err
	}
	leaves := ""
	for _, pod := range m.pods {
		about := func(why string) string {
			return fmt.Sprintf("pod %s/%s on node %s %s", pod.Namespace, pod.Name, m.node.Name, why)
		}
		why := cmp.Or(obstacle(pod), refused(pod, budgets))
		switch {
		case pod.DeletionTimestamp != nil:
			leaves = about("is ending")
		case why == "":
			v.Evict = append(v.Evict, podObject(pod))
		case v.Held == "":
			v.Held = about(why)
		}
	}
	if v.Held = cmp.Or(v.Held, leaves); len(v.Evict) > 0 {
		v.Held = ""
	}
	return nil
}

// podObject returns what Evict needs of a pod.
func podObject(pod *corev1.Pod) unstructured.Unstructured {
	object := unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod"}}
	object.SetNamespace(pod.Namespace)
	object.SetName(pod.Name)
	object.SetUID(pod.UID)
	return object
}

// waits says why a pod that has left a node does not run.
func waits(pod *corev1.Pod, node string) string {
	why := "is not Ready"
	if _, message := k8s.Unschedulable(pod); message != "" {
		why = "waits for a node: " + message
	}
	return fmt.Sprintf("pod %s/%s, one like which has left node %s, %s", pod.Namespace, pod.Name, node, why)
}

// budget is a PodDisruptionBudget and the pods that it is for.
type budget struct {
	*policyv1.PodDisruptionBudget
	matches func(*corev1.Pod) bool
}

func budgets(ctx context.Context, client *k8s.Client) (all []budget, err error) {
	return all, client.Each(ctx, k8s.PodDisruptionBudget, "", "", func(object *unstructured.Unstructured) error {
		b, err := k8s.AsBudget(object)
		if err != nil {
			return err
		}
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err != nil {
			return nil // the API server evaluates none of these either
		}
		all = append(all, budget{b, func(pod *corev1.Pod) bool {
			return pod.Namespace == b.Namespace && selector.Matches(labels.Set(pod.Labels))
		}})
		return nil
	})
}

// refused returns which PodDisruptionBudget allows no eviction of a pod; "" if none is in the way. The API server evicts no pod that
// has two.
func refused(pod *corev1.Pod, all []budget) string {
	var names []string
	allows := true
	for _, b := range all {
		if b.matches(pod) {
			names = append(names, b.Name)
			allows = allows && (b.Status.DisruptionsAllowed > 0 || b.spares(pod))
		}
	}
	switch {
	case len(names) > 1:
		return "has several PodDisruptionBudgets (" + strings.Join(names, ", ") + "), and Kubernetes evicts no such pod; leave one"
	case !allows:
		return "is kept by PodDisruptionBudget " + names[0]
	}
	return ""
}

// spares reports whether the budget does not protect a pod because the pod is not Ready: the API server asks for no disruption
// then if enough others are, or if the budget says so.
func (b budget) spares(pod *corev1.Pod) bool {
	ready := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
	always := ptr.Deref(b.Spec.UnhealthyPodEvictionPolicy, policyv1.IfHealthyBudget) == policyv1.AlwaysAllow
	enough := b.Status.CurrentHealthy >= b.Status.DesiredHealthy && b.Status.DesiredHealthy > 0
	return pod.Status.Phase == corev1.PodPending || !ready && (always || enough)
}
