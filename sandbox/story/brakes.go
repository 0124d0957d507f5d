package story

import "strings"

// Brakes freezes and pauses a rack while another of its parameters is wrong. Each brake is in force within one pass, in the
// cluster and in the status, and taken off in the same way.
func Brakes(s *Script) {
	const free, frozen = "build 10%;workload 10%;", "build 10% 0;workload 10% 0;"
	rejected := func(problems, inForce string) {
		s.Rejected()
		status := s.Status()
		s.Equal("its problems", status.wrong(), problems)
		s.Equal("brakes in force", strings.Join(status.Brakes, " "), inForce)
	}
	s.Chapter("A freeze while another parameter is wrong", func() {
		s.Check("disruption budgets", poolBudgets, free)
		s.Put("karpenter_cpu_limit", "many")
		s.Rejected()
		s.Put("karpenter_memory_limit_gb", "7")
		s.Put("karpenter_freeze", "true")
		rejected("karpenter_cpu_limit", "karpenter_freeze")
		s.Check("disruption budgets", poolBudgets, frozen)
		s.Says("the freeze is in force")
		s.Check("NodePool's CPU limit", cpuLimit, "100")
		s.Put("karpenter_freeze", "false")
		rejected("karpenter_cpu_limit", "")
		s.Check("disruption budgets", poolBudgets, free)
	})

	s.Chapter("Paused while another parameter is wrong", func() {
		s.Put("paused", "true")
		rejected("karpenter_cpu_limit", "paused")
		s.Type("aws events disable-rule --name demo-karpenter")
		s.Put("karpenter_freeze", "true")
		rejected("karpenter_cpu_limit", "paused")
		s.Says("the freeze is not in force, because the rack is paused")
		s.Request("full")
		rejected("karpenter_cpu_limit", "paused")
		s.Check("the rule is not repaired", queueRule, "DISABLED")
		s.Check("disruption budgets", poolBudgets, free)
	})

	s.Chapter("No pause any more", func() {
		s.Put("paused", "false")
		rejected("karpenter_cpu_limit", "karpenter_freeze")
		s.Check("disruption budgets", poolBudgets, frozen)
		s.FullPass()
		s.Check("a full pass has repaired the rule", queueRule, "ENABLED")
	})

	s.Chapter("A brake with a bad value stays as it is", func() {
		s.Put("karpenter_freeze", "yes")
		rejected("karpenter_cpu_limit karpenter_freeze", "karpenter_freeze")
		s.Check("disruption budgets", poolBudgets, frozen)
	})

	s.Chapter("All is as it was", func() {
		s.Unset("karpenter_cpu_limit", "karpenter_memory_limit_gb", "karpenter_freeze", "paused")
		s.Reconciled()
		s.Check("disruption budgets", poolBudgets, free)
		s.Equal("brakes in force", s.Status().Brakes, "[]")
	})
}
