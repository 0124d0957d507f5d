package story

// WrongNames makes typos in the names of the cluster and of a node group. Each is reported for what it is, without
// consequential errors: the rack's own cluster does not count as deleted, and Karpenter keeps running.
func WrongNames(s *Script) {
	const pools = "kubectl get nodepools,ec2nodeclasses -o jsonpath='{.items[*].metadata.uid} {.items[*].metadata.generation}'"
	before := s.Output(pools)
	wrong := func(name, value, sentence string) {
		s.Put(name, value)
		s.Rejected(sentence)
		s.Equal("the problems", s.Status().wrong(), name)
	}
	clusterExists := func() {
		for _, text := range []string{"any more", "has been deleted", "forgotten"} {
			s.Omits(text)
		}
	}
	s.Chapter("A typo in cluster_name", func() {
		wrong("cluster_name", "demmo", "has been migrated; write demo")
		clusterExists()
		s.Put("karpenter_enabled", "false")
		s.Rejected()
		s.Equal("the problems", s.Status().wrong(), "cluster_name")
		clusterExists()
		s.Put("karpenter_enabled", "true")
		s.Unset("cluster_name")
		s.Reconciled()
	})

	s.Chapter("A typo in system_node_groups", func() {
		wrong("system_node_groups", "sytem", "which cluster demo does not have")
		s.Unset("system_node_groups")
		s.Reconciled()
		s.Check("NodePools and EC2NodeClasses", pools, before)
	})
}
