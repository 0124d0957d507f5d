package nodepools

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/readonly"
)

func tainted(name, pool string, taints ...any) object {
	return object{"apiVersion": "v1", "kind": "Node", "metadata": object{"name": name, "labels": object{ownership.LabelPool: pool}},
		"spec": object{"taints": taints}}
}

// retires begins with the applied pools gpu and workload, and takes gpu out of the plan.
func retires(t *testing.T, gpu object) (s *scene, with, without []object) {
	wclass, wpool := class("workload", "demo"), budgeted("workload", "100", "10%")
	gclass := class(gpu["metadata"].(object)["name"].(string), "demo")
	s = begin(t, gclass, wclass, gpu, wpool)
	with, without = s.plan.NodePools.Objects, []object{wclass, wpool}
	if _, err := s.step.Run(t.Context(), s.plan, ""); err != nil {
		t.Fatal(err)
	}
	s.ready(with...)
	s.done()
	s.plan.NodePools.Objects = without
	return s, with, without
}

// retiring returns the taints of the template, the limits, the label and the budgets of a NodePool.
func (s *scene) retiring(name string) string {
	s.Helper()
	live := s.Get(pool(name, "demo", ""))
	taints, _, _ := unstructured.NestedSlice(live.Object, "spec", "template", "spec", "taints")
	limits, _, _ := unstructured.NestedMap(live.Object, "spec", "limits")
	return fmt.Sprintf("%v %v %q %v", taints, limits, live.GetLabels()[ownership.Retiring], budgets(live.Object))
}

func (s *scene) taints(name string) string {
	s.Helper()
	taints, _, _ := unstructured.NestedSlice(s.Get(tainted(name, "")).Object, "spec", "taints")
	var keys []any
	for _, taint := range taints {
		if key := taint.(map[string]any)["key"]; key != "node.kubernetes.io/not-ready" { // the API server adds it
			keys = append(keys, key)
		}
	}
	return fmt.Sprint(keys)
}

// audited reports whether an audit would find the step due.
func (s *scene) audited() bool {
	s.Helper()
	audit := *s.step
	audit.Connect = k8s.ReadOnly(s.step.Connect)
	_, err := audit.Run(context.Background(), s.plan, "")
	if err != nil && !errors.Is(err, readonly.ErrWouldWrite) {
		s.Fatal(err)
	}
	return err != nil
}

// A pool that the plan does not have any more keeps its NodePool until its last node is gone. Until then it launches nothing,
// and neither its template nor its nodes take further pods.
func TestRetire(t *testing.T) {
	gpu := budgeted("gpu", "8", "10%")
	gpu["spec"].(object)["limits"] = object{"cpu": "8", "memory": "32Gi"}
	gpu["spec"].(object)["template"].(object)["spec"].(object)["taints"] = []any{object{"key": "nvidia.com/gpu", "effect": "NoSchedule"}}
	s, with, without := retires(t, gpu)
	own, taint := "map[effect:NoSchedule key:nvidia.com/gpu]", "map[effect:NoSchedule key:sawhorse.dev/retiring]"
	retired := "[" + own + " " + taint + "] map[cpu:0 memory:32Gi] \"true\" [map[nodes:10%]]"
	s.Create(claim("gpu-1", "gpu", nil))
	s.Create(tainted("gpu-1", "gpu", object{"key": "nvidia.com/gpu", "effect": "NoSchedule"}))
	s.Create(tainted("gpu-2", "gpu"))
	s.Create(tainted("workload-1", "workload"))

	s.done("updated NodePool/gpu", "tainted Node/gpu-1", "tainted Node/gpu-2")
	if got := s.retiring("gpu"); got != retired {
		t.Errorf("gpu has %s, want %s", got, retired)
	}
	if got := s.taints("gpu-1") + s.taints("gpu-2") + s.taints("workload-1"); got !=
		"[nvidia.com/gpu sawhorse.dev/retiring][sawhorse.dev/retiring][]" {
		t.Errorf("the nodes have the taints %s", got)
	}

	t.Log("once; an audit finds nothing to do but where somebody has taken something back")
	s.done()
	if s.audited() {
		t.Error("an audit finds something to do")
	}
	s.Create(tainted("gpu-3", "gpu"))
	if !s.audited() {
		t.Error("an audit does not find a node without the taint")
	}
	s.done("tainted Node/gpu-3")

	t.Log("a freeze lies over it too, and is taken off it")
	s.plan.NodePools.Frozen = true
	s.freeze()
	s.ready(without...)
	frozen := "[" + own + " " + taint + "] map[cpu:0 memory:32Gi] \"true\" [map[nodes:10%] map[nodes:0]]"
	if got := s.retiring("gpu"); got != frozen {
		t.Errorf("frozen gpu has %s, want %s", got, frozen)
	}
	s.done()
	s.plan.NodePools.Frozen = false
	s.freeze()
	s.ready(without...)

	t.Log("Kubernetes does not take it back as a static one: its nodes keep the taint")
	fixed := budgeted("gpu", "8", "10%")
	fixed["spec"].(object)["replicas"] = int64(2)
	s.plan.NodePools.Objects = []object{with[0], with[1], fixed, with[3]}
	var rejected *outcome.Rejected
	if _, err := s.step.Run(t.Context(), s.plan, ""); !errors.As(err, &rejected) || rejected.Problems[0].Parameter != params.ParamAdditional {
		t.Errorf("a static pool in its place: %v", err)
	}
	if got := s.taints("gpu-1"); got != "[nvidia.com/gpu sawhorse.dev/retiring]" {
		t.Errorf("the node has the taints %s", got)
	}

	t.Log("put back, it is as it was, and so are its nodes")
	s.plan.NodePools.Objects = with
	s.waits("", "taint removed Node/gpu-1", "taint removed Node/gpu-2", "taint removed Node/gpu-3", "updated NodePool/gpu")
	s.ready(with...)
	s.done()
	if got, want := s.retiring("gpu"), "["+own+"] map[cpu:8 memory:32Gi] \"\" [map[nodes:10%]]"; got != want {
		t.Errorf("gpu has %s, want %s", got, want)
	}
	if got := s.taints("gpu-1") + s.taints("gpu-2"); got != "[nvidia.com/gpu][]" {
		t.Errorf("the nodes have the taints %s", got)
	}

	t.Log("it goes with its last NodeClaim")
	s.plan.NodePools.Objects = without
	s.done("updated NodePool/gpu", "tainted Node/gpu-1", "tainted Node/gpu-2", "tainted Node/gpu-3")
	s.Remove(claim("gpu-1", "gpu", nil))
	if !s.audited() {
		t.Error("an audit does not find a pool without nodes")
	}
	s.done("deleted NodePool/gpu", "deleted EC2NodeClass/gpu")
}

// The build pool only stops launching: its nodes end when their builds have.
func TestRetireTheBuildPool(t *testing.T) {
	s, _, _ := retires(t, pool("build", "demo", "8"))
	s.Create(claim("build-1", "build", nil))
	s.Create(tainted("build-1", "build"))
	s.done("updated NodePool/build")
	if got := s.retiring("build") + s.taints("build-1"); got != "[] map[cpu:0] \"true\" [map[nodes:10%]][]" {
		t.Errorf("build has %s", got)
	}
	s.Remove(claim("build-1", "build", nil))
	s.done("deleted NodePool/build", "deleted EC2NodeClass/build")
}

// The word with the name of another pool, or of one that the plan has, deletes nothing.
func TestRetireByForce(t *testing.T) {
	s, _, _ := retires(t, pool("gpu", "demo", "8"))
	s.Create(claim("gpu-1", "gpu", nil))
	s.plan.Force = events.Force{"retire:workload", "retire:gp", "retire:"}
	s.done("updated NodePool/gpu")
	s.plan.Force = events.Force{"retire:gpu"}
	s.done("deleted NodePool/gpu", "deleted EC2NodeClass/gpu")
}

// A static pool takes no limit of cpu, by which others retire. It was judged before, so it is deleted.
func TestRetireAStaticPool(t *testing.T) {
	gpu := pool("gpu", "demo", "8")
	spec := gpu["spec"].(object)
	delete(spec, "limits")
	spec["replicas"] = int64(2)
	s, _, _ := retires(t, gpu)
	s.Create(claim("gpu-1", "gpu", nil))
	s.done("deleted NodePool/gpu", "deleted EC2NodeClass/gpu")
}
