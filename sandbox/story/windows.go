package story

import (
	"fmt"
	"time"
)

// Windows blocks Karpenter in a window of now, and lets it replace a node in one that is open now. Then NodeOverlays come
// and go.
func Windows(s *Script) {
	const (
		overlay = `[{"name":"prefer-large","requirements":[{"key":"karpenter.k8s.aws/instance-size","operator":"In","values":["large"]}],` +
			`"priceAdjustment":"-5%"},{"name":"fuse","requirements":[],"capacity":{"example.com/fuse":"2"}}]`
		gate = "kubectl -n kube-system get deployment karpenter -o jsonpath='{.spec.template.spec.containers[0].env}' | " +
			"grep -o 'NodeOverlay=[a-z]*'"
		ready = `kubectl get nodeoverlays -o jsonpath='{range .items[*]}{.metadata.name} {.status.conditions[?(@.type=="Ready")].status};{end}'`
	)
	began := time.Now().UTC()
	s.Chapter("In a blocked time a drifted node stays", func() {
		s.Reconciled(s.Change(map[string]string{
			"karpenter_disruption_block_schedule": fmt.Sprintf("%d %d * * *", began.Minute(), began.Hour()),
			"karpenter_disruption_block_duration": "23h",
		}))
		s.Until("the first nodes have gone", nodes, "", 3*time.Minute) // empty nodes do, in a blocked time too
		s.Reconciled(s.Put("karpenter_consolidate_after", "1h"))
		s.Check("disruption budgets", poolBudgets, "build 10% 0;workload 10% 0;")
		s.Says("Karpenter's expiry reads no budgets: nodes of build or workload expire in the blocked times too")
		single.start(s)
		node := s.Output(single.node())
		s.Reconciled(s.Put("karpenter_node_labels", "team=web"))
		s.Await("Karpenter finds the node drifted", func() string { return drifted(s) }, "true", time.Minute)
		spared(s)
		s.Check("the pod's node", single.node(), node)
		lookAtNodes(s)
		s.Equal("pool workload", s.Status().pool("workload"), "1 nodes, ready true, 1 outdated")
	})

	s.Chapter("In a window that is open it is replaced", func() {
		open := fmt.Sprintf("MON-SUN %s-%s", began.Add(-time.Hour).Format("15:04"), began.Add(2*time.Hour).Format("15:04"))
		s.Reconciled(s.Change(map[string]string{"karpenter_disruption_window": open},
			"karpenter_disruption_block_schedule", "karpenter_disruption_block_duration"))
		s.Await("drifted nodes", func() string { return drifted(s) }, "false", 3*time.Minute)
		s.Reconciled(s.Change(nil, "karpenter_disruption_window"))
	})

	s.Chapter("NodeOverlays, with their feature gate", func() {
		s.Reconciled(s.Put("karpenter_node_overlays_config", overlay))
		s.Check("feature gate", gate, "NodeOverlay=true")
		s.Check("NodeOverlays", ready, "fuse True;prefer-large True;")
		s.Unset("karpenter_node_overlays_config")
		s.Reconciled()
		s.Check("feature gate", gate, "NodeOverlay=false")
		s.Check("NodeOverlays", ready, "")
	})

	s.Chapter("Back to the defaults", func() {
		single.end(s)
		s.Reconciled(s.Change(nil, "karpenter_consolidate_after", "karpenter_node_labels"))
		s.Until("nodes of NodePools", nodes, "", 3*time.Minute)
	})
}
