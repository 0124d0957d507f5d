package drain

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
	// ToRelease are marked nodes that are not to be emptied any more: of other groups, or because others were lost meanwhile.
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

// controllersOf returns the controllers (UIDs) of the pods that a node that is being emptied had.
func controllersOf(node *unstructured.Unstructured) []string {
	had := strings.Fields(markOf(node))
	return had[min(1, len(had)):]
}

// ReadView reads what there is to do for a migration now.
func ReadView(ctx context.Context, client *k8s.Client, m plan.Migration, now time.Time) (View, error) {
	var v View
	nodes, err := Nodes(ctx, client, "")
	if err != nil {
		return v, err
	}
	s := &survey{plan: m, now: now, nodes: map[string]*member{}}
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

// decide chooses the node, and says what can be done with it.
func (s *survey) decide(ctx context.Context, client *k8s.Client, v *View) error {
	going, stay := s.going()
	for _, m := range stay {
		v.ToRelease = append(v.ToRelease, *m.object)
	}
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
	for _, uid := range controllersOf(m.object) {
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
	return strings.Join(append([]string{emptying}, m.controllers()...), " ")
}

// controllers returns the controllers (UIDs) of all pods that the node has, and had while it was emptied.
func (m *member) controllers() []string {
	all := controllersOf(m.object)
	for _, pod := range m.pods {
		if uid := controllerOf(pod); uid != "" {
			all = append(all, uid)
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(all)))
}

// waits says why a pod that has left a node does not run.
func waits(pod *corev1.Pod, node string) string {
	why := "is not Ready"
	if _, message := k8s.Unschedulable(pod); message != "" {
		why = "waits for a node: " + message
	}
	return fmt.Sprintf("pod %s/%s, one like which has left node %s, %s", pod.Namespace, pod.Name, node, why)
}
