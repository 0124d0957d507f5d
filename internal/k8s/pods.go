package k8s

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// PodsOf lists the pods of a Deployment, including those of an earlier template.
func (c *Client) PodsOf(ctx context.Context, deployment *unstructured.Unstructured) ([]corev1.Pod, error) {
	typed, err := AsDeployment(deployment)
	if err != nil {
		return nil, err
	}
	selector, err := metav1.LabelSelectorAsSelector(typed.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("%s: selector: %w", Subject(deployment), err)
	}
	objects, err := c.List(ctx, Pod, typed.Namespace, selector.String())
	if err != nil {
		return nil, err
	}
	pods := make([]corev1.Pod, len(objects))
	for i := range objects {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[i].Object, &pods[i]); err != nil {
			return nil, fmt.Errorf("%s: decode: %w", Subject(&objects[i]), err)
		}
	}
	return pods, nil
}

// DeletePod deletes a pod that was read, but not a later pod of the same name. It ignores a pod that no longer exists.
func (c *Client) DeletePod(ctx context.Context, pod *corev1.Pod) error {
	object := &unstructured.Unstructured{}
	object.SetKind("Pod")
	object.SetNamespace(pod.Namespace)
	object.SetName(pod.Name)
	object.SetUID(pod.UID)
	return c.Delete(ctx, Pod, object)
}

// PodTroubles lists, pod by pod, what keeps the pods of a Deployment from running.
func (c *Client) PodTroubles(ctx context.Context, deployment *unstructured.Unstructured) ([]string, error) {
	pods, err := c.PodsOf(ctx, deployment)
	if err != nil {
		return nil, err
	}
	var troubles []string
	for i := range pods {
		if _, message := Unschedulable(&pods[i]); message != "" {
			troubles = append(troubles, "pod "+pods[i].Name+": "+message)
		}
		for _, container := range pods[i].Status.ContainerStatuses {
			if waiting := container.State.Waiting; waiting != nil && waiting.Message != "" {
				troubles = append(troubles, "pod "+pods[i].Name+": "+waiting.Reason+": "+waiting.Message)
			}
		}
	}
	return troubles, nil
}

// Unschedulable returns the scheduler's message for a pod that fits on no node, and since when. Otherwise the message
// is "".
func Unschedulable(pod *corev1.Pod) (since time.Time, message string) {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse &&
			condition.Reason == corev1.PodReasonUnschedulable {
			return condition.LastTransitionTime.Time, condition.Message
		}
	}
	return time.Time{}, ""
}
