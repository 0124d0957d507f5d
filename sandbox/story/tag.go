package story

// ResetRack removes everything that Sawhorse knows about the rack demo, if there is anything: Karpenter is turned off, and
// parameters and records are deleted.
func ResetRack(s *Script) {
	reset(s)
	const left = "aws ssm get-parameters-by-path --path /sawhorse/racks/demo --recursive --query 'Parameters[].Name' --output json"
	if len(JSON[[]string](s, left)) == 0 {
		s.pass("the rack is new")
		return
	}
	Off(s)
	deleteParameters(s)
	s.Served()
	s.Check("what is in Parameter Store", left, "[]")
}

// deleteParameters deletes all that users have written of the rack demo: its parameters, and the parameter change.
func deleteParameters(s *Script) {
	for name := range s.parameters() {
		s.Delete("demo", name)
	}
	if s.Output("aws ssm get-parameters --names "+parameter("demo", change)+" --query 'length(Parameters)' --output text") == "1" {
		s.Delete("demo", change)
	}
}

// ClusterNotTagged turns Karpenter on in a cluster whose owner has not allowed the rack in. Nothing in the cluster changes until
// the owner does.
func ClusterNotTagged(s *Script) {
	const (
		cluster = `"$(aws eks describe-cluster --name demo --query cluster.arn --output text)"`
		tag     = `aws eks describe-cluster --name demo --query 'cluster.tags."sawhorse.dev/rack"' --output text`
		untag   = "aws eks untag-resource --resource-arn " + cluster + " --tag-keys sawhorse.dev/rack"
		access  = "aws eks describe-cluster --name demo --query cluster.accessConfig.authenticationMode --output text; " +
			"aws eks list-access-entries --cluster-name demo --query accessEntries --output text 2>&1 || true" // refused in mode CONFIG_MAP
	)
	untouched := ""
	s.Chapter("A cluster whose owner has not let the rack in", func() {
		s.Type(untag)
		s.Check("its tag", tag, "None")
		untouched = s.Output(access)
		s.resetCalls()
		s.Put("karpenter_auth_mode", "true")
		s.Put("karpenter_enabled", "true")
		s.Rejected("does not carry the tag sawhorse.dev/rack=demo", "`sawhorse register demo --cluster demo`",
			"`aws eks tag-resource --resource-arn "+s.Output("echo "+cluster)+" --tags sawhorse.dev/rack=demo`")
		s.Type("sawhorse status demo || true")
		s.FullPass()
		s.Equal("calls that write, beside Sawhorse's own records", s.writes(), "[]")
		s.Check("access mode and entries", access, untouched)
		s.Refused("aws iam get-role --role-name demo-karpenter", "NoSuchEntity")
	})

	s.Chapter("One that lets another rack in", func() {
		s.Type("aws eks tag-resource --resource-arn " + cluster + " --tags sawhorse.dev/rack=other")
		s.Refused("sawhorse register demo", "lets rack other in and no other; nothing was written")
		s.Check("its tag", tag, "other")
		s.FullPass()
		s.Says("if its owner has let another rack in, write the name of another cluster")
		s.Omits("rack other")
		s.Equal("calls that write, beside Sawhorse's own records", s.writes(), "[]")
		s.Check("access mode and entries", access, untouched)
		s.Type(untag)
	})

	s.Chapter("Let in", func() {
		s.Type("sawhorse register demo --rate 50")
		s.Check("its tag", tag, "demo")
		s.Reconciled(s.Request())
		s.Check("NodePool workload is Ready", ready, "True")
		s.Omits("carry the tag")
	})
}
