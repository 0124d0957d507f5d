package k8s_test

import (
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/testing/k8stest"
)

// Evictions respect PodDisruptionBudgets, and the function nodegroups has the right to evict.
func TestEvictAsksTheBudgets(t *testing.T) {
	cluster := k8stest.New(t)
	c, err := cluster.Connector("nodegroups")(ctx, plan.Cluster{})
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"ClusterRole", "ClusterRoleBinding"} { // made by Connector; another test makes its own
		t.Cleanup(func() {
			cluster.Remove(k8stest.Object{
				"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": k8stest.Object{"name": ownership.Group("nodegroups")},
			})
		})
	}
	pod := func(name string) k8stest.Object {
		return k8stest.Object{
			"apiVersion": "v1", "kind": "Pod",
			"metadata": k8stest.Object{"name": name, "namespace": "default", "labels": k8stest.Object{"app": name}},
			"spec":     k8stest.Object{"nodeName": "some-node", "containers": []any{k8stest.Object{"name": "c", "image": "i"}}},
			"status":   k8stest.Object{"phase": "Running", "conditions": []any{k8stest.Object{"type": "Ready", "status": "True"}}},
		}
	}
	cluster.Create(k8stest.Object{
		"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": k8stest.Object{"name": "kept", "namespace": "default"},
		"spec": k8stest.Object{"maxUnavailable": 0, "selector": k8stest.Object{"matchLabels": k8stest.Object{"app": "kept"}}},
	})
	kept, free := cluster.Create(pod("kept")), cluster.Create(pod("free"))
	if gone, err := c.Evict(ctx, kept); gone || err != nil || cluster.Get(pod("kept")) == nil {
		t.Errorf("a budget that says no: %v, %v", gone, err)
	}
	other := free.DeepCopy()
	other.SetUID("of-an-earlier-pod")
	if gone, err := c.Evict(ctx, other); !gone || err != nil || cluster.Get(pod("free")) == nil {
		t.Errorf("another pod of that name: %v, %v", gone, err)
	}
	if gone, err := c.Evict(ctx, free); !gone || err != nil {
		t.Errorf("%v, %v", gone, err)
	}
	if left := cluster.Get(pod("free")); left != nil && left.GetDeletionTimestamp() == nil {
		t.Errorf("it stays: %v", left.Object["metadata"])
	}
	cluster.Remove(pod("free"))
	if gone, err := c.Evict(ctx, free); !gone || err != nil {
		t.Errorf("a pod that has gone: %v, %v", gone, err)
	}
	if err := c.Delete(ctx, k8s.Pod, kept); !k8s.IsForbidden(err) {
		t.Errorf("it deletes pods: %v", err)
	}
}
