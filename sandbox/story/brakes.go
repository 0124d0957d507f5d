package story

import "time"

// Brakes freezes and pauses a rack while another of its parameters is wrong. Each brake is in force within one pass, in the
// cluster and in the status, and taken off in the same way.
func Brakes(t *Teller) {
	const (
		budgets = `kubectl get nodepools -o json | python3 -c 'import json,sys
for p in json.load(sys.stdin)["items"]: print(p["metadata"]["name"], *[b["nodes"] for b in p["spec"]["disruption"]["budgets"]], end="; ")'`
		free, frozen = "build 10%; workload 10%;", "build 0; workload 10% 0;"
		limit        = "kubectl get nodepool workload -o jsonpath='{.spec.limits.cpu}'"
		brakes       = status + ` | python3 -c 'import json,sys; print(*json.load(sys.stdin).get("brakes", []))'`
		wrong        = status + ` | python3 -c 'import json,sys; print(*[p["parameter"] for p in json.load(sys.stdin).get("problems", [])])'`
	)
	rejected := func(problems, inForce string) {
		t.Until("what the status says is in force", brakes, inForce, time.Minute)
		t.Until("the pass has ended", running, "0", time.Minute)
		t.Check("status", state, "Rejected")
		t.Check("its problems", wrong, problems)
	}
	t.Chapter("A freeze while another parameter is wrong")
	t.Check("disruption budgets", budgets, free)
	t.Type(put + "karpenter_cpu_limit --value many --type String")
	t.Until("status", state, "Rejected", time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Type(put + "karpenter_memory_limit_gb --value 7 --type String")
	t.Type(put + "karpenter_freeze --value true --type String")
	t.Until("disruption budgets", budgets, frozen, time.Minute)
	rejected("karpenter_cpu_limit", "karpenter_freeze")
	t.Contains("the sentence", status, "the freeze is in force")
	t.Check("NodePool's CPU limit", limit, "100")
	t.Type(put + "karpenter_freeze --value false")
	t.Until("disruption budgets", budgets, free, time.Minute)
	rejected("karpenter_cpu_limit", "")

	t.Chapter("Paused while another parameter is wrong")
	t.Type(put + "paused --value true --type String")
	rejected("karpenter_cpu_limit", "paused")
	t.Type("aws events disable-rule --name demo-karpenter")
	t.Type(put + "karpenter_freeze --value true")
	t.Until("the sentence", status+" | grep -c 'the freeze is not in force, because the rack is paused'", "1", time.Minute)
	t.Check("request", fullPass, "0")
	t.wait(8 * time.Second)
	t.Until("the pass has ended", running, "0", time.Minute)
	rejected("karpenter_cpu_limit", "paused")
	t.Check("the rule is not repaired", queueRule, "DISABLED")
	t.Check("disruption budgets", budgets, free)

	t.Chapter("No pause any more")
	t.Type(put + "paused --value false")
	t.Until("disruption budgets", budgets, frozen, time.Minute)
	rejected("karpenter_cpu_limit", "karpenter_freeze")
	t.Check("request", fullPass, "0")
	t.Until("a full pass has repaired the rule", queueRule, "ENABLED", time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)

	t.Chapter("A brake with a bad value stays as it is")
	t.Type(put + "karpenter_freeze --value yes")
	t.Until("its problems", wrong, "karpenter_cpu_limit karpenter_freeze", time.Minute)
	rejected("karpenter_cpu_limit karpenter_freeze", "karpenter_freeze")
	t.Check("disruption budgets", budgets, frozen)

	t.Chapter("All is as it was")
	for _, name := range []string{"karpenter_cpu_limit", "karpenter_memory_limit_gb", "karpenter_freeze", "paused"} {
		t.Type(put + name + " --value unset")
	}
	t.Until("status", state, "Reconciled", 2*time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Check("disruption budgets", budgets, free)
	t.Check("what the status says is in force", brakes, "")
}
