package capacity

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
)

// displacedPod is a pod that needs another node.
type displacedPod struct {
	name string // namespace/name
	k8s.Demand
}

func newDisplacedPod(pod *corev1.Pod) displacedPod {
	return displacedPod{pod.Namespace + "/" + pod.Name, k8s.DemandOf(pod)}
}

// place stands for nodes that pods may run on: a node of the cluster, or the further nodes of a group.
type place struct {
	// nodes are alternatives: the zones of a group's nodes differ.
	nodes []*corev1.Node
	// free is what one node has free, and count is the number of nodes.
	free  corev1.ResourceList
	count int
}

// admits reports whether a node of the place admits a pod.
func (p place) admits(m displacedPod) bool { return slices.ContainsFunc(p.nodes, m.AdmittedBy) }

// takes reports whether a node of the place admits a pod and is large enough for it.
func (p place) takes(m displacedPod) bool { return m.Fits(p.free) && p.admits(m) }

// room returns what one node of the place adds to the sums for these pods. It counts for no more of them than it could
// hold of the smallest.
func (p place) room(pods []displacedPod) corev1.ResourceList {
	room, most := p.free.DeepCopy(), p.free.Pods().Value()
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		least := pods[0].Requests.Name(name, resource.DecimalSI).MilliValue()
		for _, m := range pods {
			least = min(least, m.Requests.Name(name, resource.DecimalSI).MilliValue())
		}
		if least > 0 {
			most = min(most, p.free.Name(name, resource.DecimalSI).MilliValue()/least)
		}
	}
	room[corev1.ResourcePods] = *resource.NewQuantity(max(0, most), resource.DecimalSI)
	return room
}

// lack is what pods are missing: nodes that take them, or an amount of resources.
type lack struct {
	misfits []displacedPod
	amounts corev1.ResourceList
	// fitting are the pods that some place takes, even one without nodes. The amounts are what they lack together.
	fitting []displacedPod
}

func (l lack) none() bool { return len(l.misfits)+len(l.amounts) == 0 }

// estimate returns what pods lack in some places: it looks for a place for each pod alone, and compares the sum of their
// requests with the sum of what the places have. Pods that only further nodes take count in the sum.
//
// It finds what is certain to be missing. Whether pods fit together is for the scheduler to decide. It knows nothing of
// affinity and anti-affinity between pods, topology spread, host ports, volumes, resource claims, and pods that are
// Pending already.
func estimate(pods []displacedPod, places []place) lack {
	var l lack
	for _, m := range pods {
		if !slices.ContainsFunc(places, func(p place) bool { return p.count > 0 && p.takes(m) }) {
			l.misfits = append(l.misfits, m)
		}
		if slices.ContainsFunc(places, func(p place) bool { return p.takes(m) }) {
			l.fitting = append(l.fitting, m)
		}
	}
	l.amounts = requested(l.fitting)
	for _, p := range places {
		if slices.ContainsFunc(l.fitting, p.takes) {
			for room := p.room(l.fitting); p.count > 0; p.count-- {
				k8s.Subtract(l.amounts, room)
			}
		}
	}
	maps.DeleteFunc(l.amounts, func(_ corev1.ResourceName, q resource.Quantity) bool { return q.Sign() <= 0 })
	return l
}

// nodesFor returns how many more nodes of a place meet what the pods lack, as far as these do anything for it.
func (p place) nodesFor(l lack) int {
	if !slices.ContainsFunc(l.fitting, p.takes) {
		return 0
	}
	var nodes int64
	if slices.ContainsFunc(l.misfits, p.takes) {
		nodes = 1
	}
	room := p.room(l.fitting)
	for name, short := range l.amounts {
		if each := room[name]; each.MilliValue() > 0 {
			nodes = max(nodes, (short.MilliValue()+each.MilliValue()-1)/each.MilliValue())
		}
	}
	return int(nodes)
}

// requested returns the sum of the pods' requests.
func requested(pods []displacedPod) corev1.ResourceList {
	all := corev1.ResourceList{}
	for i := range pods {
		add(all, pods[i].Requests)
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
