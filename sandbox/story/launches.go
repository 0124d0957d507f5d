package story

import (
	"time"

	"github.com/sawhorse-io/sawhorse/sandbox/chaos/fault"
)

// LaunchesRefused has EC2 refuse Karpenter's launches, for each of the usual reasons but a missing right, which is PoliciesLate's
// subject. Karpenter says why in EC2's words, and the pod gets its node once EC2 launches again. The last chapter leaves zones in
// which Karpenter launches nothing for three minutes.
func LaunchesRefused(s *Script) {
	s.Reconciled(s.Put("karpenter_consolidate_after", "1s"))

	for _, code := range []string{
		"InsufficientInstanceCapacity", "VcpuLimitExceeded", "AuthFailure.ServiceLinkedRoleCreationNotPermitted",
	} {
		s.Chapter("EC2 refuses to launch: "+code, func() {
			launchRefused(s, code)
			s.inject()
			s.Until("pods of orders that run", single.runs(), "1", 4*time.Minute)
			single.end(s)
			s.Until("nodes of NodePools", nodes, "", 2*time.Minute)
		})
	}

	s.Chapter("No address is left in the subnets", func() {
		launchRefused(s, "InsufficientFreeAddressesInSubnet")
		s.inject()
		single.end(s)
	})

	s.Unset("karpenter_consolidate_after")
	s.Reconciled()
}

// launchRefused makes EC2 refuse all launches with an error code, and waits until Karpenter names it for a pod that has no node.
func launchRefused(s *Script, code string) {
	const events = "kubectl get events -A --field-selector involvedObject.kind=NodeClaim -o jsonpath='{.items[*].message}'"
	s.inject(fault.Fault{
		Call: fault.Call{Function: fault.Karpenter, Service: "ec2", Action: "CreateFleet"}, Nth: 1, Seconds: 600, Kind: fault.Refuse, Code: code,
	})
	s.Type(single.apply())
	s.Until("Karpenter says why", events+" | grep -o "+code+" | head -1", code, time.Minute)
	s.Check("pods of orders that run", single.runs(), "")
}
