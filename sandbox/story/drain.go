package story

import (
	"fmt"
	"strings"
	"time"

	"github.com/sawhorse-io/sawhorse/sandbox/chaos/timeline"
)

// Pods that are hard to move. Karpenter deletes a pod one grace period before the drain window ends, so their grace
// periods are short compared with the window. The exception is slow, whose grace period is longer than any window and
// which uses all of it.
var (
	guarded = app{name: "guarded", replicas: 1, cpu: "50m", spec: easy + "\n      terminationGracePeriodSeconds: 1"}
	pinning = app{
		name: "untouchable", replicas: 1, cpu: "50m", more: `annotations: {karpenter.sh/do-not-disrupt: "true"}`,
		spec: easy + "\n      terminationGracePeriodSeconds: 1",
	}
	slow = app{
		name: "slow", replicas: 1, cpu: "50m", more: `annotations: {sandbox.sawhorse.dev/ignores-signals: "true"}`,
		spec: easy + "\n      terminationGracePeriodSeconds: 600",
	}
	plain = app{name: "ordinary", replicas: 1, cpu: "50m", spec: easy}
)

// easy makes a pod prefer NodePool workload, and run on a system node if that pool has none.
const easy = "affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 100, preference: {matchExpressions: " +
	"[{key: convox.io/nodepool, operator: In, values: [workload]}]}}]}}"

// noEviction is a PodDisruptionBudget for guarded that never allows an eviction.
const noEviction = `kubectl apply -f - <<'EOF'
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: guarded, namespace: shop}
spec: {maxUnavailable: 0, selector: {matchLabels: {app: guarded}}}
EOF`

// DrainOff turns Karpenter off while its nodes run pods that cannot be drained: one has a PodDisruptionBudget that
// never allows an eviction, one has the do-not-disrupt annotation, and one takes ten minutes to end. The pass waits for
// the drain window and no longer.
func DrainOff(t *Teller) {
	const (
		deadlines = `kubectl get nodeclaims ` +
			`-o jsonpath='{range .items[*]}{.metadata.annotations.karpenter\.sh/nodeclaim-termination-timestamp}{"\n"}{end}' ` +
			`| sort | tail -1`
		grace = 2 * time.Minute
	)
	autoscalerBefore := asBefore(t)
	stuck := []app{guarded, pinning, slow}
	hard := append(stuck, plain)

	t.Chapter("Nodes with pods that nothing moves")
	single.start(t)
	t.Type(noEviction)
	for _, a := range hard {
		a.start(t)
		t.Check("the NodePool of its node", a.where(), "workload")
	}
	single.end(t)
	claimed := map[string]string{} // app to the NodeClaim of its pod's node
	pod := map[string]string{}
	for _, a := range stuck {
		pod[a.name] = t.Ask(a.pod())
		claimed[a.name] = t.Ask(`kubectl get nodeclaims ` +
			`-o jsonpath='{range .items[*]}{.status.nodeName} {.metadata.name}{"\n"}{end}' | grep "^$(` + a.node() + `) " | cut -d' ' -f2`)
	}

	t.Chapter("Off, all the same")
	began := time.Now()
	t.Type(turnOff)
	t.Until("NodePool workload", "kubectl get nodepools -o name", "", 2*time.Minute)
	end, err := time.Parse(time.RFC3339, t.Ask(deadlines))
	if err != nil {
		t.fail("the NodeClaims have no deadline: %v", err)
		end = time.Now()
	}
	t.Say("The NodeClaims may drain until %s, %.0f s from now.", timeline.Clock(end), time.Until(end).Seconds())
	t.Until("the ordinary pod runs elsewhere", plain.where(), "<none>", time.Minute)
	t.wait(time.Until(end) - 5*time.Second)
	for _, a := range stuck {
		t.Check("until then the drain respects it", "kubectl -n shop get pod "+pod[a.name]+" -o jsonpath='{.status.phase}'", "Running")
	}
	t.Type("sawhorse watch demo")
	took := time.Since(began)
	t.Note("off, with a drain window of "+end.Sub(began).Round(time.Second).String(), took)
	if limit := end.Sub(began) + grace; took > limit {
		t.fail("off took %s, which is more than the window and two minutes, %s", took, limit)
	}
	t.Check("status", state, "Reconciled")
	if claim := claimed[slow.name]; !strings.HasPrefix(claim, "workload-") {
		t.fail("the node of %s has the NodeClaim %q", slow.name, claim)
	} else {
		t.Contains("the report names the NodeClaim that outlasted its deadline", status, claim)
	}
	withoutKarpenter(t, autoscalerBefore)
	for _, a := range hard {
		t.Until(fmt.Sprintf("pods of %s that run", a.name), a.runs(), "1", time.Minute)
		a.end(t)
	}
	t.Type("kubectl -n shop delete poddisruptionbudget guarded")
}
