package story

// QueueRepair disables the rule of the interruption queue, and checks that an ordinary pass repairs it.
func QueueRepair(s *Script) {
	s.Chapter("Somebody has been at the queue", func() {
		s.Check("rule", queueRule, "ENABLED")
		s.Type("aws events disable-rule --name demo-karpenter")
		s.Check("rule", queueRule, "DISABLED")
		s.Reconciled(s.Request())
		s.Check("an ordinary pass has repaired the rule", queueRule, "ENABLED")
		s.Says("rule demo-karpenter repaired")
	})
}
