package story

import (
	"fmt"
	"time"
)

// Guards turns Karpenter off while the pods on Karpenter's nodes fit nowhere else, and while there is a NodePool that
// Sawhorse did not make. Both are rejected with a remedy before any call that writes. force overrides them.
func Guards(t *Teller) {
	const (
		pools = "kubectl get nodepools,ec2nodeclasses " +
			"-o jsonpath='{range .items[*]}{.kind} {.metadata.name} {.metadata.deletionTimestamp}{\"\\n\"}{end}' | sort | paste -sd,"
	)
	autoscalerBefore := asBefore(t)
	t.Chapter("Off, where the pods would have no place")
	system := t.Ask(systemGroup)
	crowd.start(t)
	t.Type("kubectl wait nodeclaims --all --for=condition=Registered --timeout=30s")
	untouched := t.Ask(pools)
	t.Type(countAnew)
	t.Type(turnOff)
	t.Until("status", state, "Rejected", time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Check("calls of the functions that write, beside their own records", changing, "")
	t.Check("Cluster Autoscaler's replicas", scale("kube-system/cluster-autoscaler"), "0")
	t.Check("build group (min, desired, max)", buildGroup, "0 0 3")
	t.Check("system group (min, desired, max)", systemGroup, system)
	t.Type("sawhorse status demo || true")
	t.Contains("it says what is missing", status, "cpu")
	t.Contains("and how to go on", status, `\"force\": true`)
	t.Check("NodePools and EC2NodeClasses", pools, untouched)
	t.Check("pods of orders that run", crowd.runs(), "3")

	t.Chapter("Off, where others have a NodePool")
	t.Type(poolOf("theirs"))
	t.Check("request", event, "0")
	t.Until("it names the NodePool", status+" | grep -c 'theirs'", "1", time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Check("status", state, "Rejected")
	t.Check("calls of the functions that write, beside their own records", changing, "")

	t.Chapter("Off, all the same")
	t.Check("request", forced, "0")
	t.Check("what the pass tells of",
		"sawhorse watch demo | grep -o 'Pods without a place stay Pending\\|did not make: theirs' | LC_ALL=C sort -u | paste -sd,",
		"Pods without a place stay Pending,did not make: theirs")
	t.Until("NodePools", "kubectl get nodepools -o name", "nodepool.karpenter.sh/theirs", time.Minute)
	t.Until("the pass has ended", running, "0", 3*time.Minute)
	t.Check("status", state, "Reconciled")
	crowd.end(t)
	t.Type("kubectl delete nodepool theirs")
	withoutKarpenter(t, autoscalerBefore)
}

const (
	// countAnew resets the counts of the calls that Sawhorse's functions make to AWS and to the API server. changing
	// prints those that write, except for records, the status, events and the start of passes.
	countAnew = `curl -s -X PUT "$AWS_ENDPOINT_URL/_sandbox/faults" -d '[]'`
	changing  = `curl -s "$AWS_ENDPOINT_URL/_sandbox/faults" | python3 -c '
import json, sys
reading = ("assume", "batchget", "describe", "get", "head", "list", "query", "receive", "scan", "watch")
own = {("dynamodb", "PutItem"), ("dynamodb", "UpdateItem"), ("events", "PutEvents"), ("states", "StartExecution")}
for c in json.load(sys.stdin)["calls"]:
    record = (c["service"], c["action"]) in own or c["function"] == "report"
    if c["function"] and not record and not c["action"].lower().startswith(reading):
        print(c["function"], c["service"], c["action"], c["count"])'`
	systemGroup = "aws eks describe-nodegroup --cluster-name demo --nodegroup-name system " +
		"--query 'nodegroup.scalingConfig.[minSize,desiredSize,maxSize]' --output text | tr '\\t' ' '"
)

// poolOf returns the command that creates a NodePool that Sawhorse did not make.
func poolOf(name string) string {
	return fmt.Sprintf(`kubectl apply --server-side -f - <<'EOF'
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: %s, labels: {team: theirs}}
spec:
  limits: {cpu: "3"}
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: workload}
      requirements: [{key: kubernetes.io/arch, operator: In, values: [amd64]}]
EOF`, name)
}
