package story

import "time"

// Interrupted turns Karpenter off while a pass is still turning it on.
func Interrupted(t *Teller) {
	autoscalerBefore := t.Ask(autoscaler)

	t.Chapter("Off while a pass is enabling")
	t.Type(put + "karpenter_auth_mode --value true --type String > /dev/null")
	t.Type(turnOn)
	t.Until("Karpenter's Deployment", controllerName, "deployment.apps/karpenter", 3*time.Minute)
	t.Type(turnOff)
	t.Contains("the waiting step ends early", "sawhorse watch demo", "superseded")
	t.Check("status", state, "Reconciled")
	withoutKarpenter(t, autoscalerBefore)
}

// OnWhileDraining turns Karpenter on again while a node still drains. The pool is created again, the draining node is
// deleted, and its pod gets another node.
func OnWhileDraining(t *Teller) {
	const (
		draining = "kubectl get nodeclaims -o jsonpath='{.items[*].metadata.deletionTimestamp}' | grep -c Z"
	)
	t.Chapter("A node with a pod that nothing moves")
	stubborn := app{
		name: "stubborn", replicas: 1, cpu: "50m", more: `annotations: {karpenter.sh/do-not-disrupt: "true"}`,
		spec: "nodeSelector: {convox.io/nodepool: workload}\n      terminationGracePeriodSeconds: 1",
	}
	stubborn.start(t)
	claim := t.Ask("kubectl get nodeclaims -o jsonpath='{.items[0].metadata.name}'")

	t.Chapter("Off, and on again while it drains")
	t.Say("The pod fits on no other node, so off has to be forced.")
	t.Type(turnOff)
	t.Until("status", state, "Rejected", time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Check("request", forced, "0")
	t.Until("NodeClaims that drain", draining, "1", time.Minute)
	t.Type(turnOn)
	t.Contains("the waiting step ends early", "sawhorse watch demo", "superseded")
	t.Until("NodePool workload is Ready", ready, "True", time.Minute)
	t.Check("status", state, "Reconciled")
	t.Check("Cluster Autoscaler's replicas", autoscalerReplicas, "0")
	t.Until("NodeClaim "+claim, "kubectl get nodeclaim "+claim+" -o name --ignore-not-found", "", 2*time.Minute)
	t.Until("pods of stubborn that run", stubborn.runs(), "1", time.Minute)
	t.Check("the NodePool of its node", stubborn.where(), "workload")
	stubborn.end(t)
}
