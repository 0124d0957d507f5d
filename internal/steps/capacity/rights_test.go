package capacity

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
	"github.com/sawhorse-io/sawhorse/internal/testing/k8stest"
)

func TestMain(m *testing.M) { k8stest.Main(m) }

// The step works with the rights of its function, on objects as a real API server returns them.
func TestOnARealAPIServer(t *testing.T) {
	cluster, cloud := k8stest.New(t), awsfake.New()
	step := &Step{
		EKS: cloud.EKS, Connect: cluster.Connector("nodegroups"), Baselines: awsfake.NewBaselines(cloud),
		Checkpoints: awsfake.NewCheckpoints(cloud), Written: &store.Store{DB: cloud.Table}, Now: cloud.Now,
	}
	p := &plan.Plan{Rack: "demo", Cluster: plan.Cluster{Name: "demo"}, Nodegroups: plan.Nodegroups{System: []string{"system"}}}
	run := func(wait bool, changes int) {
		t.Helper()
		progress, err := step.Run(t.Context(), p, "capacity")
		if err != nil || len(progress.Changes) != changes || (progress.Wait > 0) != wait {
			t.Errorf("%+v, %v", progress, err)
		}
	}
	run(false, 0) // without CRDs in the cluster
	cluster.InstallCRDs()
	cloud.EKS.Group("system", size(1, 1, 2), nil)
	node := func(name string, labels object) {
		made := object{"apiVersion": "v1", "kind": "Node", "metadata": object{"name": name, "labels": labels}, "status": object{
			"allocatable": object{"cpu": "2", "memory": "8Gi", "pods": "20"}, "conditions": []any{
				object{"type": "Ready", "status": "True"},
			}}}
		cluster.Create(made)
		// The API server taints new nodes as not ready, and no controller runs here that would remove the taint.
		cluster.Change(made, func(o *unstructured.Unstructured) { unstructured.RemoveNestedField(o.Object, "spec", "taints") })
	}
	node("system-1", object{ownership.LabelNodeGroup: "system"})
	node("k", object{ownership.LabelPool: "workload"})
	pod := func(name string) {
		cluster.Create(object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": name, "namespace": "default"},
			"spec": object{"nodeName": "k",
				"containers": []any{object{"name": "c", "image": "i", "resources": object{"requests": object{"cpu": "1500m"}}}}}})
	}
	pod("one")
	run(false, 0)
	pod("two")
	run(true, 1)
	node("system-2", object{ownership.LabelNodeGroup: "system"})
	run(false, 0)
}
