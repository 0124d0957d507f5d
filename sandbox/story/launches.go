package story

import (
	"time"

	"github.com/sawhorse-io/sawhorse/sandbox/chaos/fault"
)

// launchRefused makes EC2 refuse all launches with an error code, and waits until Karpenter names it for a pod that has no node.
func launchRefused(s *Script, code string) {
	const events = "kubectl get events -A --field-selector involvedObject.kind=NodeClaim -o jsonpath='{.items[*].message}'"
	refuseLaunches(s, code)
	s.Type(single.create())
	s.Until("Karpenter says why", events+" | grep -o "+code+" | head -1", code, time.Minute)
	s.Check("pods of orders that run", single.runs(), "")
}

// refuseLaunches makes EC2 refuse all launches with an error code.
func refuseLaunches(s *Script, code string) {
	s.inject(fault.Fault{
		Call: fault.Call{Function: fault.Karpenter, Service: "ec2", Action: "CreateFleet"}, Nth: 1, Seconds: 600, Kind: fault.Refuse, Code: code,
	})
}
