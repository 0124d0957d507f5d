package k8s

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// PodsOf lists the pods of a Deployment, including those of an earlier template.
func (c *Client) PodsOf(ctx context.Context, deployment *unstructured.Unstructured) ([]corev1.Pod, error) {
	selector, err := Selector(deployment)
	if err != nil {
		return nil, err
	}
	return Typed[corev1.Pod](ctx, c, Pod, deployment.GetNamespace(), selector)
}

// Ended reports whether the containers of a pod have ended, so that it uses nothing any more.
func Ended(phase corev1.PodPhase) bool {
	return phase == corev1.PodSucceeded || phase == corev1.PodFailed
}

// Stays reports whether a pod ends with its node, and starts nowhere else: it is static, or of a DaemonSet. pod is typed or not.
func Stays(pod metav1.Object) bool {
	_, mirror := pod.GetAnnotations()[corev1.MirrorPodAnnotationKey]
	return mirror || slices.ContainsFunc(pod.GetOwnerReferences(), func(owner metav1.OwnerReference) bool {
		return owner.Kind == DaemonSet.Name || owner.Kind == Node.Name
	})
}

// Selector returns the selector of the pods of a Deployment or a DaemonSet.
func Selector(of *unstructured.Unstructured) (string, error) {
	var typed struct {
		Spec struct {
			Selector *metav1.LabelSelector `json:"selector"`
		} `json:"spec"`
	}
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(of.Object, &typed)
	if err == nil {
		var selector labels.Selector
		if selector, err = metav1.LabelSelectorAsSelector(typed.Spec.Selector); err == nil {
			return selector.String(), nil
		}
	}
	return "", fmt.Errorf("%s: selector: %w", Subject(of), err)
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

// UnplacedAfter is how long a pod may be unschedulable before it counts as one for which there is no room on system nodes. Until then,
// old pods may still free capacity.
const UnplacedAfter = 30 * time.Second

// Unplaced returns the scheduler's message for a pod of a Deployment that must run on a system node and finds no room there; "" if
// there is none.
func (c *Client) Unplaced(ctx context.Context, deployment *unstructured.Unstructured, now time.Time) (message string, err error) {
	pods, err := c.PodsOf(ctx, deployment)
	for i := range pods {
		since, text := Unschedulable(&pods[i])
		if pods[i].Spec.NodeSelector[ownership.LabelSystemNode] == "true" && text != "" && now.Sub(since) >= UnplacedAfter {
			message = text
		}
	}
	return message, err
}

// OfDaemonSet reports whether a pod is a DaemonSet's. Such a pod waits for room on a node that exists, and Karpenter launches none for
// it.
func OfDaemonSet(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == DaemonSet.Name
}

// Undisturbed returns the annotation by which a pod is not to be disrupted now; "" if it may be. The value is true, or how long after
// the pod's start: Karpenter reads that from 1.12 on (IsDoNotDisruptActive in its pkg/utils/pod).
func Undisturbed(pod *corev1.Pod, now time.Time) string {
	value := pod.Annotations[ownership.DoNotDisrupt]
	if value == "true" {
		return ownership.DoNotDisrupt
	}
	span, err := time.ParseDuration(value)
	if err != nil || span <= 0 {
		return ""
	}
	if pod.Status.StartTime == nil {
		return ownership.DoNotDisrupt + "=" + value
	}
	until := pod.Status.StartTime.Add(span)
	if !now.Before(until) {
		return ""
	}
	return ownership.DoNotDisrupt + "=" + value + " until " + until.UTC().Format(time.RFC3339)
}

// crashes is the number of restarts after which a container that ends by itself counts as failed. The kubelet waits longer
// before each restart, so that they take some two minutes: more than AWS needs to learn of new credentials and rights.
const crashes = 4

// startTime is how long a container may fail to start. A registry's refusal for its rate passes sooner.
const startTime = 2 * time.Minute

// NewPods lists the pods of a Deployment that were made at a time or later and are not being deleted.
func (c *Client) NewPods(ctx context.Context, deployment *unstructured.Unstructured, from time.Time) ([]corev1.Pod, error) {
	pods, err := c.PodsOf(ctx, deployment)
	return slices.DeleteFunc(pods, func(pod corev1.Pod) bool {
		return pod.DeletionTimestamp != nil || pod.CreationTimestamp.Time.Before(from.Truncate(time.Second))
	}), err
}

// PodFailures lists, pod by pod, what will keep pods from ever running. A container that waits for other reasons may still start.
func PodFailures(pods []corev1.Pod, now time.Time) (failures []string) {
	for _, pod := range pods {
		for _, container := range pod.Status.ContainerStatuses {
			if waiting := container.State.Waiting; waiting != nil && failed(container, now.Sub(pod.CreationTimestamp.Time)) {
				failures = append(failures, "pod "+pod.Name+": "+waiting.Reason+": "+waiting.Message+lastWords(container))
			}
		}
	}
	return failures
}

func failed(container corev1.ContainerStatus, age time.Duration) bool {
	switch container.State.Waiting.Reason {
	case "CrashLoopBackOff":
		return container.RestartCount >= crashes
	case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError",
		"CreateContainerError", "RunContainerError":
		return age > startTime
	}
	return false
}

// lastWords returns how a container ended the last time, as more of a sentence.
func lastWords(container corev1.ContainerStatus) string {
	ended := container.LastTerminationState.Terminated
	if ended == nil {
		return ""
	}
	text := fmt.Sprintf(" (it last ended with %s, exit code %d", ended.Reason, ended.ExitCode)
	if ended.Message != "" {
		text += ": " + ended.Message
	}
	return text + ")"
}
