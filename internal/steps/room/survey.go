package room

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/names"
)

// survey is what a cluster has of nodes and pods, as far as it says where the pods of Karpenter's nodes can go.
type survey struct {
	// movers are the pods that have to leave, places the nodes that may take them: Ready, not cordoned, not Karpenter's.
	movers []mover
	places []*place
	// nodes are all of them, by name.
	nodes []*corev1.Node
	// daemons are what the DaemonSets request on each node: a further node of its kind has no room for others in that.
	daemons map[string]corev1.ResourceList
}

// leaving are the names of the nodes that go with the rack's pools. A NodePool may have gone before its nodes, so that they
// are all of Karpenter's but those of a NodePool that Sawhorse did not make.
func leaving(ctx context.Context, client *k8s.Client, foreign []string) (map[string]bool, error) {
	leaving := map[string]bool{}
	return leaving, client.Each(ctx, k8s.Node, "", names.LabelPool, func(node *unstructured.Unstructured) error {
		if !slices.Contains(foreign, node.GetLabels()[names.LabelPool]) {
			leaving[node.GetName()] = true
		}
		return nil
	})
}

func look(ctx context.Context, client *k8s.Client, leaving map[string]bool) (*survey, error) {
	s := &survey{daemons: map[string]corev1.ResourceList{}}
	byName := map[string]*place{}
	err := client.Each(ctx, k8s.Node, "", "", func(object *unstructured.Unstructured) error {
		node := &corev1.Node{}
		if err := decode(object, node); err != nil {
			return err
		}
		s.nodes = append(s.nodes, node)
		if _, karpenters := node.Labels[names.LabelPool]; !karpenters && ready(node) && !node.Spec.Unschedulable && node.DeletionTimestamp == nil {
			byName[node.Name] = &place{node, node.Status.Allocatable.DeepCopy()}
			s.places = append(s.places, byName[node.Name])
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(s.nodes, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(s.places, func(a, b *place) int { return strings.Compare(a.node.Name, b.node.Name) })
	return s, client.Each(ctx, k8s.Pod, "", "", func(object *unstructured.Unstructured) error {
		pod := &corev1.Pod{}
		if err := decode(object, pod); err != nil {
			return err
		}
		s.count(pod, leaving[pod.Spec.NodeName], byName[pod.Spec.NodeName])
		return nil
	})
}

// count takes one pod into the survey: as one that has to move, or as one that is in the way.
func (s *survey) count(pod *corev1.Pod, leaves bool, on *place) {
	node := pod.Spec.NodeName
	if node == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return
	}
	daemon := ownedBy(pod, "DaemonSet")
	if daemon {
		if s.daemons[node] == nil {
			s.daemons[node] = corev1.ResourceList{}
		}
		add(s.daemons[node], requestsOf(pod))
	}
	switch {
	case on != nil:
		subtract(on.free, requestsOf(pod))
	// A static pod is its node's own. One that is being deleted leaves by itself; what comes in its place counts where it is.
	case leaves && !daemon && !ownedBy(pod, "Node") && pod.DeletionTimestamp == nil:
		s.movers = append(s.movers, newMover(pod))
	}
}

// free is what the places have together, as far as one of the pods could use it.
func (s *survey) free() corev1.ResourceList {
	all := corev1.ResourceList{}
	for _, p := range s.places {
		if slices.ContainsFunc(s.movers, func(m mover) bool { return m.may(p.node) }) {
			add(all, p.free)
		}
	}
	return all
}

func ready(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

func ownedBy(pod *corev1.Pod, kind string) bool {
	for _, owner := range pod.OwnerReferences {
		if owner.Kind == kind {
			return true
		}
	}
	return false
}

func decode(object *unstructured.Unstructured, into any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into); err != nil {
		return fmt.Errorf("%s: decode: %w", k8s.Subject(object), err)
	}
	return nil
}
