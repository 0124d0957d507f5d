package nodegroups

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// endingAnnotation is on a node whose instance Auto Scaling was asked to end.
const endingAnnotation = "sandbox.sawhorse.dev/ending"

func isEnding(node *corev1.Node) bool { return node.Annotations[endingAnnotation] != "" }

// Group returns the node group of an instance, "" if there is none, and whether the instance is ending.
func (c *Controller) Group(ctx context.Context, instance string) (group string, ending bool, err error) {
	node, err := c.node(ctx, instance)
	if err != nil || node == nil {
		return "", false, err
	}
	return node.Labels[groupLabel], isEnding(node) || isDraining(node), nil
}

// End marks the node of an instance. It goes when its group is one node smaller.
func (c *Controller) End(ctx context.Context, instance string) error {
	for {
		node, err := c.node(ctx, instance)
		if err != nil || node == nil {
			return err
		}
		node.Annotations[endingAnnotation] = "true"
		if _, err = c.config.Client.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
			return err
		}
	}
}

// node returns the node of an instance, or nil.
func (c *Controller) node(ctx context.Context, instance string) (*corev1.Node, error) {
	node, err := c.config.Client.CoreV1().Nodes().Get(ctx, instance+".ec2.internal", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("node of instance %s: read: %w", instance, err)
	}
	return node, nil
}
