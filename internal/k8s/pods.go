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

// PodsOf lists the pods of a Deployment, of its old template and its new one.
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

// DeletePod deletes a pod that was read, and not one that has taken its name since. One that has gone is no error.
func (c *Client) DeletePod(ctx context.Context, pod *corev1.Pod) error {
	object := &unstructured.Unstructured{}
	object.SetKind("Pod")
	object.SetNamespace(pod.Namespace)
	object.SetName(pod.Name)
	object.SetUID(pod.UID)
	return c.Delete(ctx, Pod, object)
}

// PodTroubles says what keeps the pods of a Deployment from running, pod by pod.
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

// Unschedulable tells since when the scheduler has found no node for a pod, and its reason; "" where that is not so.
func Unschedulable(pod *corev1.Pod) (since time.Time, message string) {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse && condition.Reason == corev1.PodReasonUnschedulable {
			return condition.LastTransitionTime.Time, condition.Message
		}
	}
	return time.Time{}, ""
}
