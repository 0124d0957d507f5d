package story

import "time"

// HandEdits changes and deletes by hand what Sawhorse made: a full pass puts it back and says so. What others made stays as it is.
func HandEdits(t *Teller) {
	const (
		limit  = "kubectl get nodepool workload -o jsonpath='{.spec.limits.cpu}'"
		class  = `kubectl get ec2nodeclass workload -o jsonpath='{.status.conditions[?(@.type=="Ready")].status}' --ignore-not-found`
		rule   = "aws events describe-rule --name demo-karpenter --query State --output text 2>/dev/null || true"
		target = "aws events list-targets-by-rule --rule demo-karpenter --query 'Targets[].Arn' --output text"
		theirs = "kubectl get nodepool theirs -o jsonpath='{.metadata.uid} {.metadata.generation} {.metadata.labels} {.metadata.annotations} {.spec}'"
	)
	t.Chapter("Somebody has been at it")
	t.Until("nodes of NodePools (a class in use would stay)", nodes, "", 2*time.Minute)
	t.Type(poolOf("theirs"))
	t.Until("NodePool theirs is Ready", `kubectl get nodepool theirs -o jsonpath='{.status.conditions[?(@.type=="Ready")].status}'`, "True", time.Minute)
	untouched := t.Ask(theirs)
	t.Check("NodePool's CPU limit", limit, "100")
	t.Type(`kubectl patch nodepool workload --type merge -p '{"spec":{"limits":{"cpu":"7"}}}'`)
	t.Type("kubectl delete ec2nodeclass workload --timeout=60s")
	t.Type("aws events remove-targets --rule demo-karpenter --ids queue && aws events delete-rule --name demo-karpenter")
	t.Check("rule", rule, "")

	t.Chapter("A full pass puts it back, and says so")
	t.Check("request", fullPass, "0")
	t.Until("NodePool's CPU limit", limit, "100", time.Minute)
	t.Until("EC2NodeClass workload is Ready", class, "True", time.Minute)
	t.Until("NodePool workload is Ready", ready, "True", time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Check("rule", rule, "ENABLED")
	t.Check("its target", target, "arn:aws:sqs:us-east-1:000000000000:demo-karpenter")
	t.Check("status", state, "Reconciled")
	t.Contains("the status tells of the limit", status, "NodePool/workload was changed by somebody else")
	t.Contains("of the class", status, "EC2NodeClass/workload created")
	t.Contains("of the rule", status, "rule demo-karpenter created")
	t.Check("NodePool theirs", theirs, untouched)
	t.Type("kubectl delete nodepool theirs")
}
