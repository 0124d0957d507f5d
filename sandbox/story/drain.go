package story

import (
	"fmt"
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
func DrainOff(s *Script) {
	stuck := []app{guarded, pinning, slow}
	hard := append(stuck, plain)

	claimed, pod := map[string]string{}, map[string]string{} // by app: the NodeClaim of its pod's node, and the pod
	s.Chapter("Nodes with pods that nothing moves", func() {
		single.start(s)
		s.Type(noEviction)
		for _, a := range hard {
			a.start(s)
			s.Check("the NodePool of its node", a.where(), "workload")
		}
		single.end(s)
		for _, a := range stuck {
			pod[a.name] = s.Output(a.pod())
			node := s.Output(a.node())
			for _, claim := range nodeClaims(s).Items {
				if claim.Status.NodeName == node {
					claimed[a.name] = claim.Metadata.Name
				}
			}
		}
	})

	s.Chapter("Off, all the same", func() {
		r := s.record(`kubectl -n shop get pods --watch --output-watch-events -o jsonpath='{.type} Pod {.object.metadata.name}{"\n"}'`)
		began := time.Now()
		s.Put("karpenter_enabled", "false")
		s.Until("NodePool workload", "kubectl get nodepools -o name", "", 2*time.Minute)
		end := drainDeadline(s)
		s.Say("The NodeClaims may drain until %s, %.0f s from now.", timeline.Clock(end), time.Until(end).Seconds())
		s.Await("the step that the status names meanwhile", func() string { return s.Status().Running.Step }, "nodepools", time.Minute)
		s.Until("the ordinary pod runs elsewhere", plain.where(), "<none>", time.Minute)
		s.Reconciled()
		s.Equal("the step that it names then", s.Status().Running.Step, "")
		for _, a := range stuck {
			var gone time.Time
			s.Await("pod "+pod[a.name]+" is gone", func() string {
				gone = timeline.First(r.seen(), began, timeline.Like("^DELETED Pod "+pod[a.name]+"$"))
				return fmt.Sprint(!gone.IsZero())
			}, "true", 2*time.Minute) // the pods of a node that is gone are deleted at the next look at all nodes
			// Karpenter deletes a pod so early that its grace period, here a second or what is left of the time, ends with the window.
			s.inOrder("until a second before then the drain respects "+a.name, end.Add(-time.Second), gone)
		}
		r.stop()
		s.Contains("the NodeClaim of the slow pod's node", "echo "+claimed[slow.name], "workload-")
		s.Says(claimed[slow.name])
		withoutKarpenter(s)
		for _, a := range hard {
			s.Until(fmt.Sprintf("pods of %s that run", a.name), a.runs(), "1", time.Minute)
			a.end(s)
		}
		s.Type("kubectl -n shop delete poddisruptionbudget guarded")
	})
}

// drainDeadline returns the latest time until which a NodeClaim may drain.
func drainDeadline(s *Script) (latest time.Time) {
	for _, claim := range nodeClaims(s).Items {
		end, err := time.Parse(time.RFC3339, claim.Metadata.Annotations["karpenter.sh/nodeclaim-termination-timestamp"])
		if err == nil && end.After(latest) {
			latest = end
		}
	}
	if latest.IsZero() {
		s.fail("wanted a deadline of a NodeClaim, got none")
	}
	return latest
}
