package proof

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
)

// words returns why a pool has no node, in the words of Karpenter, EC2, the scheduler and the kubelet: how far its
// NodeClaims have come, and the last warnings about them and about the pod. Karpenter deletes a NodeClaim that cannot be
// launched within seconds, so that only events tell of it.
func (r *run) words(ctx context.Context, pool string, pod *corev1.Pod) (string, error) {
	var all []string
	err := r.client.Each(ctx, k8s.NodeClaim, "", ownership.LabelPool+"="+pool, func(claim *unstructured.Unstructured) error {
		for _, step := range []string{"Launched", "Registered", "Initialized"} {
			if status, _, text := k8s.Condition(claim, step); status != "True" {
				all = append(all, k8s.Subject(claim)+": "+cmp.Or(text, "Karpenter has not begun with it"))
				break
			}
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	since := pod.CreationTimestamp.Time
	claims, err := r.warnings(ctx, metav1.NamespaceDefault, since, func(of corev1.ObjectReference) bool {
		return of.Kind == k8s.NodeClaim.Name && k8s.PoolOf(of.Name) == pool
	})
	if err != nil {
		return "", err
	}
	pods, err := r.warnings(ctx, ownership.ProofNamespace, since, func(of corev1.ObjectReference) bool { return of.UID == pod.UID })
	if err != nil {
		return "", err
	}
	all = slices.Concat(all, claims, pods)
	return cmp.Or(strings.Join(all, "; "), "Karpenter and the scheduler have said nothing about the pod that asks for it"), nil
}

// mostWarnings is how many different warnings are told. The last one alone may be Karpenter's own: that it remembers what EC2
// has refused.
const mostWarnings = 2

// warnings returns the last warnings about some objects, each once, if they came since a time. Karpenter remembers
// for minutes what EC2 has refused, and does not try again, so the time is not that of this pass.
func (r *run) warnings(
	ctx context.Context, namespace string, since time.Time, about func(corev1.ObjectReference) bool,
) ([]string, error) {
	var found []*corev1.Event
	err := r.client.Each(ctx, k8s.Event, namespace, "", func(object *unstructured.Unstructured) error {
		e, err := k8s.As[corev1.Event](object)
		if err != nil {
			return nil // Only another program's event can be unreadable.
		}
		if e.Type == corev1.EventTypeWarning && about(e.InvolvedObject) && !k8s.LastSeen(e).Before(since) {
			found = append(found, e)
		}
		return nil
	})
	slices.SortFunc(found, func(a, b *corev1.Event) int { return k8s.LastSeen(b).Compare(k8s.LastSeen(a)) })
	var all []string
	for _, e := range found {
		if text := k8s.Said(e); len(all) < mostWarnings && !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return all, err
}
