package story

import "time"

// QueueRepair disables the rule of the interruption queue, and checks that an ordinary pass repairs it.
func QueueRepair(t *Teller) {
	t.Chapter("Somebody has been at the queue")
	t.Check("rule", queueRule, "ENABLED")
	t.Type("aws events disable-rule --name demo-karpenter")
	t.Check("rule", queueRule, "DISABLED")
	t.Type(`aws events put-events --entries '[{"EventBusName":"sawhorse","Source":"operator","DetailType":"Rack Reconcile Requested",` +
		`"Detail":"{\"rack\":\"demo\"}"}]'`)
	t.Until("an ordinary pass has repaired the rule", queueRule, "ENABLED", time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Contains("the status", status, "rule demo-karpenter repaired")
}
