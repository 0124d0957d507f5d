package capacity

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resources "k8s.io/component-helpers/resource"
	scheduling "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// displacedPod is a pod that needs another node.
type displacedPod struct {
	name        string // namespace/name
	requests    corev1.ResourceList
	affinity    nodeaffinity.RequiredNodeAffinity
	tolerations []corev1.Toleration
}

func newDisplacedPod(pod *corev1.Pod) displacedPod {
	return displacedPod{
		name: pod.Namespace + "/" + pod.Name, requests: requestsOf(pod),
		affinity: nodeaffinity.GetRequiredNodeAffinity(pod), tolerations: pod.Spec.Tolerations,
	}
}

// requestsOf returns a pod's requests as the scheduler counts them: with init containers, sidecars and overhead, with
// the sizes to which a running pod was resized, and with the pod itself as one of the pods of a node.
func requestsOf(pod *corev1.Pod) corev1.ResourceList {
	requests := resources.PodRequests(pod, resources.PodResourcesOptions{UseStatusResources: true})
	requests[corev1.ResourcePods] = resource.MustParse("1")
	return requests
}

// may reports whether a pod's nodeSelector and required node affinity match a node, and whether the pod tolerates the
// node's taints.
func (m *displacedPod) may(node *corev1.Node) bool {
	if match, err := m.affinity.Match(node); err != nil || !match {
		return false
	}
	_, untolerated := scheduling.FindMatchingUntoleratedTaint(klog.Logger{}, node.Spec.Taints, m.tolerations, func(t *corev1.Taint) bool {
		return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
	}, false)
	return !untolerated
}

// targetNode is a node, or one that a node group could add, with its free resources.
type targetNode struct {
	node *corev1.Node
	free corev1.ResourceList
}

func (p *targetNode) clone() *targetNode { return &targetNode{p.node, p.free.DeepCopy()} }

func (p *targetNode) holds(requests corev1.ResourceList) bool {
	for name, want := range requests {
		if free := p.free[name]; !want.IsZero() && free.Cmp(want) < 0 {
			return false
		}
	}
	return true
}

// binPack assigns pods to nodes: the pods with the fewest possible nodes first, then the largest, each to the first node
// that can take it. It returns the pods that fit nowhere, and subtracts the requests of the others from the nodes.
//
// It is an estimate, not a scheduler. It does not model affinity and anti-affinity between pods, topology spread, host
// ports, the zones and number of volumes, preemption, resource claims and preferences. It does not count pods that are
// already Pending: Cluster Autoscaler, restored by now, adds nodes for those. If the estimate is wrong, pods stay
// Pending until Cluster Autoscaler adds nodes.
func binPack(pods []displacedPod, nodes []*targetNode) (left []displacedPod) {
	all := requested(pods)
	type choice struct {
		*displacedPod
		nodes []*targetNode
		size  float64
	}
	choices := make([]choice, len(pods))
	for i := range pods {
		m := &pods[i]
		choices[i] = choice{displacedPod: m, size: share(m.requests, all, corev1.ResourceCPU) + share(m.requests, all, corev1.ResourceMemory)}
		for _, p := range nodes {
			if m.may(p.node) {
				choices[i].nodes = append(choices[i].nodes, p)
			}
		}
	}
	slices.SortStableFunc(choices, func(a, b choice) int {
		return cmp.Or(cmp.Compare(len(a.nodes), len(b.nodes)), cmp.Compare(b.size, a.size), cmp.Compare(a.name, b.name))
	})
	for _, c := range choices {
		at := slices.IndexFunc(c.nodes, func(p *targetNode) bool { return p.holds(c.requests) })
		if at < 0 {
			left = append(left, *c.displacedPod)
			continue
		}
		subtract(c.nodes[at].free, c.requests)
	}
	return left
}

func share(part, whole corev1.ResourceList, name corev1.ResourceName) float64 {
	of := whole[name]
	if of.IsZero() {
		return 0
	}
	some := part[name]
	return some.AsApproximateFloat64() / of.AsApproximateFloat64()
}

// requested returns the sum of the pods' requests.
func requested(pods []displacedPod) corev1.ResourceList {
	all := corev1.ResourceList{}
	for i := range pods {
		add(all, pods[i].requests)
	}
	return all
}

func add(to, more corev1.ResourceList) {
	for name, quantity := range more {
		sum := to[name]
		sum.Add(quantity)
		to[name] = sum
	}
}

func subtract(from, some corev1.ResourceList) {
	for name, quantity := range some {
		rest := from[name]
		rest.Sub(quantity)
		from[name] = rest
	}
}
