package story

// Aliases pins the AMI of all pools by one write, which is refused where AWS lacks an image that a pool may need, and stages another AMI in
// one pool first, as the recipe does. No other pool has a node then; NewImages replaces some.
func Aliases(s *Script) {
	const (
		alias, pools = "karpenter_ami_alias", "additional_karpenter_nodepools_config"
		canary       = `[{"name":"canary","weight":10,"cpu_limit":16,"ec2NodeClass":{"amiSelectorTerms":[{"alias":"al2023@v20260828"}]}}]`
	)
	s.Chapter("One alias for all pools", func() {
		s.Reconciled(s.Change(map[string]string{alias: "al2023@v20260801", "karpenter_arch": "amd64,arm64"}))
		s.Check("aliases", aliases, "build al2023@v20260801;workload al2023@v20260801;")
		s.Check("pools", poolsReady, "build=True workload=True")
	})

	s.Chapter("A release without an image for arm64", func() {
		s.Put(alias, "al2023@v20260301")
		s.Rejected(alias)
		s.Says("of which AWS has no AMI for arm64 (standard)")
		s.Check("aliases", aliases, "build al2023@v20260801;workload al2023@v20260801;")
		s.Reconciled(s.Change(map[string]string{alias: "al2023@v20260301"}, "karpenter_arch"))
		s.Check("aliases, where no pool may have such a node", aliases, "build al2023@v20260301;workload al2023@v20260301;")
	})

	s.Chapter("Another one in one pool, then in all, then back", func() {
		s.Reconciled(s.Change(map[string]string{alias: "al2023@v20260801", pools: canary}))
		s.Check("aliases", aliases, "build al2023@v20260801;canary al2023@v20260828;workload al2023@v20260801;")
		single.start(s)
		s.Check("the NodePool of its node", single.where(), "canary")
		lookAtNodes(s) // a pool that no look has seen stays until the audit when it is taken away
		s.Reconciled(s.Put(alias, "al2023@v20260828"))
		s.Check("aliases", aliases, "build al2023@v20260828;canary al2023@v20260828;workload al2023@v20260828;")
		s.Reconciled(s.Put(alias, "al2023@v20260801"))
		s.Check("aliases", aliases, "build al2023@v20260801;canary al2023@v20260828;workload al2023@v20260801;")
	})

	s.Chapter("Back to the defaults", func() {
		single.end(s)
		s.Reconciled(s.Change(nil, alias, pools))
		onlyDefaults(s)
	})
}
