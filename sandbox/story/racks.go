package story

// TwoRacks checks that a second rack that names the first rack's cluster is rejected.
func TwoRacks(s *Script) {
	const objects = "kubectl get nodepools,ec2nodeclasses -o name; kubectl get nodepool workload " +
		"-o jsonpath='{.metadata.generation} {.metadata.labels}'"
	parameters := map[string]string{"cluster_name": "demo", "karpenter_auth_mode": "true", "karpenter_enabled": "true"}
	s.Chapter("A second rack for one cluster", func() {
		before := s.Output(objects)
		for name, value := range parameters {
			s.PutOf("second", name, value)
		}
		s.Served()
		second := s.statusOf("second")
		s.Equal("its state", second.State, "Rejected")
		s.Equal("its status has the reason",
			second.says("does not carry the tag sawhorse.dev/rack=second, by which its owner lets the rack in"), true)
		s.Refused("aws iam get-role --role-name second-karpenter", "NoSuchEntity")
		s.Refused("aws sqs get-queue-url --queue-name second-karpenter", "NonExistentQueue")
		s.Check("the first rack's objects", objects, before)
		s.State("Reconciled")
	})
	for name := range parameters {
		s.Delete("second", name)
	}
	s.Served()
}
