package story

import (
	"time"

	"github.com/sawhorse-io/sawhorse/sandbox/chaos/fault"
)

// Proof turns Karpenter on while EC2 refuses its launches, for one reason after the other. Karpenter's pools are Ready all the
// while. The pass waits, and says why in EC2's words; Cluster Autoscaler and the build groups are as before. It fails with these
// words when the pool has had its time, and goes on once EC2 launches.
func Proof(s *Script) {
	const (
		proofs = "kubectl -n sawhorse-proof get pods -o name"
		says   = "sawhorse status demo 2>&1 | grep -o "
	)
	asBefore := func() {
		s.Check("Cluster Autoscaler's replicas", autoscalerReplicas, "1")
		s.Check("build group (min, desired, max)", buildGroup, "1 1 3")
	}
	refuse := func(code string) {
		s.inject(fault.Fault{
			Call: fault.Call{Function: fault.Karpenter, Service: "ec2", Action: "CreateFleet"}, Nth: 1, Seconds: 900, Kind: fault.Refuse, Code: code,
		})
	}

	s.Chapter("No first node comes", func() {
		refuse("VcpuLimitExceeded")
		s.Put("karpenter_enabled", "true")
		s.Until("NodePool workload is Ready", ready+" 2>/dev/null || true", "True", 2*time.Minute)
		for _, code := range []string{"VcpuLimitExceeded", "AuthFailure.ServiceLinkedRoleCreationNotPermitted", "InsufficientInstanceCapacity"} {
			refuse(code)
			s.Until("what the pass waits for", says+code+" | head -1", code, time.Minute)
			asBefore()
		}
		s.Failed("pool workload has no first node yet", "InsufficientInstanceCapacity", "nothing was handed over")
		asBefore()
		s.Check("the pods of the proof", proofs, "")
	})

	s.Chapter("EC2 launches again", func() {
		s.inject()
		s.Reconciled(s.Request())
		s.Check("Cluster Autoscaler's replicas", autoscalerReplicas, "0")
		s.Check("the pods of the proof", proofs, "")
		s.Until("nodes of NodePools", nodes, "", 3*time.Minute)
	})

	s.Chapter("What was handed over proves nothing again", func() {
		refuse("InsufficientInstanceCapacity")
		s.FullPass()
		s.State("Reconciled")
		s.Reconciled(s.Put("karpenter_cpu_limit", "111"))
		s.Check("Cluster Autoscaler's replicas", autoscalerReplicas, "0")
		s.Check("the pods of the proof", proofs, "")
		s.inject()
		s.Unset("karpenter_cpu_limit")
		s.Reconciled()
	})

	s.Chapter("Turned off while it waits for a first node", func() {
		off(s)
		refuse("VcpuLimitExceeded")
		s.Put("karpenter_enabled", "true")
		s.Until("what the pass waits for", says+"VcpuLimitExceeded | head -1", "VcpuLimitExceeded", 2*time.Minute)
		off(s)
		s.inject()
		s.Check("the pods of the proof", proofs, "")
		withoutKarpenter(s)
		on(s)
	})
}
