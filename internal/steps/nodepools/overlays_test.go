package nodepools

import (
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/plan"
)

func overlay(name, rack, adjustment string) object {
	return object{"apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay", "metadata": meta(name, rack), "spec": object{
		"requirements":    []any{object{"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": []any{"c7g"}}},
		"priceAdjustment": adjustment}}
}

// NodeOverlays come before the NodePools that they are for, go when the plan does not have them any more, and with Karpenter.
func TestOverlays(t *testing.T) {
	wclass, wpool, cheap, dear := class("workload", "demo"), pool("workload", "demo", "100"), overlay("cheap", "demo", "-10%"),
		overlay("dear", "demo", "+10%")
	s := begin(t, wclass, wpool)
	t.Cleanup(func() {
		for _, left := range s.List("karpenter.sh", "v1alpha1", "nodeoverlays") {
			s.Remove(left.Object)
		}
	})
	s.plan.Access.Rights = plan.Rights()
	s.plan.NodePools.Overlays = []object{cheap, dear}
	theirs := s.Create(overlay("theirs", "", "-5%"))
	s.waits("NodeOverlay/dear: its controller has not looked at it yet", "created EC2NodeClass/workload", "created NodeOverlay/cheap",
		"created NodeOverlay/dear", "created NodePool/workload")
	s.ready(wclass, wpool, cheap)
	s.condition(dear, "False", "conflict with another overlay")
	s.waits("NodeOverlay/dear: Ready=False Test conflict with another overlay")
	s.ready(dear)
	s.done()
	s.done()

	t.Log("changes and deletes only what changed and is ours")
	s.plan.NodePools.Overlays = []object{overlay("cheap", "demo", "-20%")}
	s.waits("NodeOverlay/cheap", "deleted NodeOverlay/dear", "updated NodeOverlay/cheap")
	s.ready(cheap)
	s.done()

	t.Log("a plan of an earlier release does not know them, and has no right to list them")
	s.plan.Access.Rights, s.plan.NodePools.Overlays = nil, nil
	s.done()
	s.plan.Access.Rights = plan.Rights()

	t.Log("with Karpenter off")
	s.plan.NodePools = plan.NodePools{}
	s.waits("NodePool/workload: being deleted", "deleted NodePool/workload")
	s.waits("EC2NodeClass/workload: being deleted", "deleted EC2NodeClass/workload")
	s.done("deleted NodeOverlay/cheap")
	if s.Get(theirs.Object) == nil {
		t.Error("a NodeOverlay of somebody else was deleted")
	}
}

// A name that somebody else's NodeOverlay has is told before anything is changed.
func TestAnOverlayOfSomebodyElse(t *testing.T) {
	s := begin(t, class("workload", "demo"), pool("workload", "demo", "100"))
	s.plan.NodePools.Overlays = []object{overlay("cheap", "demo", "-10%")}
	theirs := s.Create(overlay("cheap", "", "-5%"))
	defer s.Remove(theirs.Object)
	if _, err := s.step.Run(t.Context(), s.plan, ""); err == nil || s.Get(class("workload", "")) != nil {
		t.Errorf("the error is %v", err)
	}
}
