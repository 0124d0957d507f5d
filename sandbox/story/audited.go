package story

import "time"

const (
	// ticks calls the function resync for the schedule's ticks of an hour, one for each minute, until that of the rack demo.
	// Each rack has one of them.
	ticks = `for minute in $(seq -w 59 -1 0); do aws lambda invoke --function-name Sawhorse-resync ` +
		`--payload '{"detail-type":"Scheduled Resync","time":"2026-01-02T03:'$minute':00Z"}' /dev/stdout --query StatusCode | ` +
		`grep demo && exit 0; done; exit 1`
	// audits prints how many audits of the rack demo have ended.
	audits = `aws logs filter-log-events --log-group-name /aws/lambda/Sawhorse-audit --query 'events[].message' --output text ` +
		`| grep -o '"msg":"audit","function":"audit","rack":"demo"' | wc -l | tr -d ' '`
	// called prints the functions that have made calls since countAnew, without rollout, whose own schedule may call it
	// meanwhile, and audited the calls of the function audit that write.
	called = `curl -s "$AWS_ENDPOINT_URL/_sandbox/faults" | python3 -c '
import json, sys
print(*sorted({c["function"] for c in json.load(sys.stdin)["calls"]} - {"", "state-machine", "rollout"}))'`
	audited = `curl -s "$AWS_ENDPOINT_URL/_sandbox/faults" | python3 -c '
import json, sys
reading = ("assume", "describe", "get", "list", "query")
for c in json.load(sys.stdin)["calls"]:
    if c["function"] == "audit" and not c["action"].lower().startswith(reading):
        print(c["service"], c["action"], c["count"])'`
)

// Audited ticks the schedule for a rack in order: its audit is one call of one function and writes nothing, also while
// the status tells of a change or of an incident. A manual change in AWS and one in the cluster each start a pass of
// just the steps concerned.
func Audited(t *Teller) {
	const (
		limit    = "kubectl get nodepool workload -o jsonpath='{.spec.limits.cpu}'"
		policies = "aws iam list-attached-role-policies --role-name demo-karpenter-nodes " +
			"--query 'sort(AttachedPolicies[].PolicyName)' --output text"
	)
	t.Chapter("A rack in order")
	was := t.Ask(limit)
	t.Type(put + "karpenter_cpu_limit --type String --value 1" + was)
	t.Until("the NodePool has the limit", limit, "1"+was, time.Minute)
	t.Until("no pass runs", running, "0", 2*time.Minute)
	t.Contains("the status tells of the change", status, "pool workload is changed")
	idle(t)

	for _, edit := range []struct{ what, command, restored, called string }{
		{"A manual change in AWS", "aws iam attach-role-policy --role-name demo-karpenter-nodes " +
			"--policy-arn arn:aws:iam::aws:policy/AdministratorAccess",
			policies, "access audit infrastructure report resync"}, // access checks first that nobody else has Karpenter's names
		{"A manual change in the cluster", `kubectl patch nodepool workload --type merge -p '{"spec":{"limits":{"cpu":"7"}}}'`,
			limit, "audit nodepools report resync"},
	} {
		t.Chapter(edit.what)
		was := t.Ask(edit.restored)
		t.Type(edit.command)
		t.Type(countAnew)
		tick(t)
		t.Until("a pass has put it back", edit.restored, was, time.Minute)
		t.Until("the pass has ended", running, "0", time.Minute)
		t.Check("functions that were called", called, edit.called)
		t.Check("status", state, "Reconciled")
	}

	t.Chapter("The status tells what has happened")
	t.Contains("status", status, "NodePool/workload was changed by somebody else")
	idle(t)
	t.Type(put + "karpenter_cpu_limit --type String --value " + was)
	t.Until("the NodePool has its former limit", limit, was, time.Minute)
	t.Until("no pass runs", running, "0", 2*time.Minute)
}

// idle ticks the schedule for a rack in order, and checks that its audit requests no pass and writes nothing.
func idle(t *Teller) {
	t.Type(countAnew)
	before := t.Ask(executions)
	tick(t)
	t.Check("functions that were called", called, "audit resync")
	t.Check("writes of the audit", audited, "")
	t.Check("passes, as before", executions, before)
}

// auditInOrder has the schedule audit the rack between two changes, which needs what a pass needs to read the parameters.
func auditInOrder(t *Teller, why string) {
	t.Until("the pass has ended", running, "0", time.Minute) // an audit skips a rack that a pass holds
	t.Say("%s", why)
	tick(t)
	t.Until("no pass runs", running, "0", 2*time.Minute)
	t.Check("status", state, "Reconciled")
}

// tick ticks the schedule once for the rack demo, and waits until its audit has ended and what it has requested can have
// begun.
func tick(t *Teller) {
	before := t.Ask(audits)
	t.Type(ticks)
	t.Until("the audit has ended", `[ "$(`+audits+`)" -gt `+before+` ] && echo yes || true`, "yes", time.Minute)
	time.Sleep(2 * time.Second)
}
