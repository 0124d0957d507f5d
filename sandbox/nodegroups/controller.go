// Package nodegroups keeps the cluster's Nodes in line with the managed node groups of the EKS cluster: the number of
// nodes equals the desired size, spread over the group's zones, with its labels, taints and instance type. It simulates
// Auto Scaling, the instances' bootstrap and EKS's drain. kwok simulates the kubelets.
package nodegroups

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Config has the controller's settings and clients.
type Config struct {
	Cluster string // the EKS cluster's name
	Region  string
	EKS     EKS
	EC2     EC2
	Client  kubernetes.Interface
	Now     func() time.Time
	Log     *slog.Logger
}

// Controller compares the nodes with the node groups and corrects them.
type Controller struct {
	config   Config
	subnets  map[string]string
	machines map[string]machine
}

// New returns a Controller.
func New(config Config) *Controller {
	return &Controller{config, map[string]string{}, map[string]machine{}}
}

// Run reconciles at every interval until the context ends. It logs errors and retries, because an emulator may be busy.
func (c *Controller) Run(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		if err := c.Reconcile(ctx); err != nil && ctx.Err() == nil {
			c.config.Log.Error("node groups", "error", err.Error())
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Reconcile takes one step towards the desired state of the node groups. An error in one group does
// not stop the others.
func (c *Controller) Reconcile(ctx context.Context) error {
	groups, err := c.groups(ctx)
	if err != nil {
		return err
	}
	nodes, err := c.nodes(ctx)
	if err != nil {
		return err
	}
	var failures []error
	for _, g := range groups {
		failures = append(failures, c.scale(ctx, g, nodes[g.name]))
		delete(nodes, g.name)
	}
	for name, orphans := range nodes { // their group has been deleted
		failures = append(failures, c.scale(ctx, group{name: name}, orphans))
	}
	return errors.Join(failures...)
}

// nodes returns the nodes of managed node groups, by group. Karpenter's nodes belong to none.
func (c *Controller) nodes(ctx context.Context) (map[string][]*corev1.Node, error) {
	listed, err := c.config.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: groupLabel})
	if err != nil {
		return nil, fmt.Errorf("nodes: list: %w", err)
	}
	nodes := map[string][]*corev1.Node{}
	for i := range listed.Items {
		node := &listed.Items[i]
		if node.DeletionTimestamp == nil {
			nodes[node.Labels[groupLabel]] = append(nodes[node.Labels[groupLabel]], node)
		}
	}
	return nodes, nil
}

func (c *Controller) scale(ctx context.Context, g group, nodes []*corev1.Node) error {
	going := surplus(nodes, len(nodes)-g.desired)
	leaves := map[string]bool{}
	for _, node := range going {
		leaves[node.Name] = true
		if err := c.drain(ctx, node); err != nil {
			return err
		}
	}
	for _, node := range nodes {
		if leaves[node.Name] {
			continue
		}
		changed := g.apply(node)
		var err error
		switch {
		case isDraining(node):
			err = c.restore(ctx, node)
		case changed:
			err = c.update(ctx, node)
		}
		if err != nil {
			return err
		}
	}
	for number := len(nodes); number < g.desired; number++ {
		node := newNode(g, c.config.Region, emptiest(g.zones, nodes))
		if err := c.create(ctx, node); err != nil {
			return err
		}
		nodes = append(nodes, node)
	}
	return nil
}

func (c *Controller) create(ctx context.Context, node *corev1.Node) error {
	if _, err := c.config.Client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("node %s: create: %w", node.Name, err)
	}
	c.config.Log.Info("node created", "node", node.Name, "group", node.Labels[groupLabel], "zone", node.Labels[zoneLabel])
	return nil
}

// update writes a node. A conflict means that another client wrote it first; the next poll sees that.
func (c *Controller) update(ctx context.Context, node *corev1.Node) error {
	_, err := c.config.Client.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{})
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("node %s: update: %w", node.Name, err)
	}
	return nil
}

func (c *Controller) delete(ctx context.Context, node *corev1.Node) error {
	err := c.config.Client.CoreV1().Nodes().Delete(ctx, node.Name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("node %s: delete: %w", node.Name, err)
	}
	c.config.Log.Info("node deleted", "node", node.Name, "group", node.Labels[groupLabel])
	return nil
}
