// Package drain empties nodes of managed node groups: it cordons them, finds the pods that would be lost with them, and
// evicts these. For a migration it also decides which node comes next, and what holds the present one.
package drain

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

const (
	// evictions is the maximum number of pods that a call evicts, so that their replacements have time to start.
	evictions = 20
	// attempts limits the duration of a call if PodDisruptionBudgets block most evictions.
	attempts = 100
)

// Nodes returns the nodes of managed node groups, or those of one group.
func Nodes(ctx context.Context, client *k8s.Client, group string) ([]unstructured.Unstructured, error) {
	selector := ownership.LabelNodeGroup
	if group != "" {
		selector += "=" + group
	}
	return client.List(ctx, k8s.Node, "", selector)
}

// Cordon cordons a node, or uncordons it if Sawhorse cordoned it, and returns what it did; "" if nothing. annotations are set
// with it, and removed by an empty value. A node that somebody else has uncordoned loses Sawhorse's annotation, because whoever
// cordons it next means to keep it so.
func Cordon(
	ctx context.Context, client *k8s.Client, rack string, node *unstructured.Unstructured, cordoned bool, annotations map[string]string,
) (string, error) {
	wanted := node.DeepCopy()
	for key, value := range annotations {
		k8s.SetAnnotation(wanted, key, value)
	}
	ours, action := node.GetAnnotations()[ownership.TagRack] == rack, "annotated"
	switch {
	case cordoned && !Cordoned(node):
		k8s.SetAnnotation(wanted, ownership.TagRack, rack)
		action = "cordoned"
	case !cordoned && ours:
		k8s.SetAnnotation(wanted, ownership.TagRack, "")
		if action = "removed the annotation of"; Cordoned(node) {
			action = "uncordoned"
		}
	}
	if cordoned || ours {
		if err := unstructured.SetNestedField(wanted.Object, cordoned, "spec", "unschedulable"); err != nil {
			return "", fmt.Errorf("%s: cordon: %w", k8s.Subject(wanted), err)
		}
	}
	changed, err := client.Update(ctx, k8s.Node, node, wanted)
	if err != nil || !changed {
		return "", err
	}
	*node = *wanted
	return action, nil
}

// Returns reports whether a cordoned node takes pods again once a rack's Karpenter is turned off: Sawhorse has cordoned it, and
// its instance does not end.
func Returns(node metav1.Object, rack string) bool {
	marks := node.GetAnnotations()
	return marks[ownership.TagRack] == rack && marks[ownership.AnnotationMigrating] != Ended
}

// Cordoned reports whether a node takes no new pods.
func Cordoned(node *unstructured.Unstructured) bool {
	cordoned, _, _ := unstructured.NestedBool(node.Object, "spec", "unschedulable")
	return cordoned
}

// Pods returns the pods that would be lost with nodes.
func Pods(ctx context.Context, client *k8s.Client, nodes []unstructured.Unstructured) ([]unstructured.Unstructured, error) {
	if len(nodes) == 0 {
		return nil, nil
	}
	on := map[string]bool{}
	for _, node := range nodes {
		on[node.GetName()] = true
	}
	var lost []unstructured.Unstructured
	err := client.Each(ctx, k8s.Pod, "", "", func(pod *unstructured.Unstructured) error {
		if node, _, _ := unstructured.NestedString(pod.Object, "spec", "nodeName"); on[node] && runs(pod) && !k8s.Stays(pod) {
			lost = append(lost, *pod)
		}
		return nil
	})
	return lost, err
}

// runs reports whether a pod has not ended.
func runs(pod *unstructured.Unstructured) bool {
	phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase")
	return !k8s.Ended(corev1.PodPhase(phase))
}

// Evict evicts some of the pods, and returns how many. PodDisruptionBudgets may refuse the others. If the API server, or a webhook, does
// not take the eviction of a pod at all, it goes on with the others, and returns the first of these errors.
func Evict(ctx context.Context, client *k8s.Client, pods []unstructured.Unstructured) (evicted int, refused error) {
	tried := 0
	for i := range pods {
		if pods[i].GetDeletionTimestamp() != nil || evicted == evictions || tried == attempts {
			continue
		}
		tried++
		gone, err := client.Evict(ctx, &pods[i])
		switch {
		case err != nil && !Refused(err): // no answer
			return evicted, err
		case err != nil:
			refused = cmp.Or(refused, err)
		case gone:
			evicted++
		}
	}
	return evicted, refused
}

// Refused reports whether an error is the answer of the API server, or of a webhook, that does not take an eviction.
func Refused(err error) bool {
	var answer apierrors.APIStatus
	return errors.As(err, &answer) && !apierrors.IsTimeout(err) && !apierrors.IsServerTimeout(err) && !apierrors.IsServiceUnavailable(err)
}
