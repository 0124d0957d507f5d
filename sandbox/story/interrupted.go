package story

import (
	"fmt"
	"slices"
	"time"
)

// Interrupted turns Karpenter off while a pass is still turning it on.
func Interrupted(s *Script) {
	s.Chapter("Off while a pass is enabling", func() {
		s.Put("karpenter_auth_mode", "true")
		s.Put("karpenter_enabled", "true")
		s.Until("Karpenter's Deployment", controllerName, "deployment.apps/karpenter", 3*time.Minute)
		s.Put("karpenter_enabled", "false")
		s.Contains("the waiting step ends early", "sawhorse watch demo", "superseded")
		s.Reconciled()
		withoutKarpenter(s)
	})
}

// OnWhileDraining turns Karpenter on again while a node still drains. The pool is created again, the draining node is
// deleted, and its pod gets another node.
func OnWhileDraining(s *Script) {
	stubborn := app{
		name: "stubborn", replicas: 1, cpu: "50m", more: `annotations: {karpenter.sh/do-not-disrupt: "true"}`,
		spec: "nodeSelector: {convox.io/nodepool: workload}\n      terminationGracePeriodSeconds: 1",
	}
	claim := ""
	s.Chapter("A node with a pod that nothing moves", func() {
		stubborn.start(s)
		claim = s.Output("kubectl get nodeclaims -o jsonpath='{.items[0].metadata.name}'")
	})

	s.Chapter("Off, and on again while it drains", func() {
		s.Say("The pod fits on no other node, so off has to be forced.")
		s.Put("karpenter_enabled", "false")
		s.Rejected()
		s.Force("room")
		s.Await("its NodeClaim drains", func() string {
			drains := slices.ContainsFunc(nodeClaims(s).Items, func(c nodeClaim) bool { return c.Metadata.DeletionTimestamp != "" })
			return fmt.Sprint(drains)
		}, "true", time.Minute)
		s.Put("karpenter_enabled", "true")
		s.Contains("the waiting step ends early", "sawhorse watch demo", "superseded")
		s.Reconciled()
		s.Check("NodePool workload is Ready", ready, "True")
		s.Check("Cluster Autoscaler's replicas", autoscalerReplicas, "0")
		s.Until("NodeClaim "+claim, "kubectl get nodeclaim "+claim+" -o name --ignore-not-found", "", 2*time.Minute)
		s.Until("pods of stubborn that run", stubborn.runs(), "1", time.Minute)
		s.Check("the NodePool of its node", stubborn.where(), "workload")
		stubborn.end(s)
	})
}
