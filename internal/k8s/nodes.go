package k8s

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// SystemNode is a node with the system label.
type SystemNode struct {
	Name string
	// Zone is its availability zone, or empty if the node has no such label.
	Zone string
	// Ready is true if the node is Ready and schedulable.
	Ready bool
}

// SystemNodes lists the nodes with convox.io/system-node=true.
func (c *Client) SystemNodes(ctx context.Context) ([]SystemNode, error) {
	objects, err := c.List(ctx, Node, "", ownership.LabelSystemNode+"=true")
	if err != nil {
		return nil, err
	}
	var nodes []SystemNode
	for _, object := range objects {
		node, err := as[corev1.Node](&object)
		if err != nil {
			return nil, err
		}
		system := SystemNode{Name: node.Name, Zone: node.Labels[corev1.LabelTopologyZone], Ready: NodeReady(node) && !node.Spec.Unschedulable}
		nodes = append(nodes, system)
	}
	return nodes, nil
}

// NodeReady reports whether a node is Ready.
func NodeReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// AnyReady reports whether at least one of the nodes is Ready.
func AnyReady(nodes []SystemNode) bool {
	return slices.ContainsFunc(nodes, func(node SystemNode) bool { return node.Ready })
}
