package story

import "time"

// Interrupted changes its mind: off while a pass is still enabling.
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
}
