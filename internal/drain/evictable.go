package drain

import (
	"cmp"
	"context"
	"fmt"
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
)

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
		why := cmp.Or(s.obstacle(pod), refused(pod, budgets))
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

// obstacle returns why a pod must not be evicted; "" if it may be. The controller's pods have the annotation against Karpenter itself,
// and a PodDisruptionBudget of their own.
func (s *survey) obstacle(pod *corev1.Pod) string {
	undisturbed := k8s.Undisturbed(pod, s.now)
	switch {
	case controllerOf(pod) == "":
		return "belongs to no controller that would start it elsewhere; delete it, if it is not needed"
	case pod.Namespace == ownership.Namespace && pod.Labels["app.kubernetes.io/name"] == ownership.ReleaseController:
		return ""
	case undisturbed != "":
		return "has " + undisturbed
	}
	return ""
}

// podObject returns what Evict needs of a pod.
func podObject(pod *corev1.Pod) unstructured.Unstructured {
	object := unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod"}}
	object.SetNamespace(pod.Namespace)
	object.SetName(pod.Name)
	object.SetUID(pod.UID)
	return object
}

// budget is a PodDisruptionBudget and the pods that it is for.
type budget struct {
	*policyv1.PodDisruptionBudget
	matches func(*corev1.Pod) bool
}

func budgets(ctx context.Context, client *k8s.Client) (all []budget, err error) {
	err = client.Each(ctx, k8s.PodDisruptionBudget, "", "", func(object *unstructured.Unstructured) error {
		b, err := k8s.As[policyv1.PodDisruptionBudget](object)
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
	return all, err
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
