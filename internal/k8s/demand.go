package k8s

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resources "k8s.io/component-helpers/resource"
	scheduling "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// Demand is what a pod asks of a node.
type Demand struct {
	Requests    corev1.ResourceList
	affinity    nodeaffinity.RequiredNodeAffinity
	tolerations []corev1.Toleration
}

// DemandOf returns what a pod asks of a node.
func DemandOf(pod *corev1.Pod) Demand {
	return Demand{Requests(pod), nodeaffinity.GetRequiredNodeAffinity(pod), pod.Spec.Tolerations}
}

// Requests returns a pod's requests as the scheduler counts them: with init containers, sidecars and overhead, with
// the sizes to which a running pod was resized, and with the pod itself as one of the pods of a node.
func Requests(pod *corev1.Pod) corev1.ResourceList {
	requests := resources.PodRequests(pod, resources.PodResourcesOptions{UseStatusResources: true})
	requests[corev1.ResourcePods] = resource.MustParse("1")
	return requests
}

// Subtract takes amounts from others.
func Subtract(from, some corev1.ResourceList) {
	for name, quantity := range some {
		rest := from[name]
		rest.Sub(quantity)
		from[name] = rest
	}
}

// AdmittedBy reports whether the pod's nodeSelector and required node affinity match a node, and whether the pod tolerates
// its taints.
func (d Demand) AdmittedBy(node *corev1.Node) bool {
	if match, err := d.affinity.Match(node); err != nil || !match {
		return false
	}
	_, untolerated := scheduling.FindMatchingUntoleratedTaint(klog.Logger{}, node.Spec.Taints, d.tolerations, func(t *corev1.Taint) bool {
		return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
	}, false)
	return !untolerated
}

// Fits reports whether what is free is enough for the requests.
func (d Demand) Fits(free corev1.ResourceList) bool {
	for name, want := range d.Requests {
		if has := free[name]; !want.IsZero() && has.Cmp(want) < 0 {
			return false
		}
	}
	return true
}
