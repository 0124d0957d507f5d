package story

import "github.com/sawhorse-io/sawhorse/sandbox/chaos/fault"

// OutOfTime stops a step's function in the middle of a pass. Lambda ends it at its timeout, the state machine calls it
// again, and the pass ends as if nothing had happened.
func OutOfTime(s *Script) {
	s.Chapter("A function that does not end", func() {
		before := s.Status().version
		s.inject(fault.Fault{Call: fault.Call{Function: "nodepools", Service: "kubernetes"}, Nth: 1, Kind: fault.Sleep})
		s.Reconciled(s.Put("karpenter_cpu_limit", "211"))
		s.Check("NodePool's CPU limit", cpuLimit, "211")
		s.Equal("functions that were stopped", len(s.counted().Fired), 1)
		s.inject()
		s.Equal("states meanwhile", s.states(before), "Reconciled")
	})
	s.Unset("karpenter_cpu_limit")
	s.Reconciled()
}
