package story

import (
	"time"
)

// Waiting shows what the node check says of a pod that has waited ten minutes for a node, for four reasons: the pool's limit, a pod
// that fits no pool, no capacity, and a quota. All but the second make the rack Degraded, and all end by themselves. The script does
// not wait for ten minutes: it dates the pod's condition back.
func Waiting(s *Script) {
	s.Reconciled(s.Put("karpenter_consolidate_after", "1s"))

	s.Chapter("The pool's limit is reached", func() {
		// Every size is over the limit, or Karpenter would say that those within it are too small.
		s.Reconciled(s.Change(map[string]string{"karpenter_cpu_limit": "1", "karpenter_instance_sizes": "large,xlarge"}))
		s.Type(single.create())
		s.Until("Karpenter says why", saidOfPods+" | grep -o 'exceed limits' | head -1", "exceed limits", time.Minute)
		waitsFor(s, "the limit of the pool is reached", "Degraded")
		s.Served(s.Change(nil, "karpenter_cpu_limit", "karpenter_instance_sizes")) // Degraded until the next look
		s.Until("pods of orders that run", single.runs(), "1", 2*time.Minute)
		recovers(s)
	})

	s.Chapter("No pool fits", func() {
		huge := app{name: "orders", replicas: 1, cpu: `"2"`, spec: "nodeSelector: {shop: none}"}
		s.Type(huge.create())
		s.Until("Karpenter says why", saidOfPods+" | grep -o incompatible | head -1", "incompatible", time.Minute)
		waitsFor(s, "no pool fits", "Reconciled")
		recovers(s)
	})

	// Last, because Karpenter takes offerings that EC2 refused as missing for three minutes, and says that of a pod in place of a limit.
	for _, c := range []struct{ code, cause string }{
		{"InsufficientInstanceCapacity", "EC2 has no capacity"},
		{"VcpuLimitExceeded", "EC2 refuses the launch"},
	} {
		s.Chapter("EC2 answers "+c.code, func() {
			launchRefused(s, c.code)
			waitsFor(s, c.cause, "Degraded")
			s.Contains("in EC2's words", waitingLine, c.code)
			s.inject()
			s.Until("pods of orders that run", single.runs(), "1", 4*time.Minute)
			recovers(s)
		})
	}

	s.Unset("karpenter_consolidate_after")
	s.Reconciled()
}

const (
	saidOfPods  = "kubectl -n shop get events --field-selector involvedObject.kind=Pod -o jsonpath='{.items[*].message}'"
	waitingLine = "sawhorse status demo | grep ^waiting"
)

// waitsFor dates the pod's wait back by an hour, has the nodes looked at, and checks what the status says.
func waitsFor(s *Script, cause, state string) {
	ago := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
	s.Output(`for pod in $(kubectl -n shop get pods -l app=orders -o name); do ` +
		`kubectl -n shop patch $pod --subresource status --type strategic -p '{"status":{"conditions":[{"type":"PodScheduled",` +
		`"status":"False","lastTransitionTime":"` + ago + `"}]}}'; done`)
	lookAtNodes(s)
	s.Contains("the status", waitingLine, cause)
	s.State(state)
}

// recovers removes the pod and checks that the next look finds nothing that waits.
func recovers(s *Script) {
	single.end(s)
	s.Until("nodes of NodePools", nodes, "", 3*time.Minute)
	s.Until("its pods", "kubectl -n shop get pods -l app="+single.name+" -o name", "", time.Minute)
	lookAtNodes(s)
	s.Check("what waits", waitingLine+" || true", "")
	s.State("Reconciled")
}
