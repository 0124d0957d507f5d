package k8s

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// SystemNodes lists the nodes with convox.io/system-node=true.
func (c *Client) SystemNodes(ctx context.Context) ([]corev1.Node, error) {
	return Typed[corev1.Node](ctx, c, Node, "", ownership.LabelSystemNode+"=true")
}

// AcceptsPods reports whether a node is Ready and schedulable.
func AcceptsPods(node *corev1.Node) bool { return NodeReady(node) && !node.Spec.Unschedulable }

// NodeReady reports whether a node is Ready.
func NodeReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// AnyAcceptsPods reports whether at least one of the nodes is Ready and schedulable.
func AnyAcceptsPods(nodes []corev1.Node) bool {
	return slices.ContainsFunc(nodes, func(node corev1.Node) bool { return AcceptsPods(&node) })
}
