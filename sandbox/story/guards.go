package story

import (
	"fmt"
	"time"
)

// Guards asks for what must not be done unasked: off while the pods of Karpenter's nodes fit nowhere else, and while there is
// a NodePool that Sawhorse did not make. Both are refused with what to do, nothing changes, and force goes on.
func Guards(t *Teller) {
	const (
		pools = "kubectl get nodepools,ec2nodeclasses,nodeclaims -o jsonpath='{range .items[*]}{.kind} {.metadata.name} {.metadata.deletionTimestamp}{\"\\n\"}{end}' | sort | paste -sd,"
	)
	autoscalerBefore := asBefore(t)
	t.Chapter("Off, where the pods would have no place")
	crowd.start(t)
	t.Type("kubectl wait nodeclaims --all --for=condition=Registered --timeout=30s")
	untouched := t.Ask(pools)
	t.Type(turnOff)
	t.Until("status", state, "Rejected", time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Contains("it says what is missing", status, "cpu")
	t.Contains("and how to go on", status, `\"force\": true`)
	t.Check("NodePools, EC2NodeClasses and NodeClaims", pools, untouched)
	t.Check("pods of orders that run", crowd.runs(), "3")

	t.Chapter("Off, where others have a NodePool")
	t.Type(poolOf("theirs"))
	t.Check("request", fullPass, "0")
	t.Until("it names the NodePool", status+" | grep -c 'NodePool/theirs\\|theirs'", "1", time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Check("status", state, "Rejected")

	t.Chapter("Off, all the same")
	t.Check("request", forced, "0")
	t.Until("NodePools", "kubectl get nodepools -o name", "nodepool.karpenter.sh/theirs", time.Minute)
	t.Until("the pass has ended", running, "0", 3*time.Minute)
	t.Check("status", state, "Reconciled")
	t.Contains("the status tells of the pods", status, "Pods without a place stay Pending")
	t.Contains("and of the NodePool", status, "theirs")
	crowd.end(t)
	t.Type("kubectl delete nodepool theirs")
	withoutKarpenter(t, autoscalerBefore)
}

// poolOf is the command that makes a NodePool that Sawhorse did not make.
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
