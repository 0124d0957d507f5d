package story

import (
	"time"

	"github.com/sawhorse-io/sawhorse/sandbox/chaos/fault"
)

// LaunchesRefused has EC2 refuse Karpenter's launches, for each of the usual reasons. Karpenter says why in EC2's words, and the
// pod gets its node once EC2 launches again.
func LaunchesRefused(s *Script) {
	const events = "kubectl get events -A --field-selector involvedObject.kind=NodeClaim -o jsonpath='{.items[*].message}'"
	s.Reconciled(s.Put("karpenter_consolidate_after", "1s"))

	for _, code := range []string{
		"InsufficientInstanceCapacity", "VcpuLimitExceeded", "InsufficientFreeAddressesInSubnet", "UnauthorizedOperation",
		"AuthFailure.ServiceLinkedRoleCreationNotPermitted",
	} {
		s.Chapter("EC2 refuses to launch: "+code, func() {
			s.inject(fault.Fault{
				Call: fault.Call{Function: fault.Karpenter, Service: "ec2", Action: "CreateFleet"}, Nth: 1, Seconds: 600, Kind: fault.Refuse, Code: code,
			})
			s.Type(single.apply())
			s.Until("Karpenter says why", events+" | grep -o "+code+" | head -1", code, time.Minute)
			s.Check("pods of orders that run", single.runs(), "")
			s.inject()
			s.Until("pods of orders that run", single.runs(), "1", 4*time.Minute)
			single.end(s)
			s.Until("nodes of NodePools", nodes, "", 2*time.Minute)
		})
	}

	s.Unset("karpenter_consolidate_after")
	s.Reconciled()
}
