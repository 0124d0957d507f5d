package nodegroups

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
)

// drainingAnnotation has the time at which a node's drain began.
const drainingAnnotation = "sandbox.sawhorse.dev/draining-since"

// patience is how long evictions are retried before the node is deleted anyway. EKS retries for 15 minutes, which is
// too long for a demo.
const patience = 30 * time.Second

func isDraining(node *corev1.Node) bool { return node.Annotations[drainingAnnotation] != "" }

// drain takes one step of removing a node: cordon it, evict its pods, and delete it once it is empty or patience has
// run out. The next poll takes the next step.
func (c *Controller) drain(ctx context.Context, node *corev1.Node) error {
	if !isDraining(node) {
		node.Spec.Unschedulable = true
		node.Annotations[drainingAnnotation] = c.config.Now().UTC().Format(time.RFC3339)
		return c.update(ctx, node)
	}
	pods, err := c.evictable(ctx, node.Name)
	if err != nil {
		return err
	}
	since, err := time.Parse(time.RFC3339, node.Annotations[drainingAnnotation])
	if len(pods) == 0 || err != nil || c.config.Now().Sub(since) > patience {
		return c.delete(ctx, node)
	}
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil {
			continue
		}
		eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace}}
		err := c.config.Client.CoreV1().Pods(pod.Namespace).EvictV1(ctx, eviction)
		// "Too many requests" means that a PodDisruptionBudget does not allow the eviction yet.
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsTooManyRequests(err) {
			return fmt.Errorf("pod %s/%s: evict: %w", pod.Namespace, pod.Name, err)
		}
	}
	return nil
}

// restore stops the removal of a node, because the group has grown again.
func (c *Controller) restore(ctx context.Context, node *corev1.Node) error {
	node.Spec.Unschedulable = false
	delete(node.Annotations, drainingAnnotation)
	return c.update(ctx, node)
}

// evictable returns the pods that a drain evicts: not those of DaemonSets, which would be created again, and not
// finished ones.
func (c *Controller) evictable(ctx context.Context, node string) ([]corev1.Pod, error) {
	listed, err := c.config.Client.CoreV1().Pods("").List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String(),
	})
	if err != nil {
		return nil, fmt.Errorf("node %s: list pods: %w", node, err)
	}
	var pods []corev1.Pod
	for _, pod := range listed.Items {
		owner := metav1.GetControllerOf(&pod)
		finished := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		if !finished && (owner == nil || owner.Kind != "DaemonSet") {
			pods = append(pods, pod)
		}
	}
	return pods, nil
}
