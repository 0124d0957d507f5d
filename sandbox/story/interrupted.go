package story

import "time"

// Interrupted changes its mind: off while a pass is still enabling, and on again while a node drains.
func Interrupted(t *Teller) {
	const deploying = "kubectl -n kube-system get deployment karpenter -o name --ignore-not-found"
	autoscalerBefore := t.Ask(autoscaler)

	t.Chapter("Off while a pass is enabling")
	t.Type(put + "karpenter_auth_mode --value true --type String > /dev/null")
	t.Type(turnOn)
	t.Until("Karpenter's Deployment", deploying, "deployment.apps/karpenter", time.Minute)
	t.Type(turnOff)
	t.Contains("the waiting step ends early", "sawhorse watch demo", "superseded")
	t.Check("status", state, "Reconciled")
	withoutKarpenter(t, autoscalerBefore)

	t.Chapter("On again while a node drains")
	on(t)
	single.start(t)
	was := t.Ask(claims)
	t.Type(turnOff)
	t.Until("its NodeClaim drains", `kubectl get nodeclaims -o jsonpath='{.items[*].metadata.deletionTimestamp}' | grep -c Z || true`, "1", time.Minute)
	t.Type(turnOn)
	t.Contains("the waiting step ends early", "sawhorse watch demo", "superseded")
	t.Check("status", state, "Reconciled")
	t.Check("NodePool workload is Ready", ready, "True")
	t.Check("Cluster Autoscaler's replicas", "kubectl -n kube-system get deployment cluster-autoscaler -o jsonpath='{.spec.replicas}'", "0")
	t.Check("build group (min, desired, max)", buildGroup, "0 0 3")
	t.Until("the pod has a node again", single.runs(), "1", time.Minute)
	t.Check("the NodeClaim of before", "kubectl get "+was+" -o name --ignore-not-found", "")
	single.end(t)
}
