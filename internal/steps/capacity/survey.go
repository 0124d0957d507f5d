package capacity

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/drain"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// survey describes a cluster's nodes and pods, to find out where the pods of Karpenter's nodes can go.
type survey struct {
	// displaced are the pods that have to leave. targets are the nodes that may take them: Ready, not cordoned by others than
	// Sawhorse, not Karpenter's.
	displaced []displacedPod
	targets   []*place
	// nodes are all nodes, sorted by name.
	nodes []*corev1.Node
	// daemons are the requests of the DaemonSets' pods on each node. A further node of the same kind has that much less
	// free.
	daemons map[string]corev1.ResourceList
}

// leavingNodes returns the names of the nodes that are removed with the rack's pools: all of Karpenter's nodes except those
// of NodePools that Sawhorse did not make. It does not look for their NodePools, because these may be deleted before
// the nodes.
func leavingNodes(ctx context.Context, client *k8s.Client, unmanaged []string) (map[string]bool, error) {
	nodes := map[string]bool{}
	return nodes, client.Each(ctx, k8s.Node, "", ownership.LabelPool, func(node *unstructured.Unstructured) error {
		if !slices.Contains(unmanaged, node.GetLabels()[ownership.LabelPool]) {
			nodes[node.GetName()] = true
		}
		return nil
	})
}

// readSurvey reads the cluster's nodes and pods, of which those on leaving nodes are displaced.
func (r *run) readSurvey(ctx context.Context, leaving map[string]bool) (*survey, error) {
	s := &survey{daemons: map[string]corev1.ResourceList{}}
	byName := map[string]*place{}
	err := r.client.Each(ctx, k8s.Node, "", "", func(object *unstructured.Unstructured) error {
		node, err := k8s.As[corev1.Node](object)
		if err != nil {
			return err
		}
		node.Status.Images, node.ManagedFields = nil, nil // most of its size, and there may be thousands
		s.nodes = append(s.nodes, node)
		if node.Spec.Unschedulable && r.schedulable(node) { // Kubernetes taints each node that is cordoned
			node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeUnschedulable })
		}
		if _, karpenters := node.Labels[ownership.LabelPool]; !karpenters && k8s.NodeReady(node) && r.schedulable(node) &&
			node.DeletionTimestamp == nil {
			byName[node.Name] = &place{[]*corev1.Node{node}, node.Status.Allocatable.DeepCopy(), 1}
			s.targets = append(s.targets, byName[node.Name])
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(s.nodes, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	return s, r.client.Each(ctx, k8s.Pod, "", "", func(object *unstructured.Unstructured) error {
		pod, err := k8s.As[corev1.Pod](object)
		if err != nil {
			return err
		}
		s.count(pod, leaving[pod.Spec.NodeName], byName[pod.Spec.NodeName])
		return nil
	})
}

// schedulable reports whether a node takes pods once Sawhorse has uncordoned those that it cordoned. Those of a group that EKS
// deletes stay cordoned.
func (r *run) schedulable(node *corev1.Node) bool {
	return !node.Spec.Unschedulable || drain.Returns(node, r.plan.Rack) &&
		slices.Contains(r.plan.Nodegroups.All(), node.Labels[ownership.LabelNodeGroup])
}

// count adds one pod to the survey: as a pod that has to move, or as one that uses a node's resources.
func (s *survey) count(pod *corev1.Pod, leaves bool, on *place) {
	node := pod.Spec.NodeName
	if node == "" || k8s.Ended(pod.Status.Phase) {
		return
	}
	if k8s.OfDaemonSet(pod) {
		if s.daemons[node] == nil {
			s.daemons[node] = corev1.ResourceList{}
		}
		add(s.daemons[node], k8s.Requests(pod))
	}
	switch {
	case on != nil:
		k8s.Subtract(on.free, k8s.Requests(pod))
	// A static pod belongs to its node. A pod that is being deleted leaves on its own, and its replacement is counted
	// where it runs.
	case leaves && !k8s.Stays(pod) && pod.DeletionTimestamp == nil:
		s.displaced = append(s.displaced, newDisplacedPod(pod))
	}
}

// free returns the sum of the targets' free resources, counting only nodes that at least one of the pods could use.
func (s *survey) free() corev1.ResourceList {
	all := corev1.ResourceList{}
	for _, p := range s.targets {
		if slices.ContainsFunc(s.displaced, p.admits) {
			add(all, p.free)
		}
	}
	return all
}

// further returns what a further node like this one has free.
func (s *survey) further(like *corev1.Node) corev1.ResourceList {
	free := like.Status.Allocatable.DeepCopy()
	k8s.Subtract(free, s.daemons[like.Name])
	return free
}

// places returns the targets.
func (s *survey) places() []place {
	all := make([]place, 0, len(s.targets))
	for _, p := range s.targets {
		all = append(all, *p)
	}
	return all
}
