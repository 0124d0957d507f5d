package story

import (
	"fmt"
	"time"
)

// Commands about the nodes that follow a pass.
const (
	// lookAtNodes has the function rollout look at the nodes, as its schedule does every five minutes.
	lookAtNodes = "aws lambda invoke --function-name Sawhorse-rollout --payload '{}' /dev/stdout --query StatusCode"
	// workloadPool prints what the status says of the pool workload: nodes, ready, outdated.
	workloadPool = status + ` | python3 -c 'import json,sys
print(*(x for p in json.load(sys.stdin).get("pools", []) if p["pool"] == "workload" for x in (p["nodes"], p["ready"], p["outdated"])))'`
	// rolledOut prints whether the nodes have followed the generation of the status.
	rolledOut = status + ` | python3 -c 'import json,sys; print("ended" in json.load(sys.stdin).get("rollout", {}))'`
	rollouts  = `"$(aws sqs get-queue-url --queue-name rollouts --query QueueUrl --output text)"`
	// nextRollout prints the rack and the pools of the next event Rack Rolled Out, and nothing if there is none.
	nextRollout = `aws sqs receive-message --queue-url ` + rollouts + ` --query 'Messages[0].Body' --output text | python3 -c 'import json,sys
text = sys.stdin.read().strip()
if text not in ("", "None"):
    detail = json.loads(text)["detail"]
    print(detail["rack"], *(p["pool"] + "=" + str(p["nodes"]) for p in detail["pools"]), detail["durationSeconds"] > 0)'`
)

// Rollout changes a pool so that Karpenter replaces its node, and follows that to its end. Then a pool stops being Ready.
func Rollout(t *Teller) {
	const (
		// The new node may cost more than the old one, and Karpenter would soon replace it by a cheaper one.
		settings = `{"rack":"demo","set":{"karpenter_disruption_budget_nodes":"0","karpenter_consolidate_after":"1h"}}`
		back     = `{"rack":"demo","unset":["karpenter_disruption_budget_nodes","karpenter_consolidate_after","karpenter_node_labels"]}`
		ready    = `kubectl get ec2nodeclass workload -o jsonpath='{.status.conditions[?(@.type=="Ready")].status}'`
		selector = `kubectl patch ec2nodeclass workload --type merge ` +
			`-p '{"spec":{"subnetSelectorTerms":[{"tags":{"karpenter.sh/discovery":"nowhere"}}]}}'`
		alarmed = `aws logs filter-log-events --log-group-name /aws/lambda/Sawhorse-rollout --query 'events[].message' --output text ` +
			`| grep -c '"DegradedRacks":1' || true`
	)
	t.Chapter("A node, and nothing that may be disrupted")
	t.Type(`aws sqs create-queue --queue-name rollouts --attributes '{"Policy":"{\"Statement\":{\"Effect\":\"Allow\",` +
		`\"Principal\":{\"Service\":\"events.amazonaws.com\"},\"Action\":\"sqs:SendMessage\",\"Resource\":\"*\"}}"}' --query QueueUrl`)
	t.Type(`aws events put-rule --event-bus-name sawhorse --name rollouts --event-pattern '{"source":["sawhorse"],` +
		`"detail-type":["Rack Rolled Out"]}' --query RuleArn`)
	t.Type(`aws events put-targets --event-bus-name sawhorse --rule rollouts ` +
		`--targets "Id=queue,Arn=$(aws sqs get-queue-attributes --queue-url ` + rollouts +
		` --attribute-names QueueArn --query Attributes.QueueArn --output text)" --query FailedEntryCount`)
	request(t, settings)
	t.Until("the budget", "kubectl get nodepool workload -o jsonpath='{.spec.disruption.budgets[0].nodes}'", "0", time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	single.start(t)

	t.Chapter("A change makes the node outdated")
	t.Type(put + "karpenter_node_labels --type String --value team=web")
	t.Type("sawhorse watch demo")
	t.Check("the nodes have not followed yet", rolledOut, "False")
	drifted := claim + `'{.items[*].status.conditions[?(@.type=="Drifted")].status}'`
	t.Until("Karpenter finds it drifted", drifted, "True", time.Minute)
	t.Type(lookAtNodes)
	t.Check("nodes, ready, outdated", workloadPool, "1 True 1")
	t.Check("status", state, "Reconciled")
	t.Check("the nodes have not followed yet", rolledOut, "False")
	t.Contains("sawhorse status", "sawhorse status demo", "pool     workload  1 node, 1 outdated since 20")

	t.Chapter("Karpenter replaces it, and an event tells of the end")
	t.Ask("aws sqs purge-queue --queue-url " + rollouts)
	request(t, `{"rack":"demo","unset":["karpenter_disruption_budget_nodes"]}`)
	t.Until("Karpenter replaces it", drifted+` | grep -c True || true`, "0", 3*time.Minute)
	t.Until("one node is left", "kubectl get nodeclaims -l karpenter.sh/nodepool=workload -o name | wc -l | tr -d ' '", "1", 2*time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	// The nodes are judged when the pass is a minute old.
	t.Until("the nodes have followed", lookAtNodes+" > /dev/null && "+rolledOut, "True", 2*time.Minute)
	t.Check("nodes, ready, outdated", workloadPool, "1 True 0")
	t.Until("the event", nextRollout, "demo build=0 workload=1 True", time.Minute)
	t.Contains("watch --nodes", "sawhorse watch demo --nodes", "the nodes follow generation")
	t.Type(lookAtNodes)
	t.Check("no second event", nextRollout, "")

	t.Chapter("A pool stops being Ready")
	t.Type(selector)
	t.Until("Karpenter finds no subnets", ready, "False", time.Minute)
	t.Type(lookAtNodes)
	t.Check("for a minute that is not told", state, "Reconciled")
	t.Until("then it is", lookAtNodes+" > /dev/null && "+state, "Degraded", 2*time.Minute)
	t.Contains("with Karpenter's reason", status, "SubnetsReady=False")
	t.Refused("sawhorse status demo", "rack demo is Degraded")
	t.Until("the metric of the alarm", fmt.Sprintf(`[ "$(%s)" -gt 0 ] && echo yes || true`, alarmed), "yes", time.Minute)
	t.Say("A full pass puts the class back and waits until it is Ready.")
	repair(t)
	t.Check("status", state, "Reconciled")

	t.Chapter("Back to the defaults")
	single.end(t)
	request(t, back)
	t.Until("nodes of NodePools", nodes, "", 3*time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Check("status", state, "Reconciled")
	t.Type("aws events remove-targets --event-bus-name sawhorse --rule rollouts --ids queue --query FailedEntryCount")
	t.Type("aws events delete-rule --event-bus-name sawhorse --name rollouts")
	t.Type("aws sqs delete-queue --queue-url " + rollouts)
}
