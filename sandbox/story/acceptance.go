package story

// Acceptance runs the acceptance script for real accounts, which is at the given path, on the sandbox's cluster. This
// tests the script itself.
func Acceptance(s *Script, script string) {
	const (
		report  = "acceptance.md"
		started = "CLUSTER=demo RACK=demo CONFIRM=demo "
		mode    = "aws ssm get-parameter --name /sawhorse/racks/demo/params/karpenter_auth_mode --query Parameter.Value --output text"
		left    = "aws ssm get-parameters-by-path --path /sawhorse --recursive --query 'length(Parameters)' --output text"
	)
	s.Chapter("A run that is killed", func() {
		s.Type(started + "setsid " + script + " > /dev/null 2>&1 & until " + mode + " 2> /dev/null | grep true; do sleep 0.2; done; " +
			"kill -9 -- -$!")
		s.Contains("the next start", started+script, "It is taken back. Start again")
		s.Check("parameters that are left", left, "0")
		s.Type("kubectl delete $(kubectl get crds -o name | grep karpenter)") // by which it knows a cluster that has had a Karpenter
	})

	s.Chapter("make acceptance", func() {
		s.Refused("CLUSTER=demo RACK=demo CONFIRM=another "+script, "not confirmed; nothing was done")
		s.Type(started + "REPORT=$PWD/" + report + " " + script)
		s.Check("what the report has of a node", "grep -c '^| from a pod to a node that runs it' "+report, "1")
		s.Check("of Karpenter's queue",
			`grep -E "^. messages in the interruption queue" `+report+` | grep -oE "[0-9]+[[:space:]]+[0-9]+" | tr '\t' ' '`, "0 0")
		for _, c := range []struct{ image, answer string }{
			{"Amazon's AL2023", "DryRunOperation"}, {"the account's own image", "UnauthorizedOperation"},
			{"the account's own image with the tag sawhorse.dev/nodes", "DryRunOperation"},
		} {
			s.Contains("a launch from "+c.image, `grep -F "boundary: `+c.image+` |" `+report, c.answer)
		}
		s.Check("the state machine's expressions", "grep -c '^| test-state.* all [0-9]* cases go on as they should' "+report, "1")
		s.Check("families that are looked up", "grep -c '^| offerings of the types m6i.*| [1-9][0-9]* *|' "+report, "1")
		s.Check("images that are left", "aws ec2 describe-images --owners self --query 'length(Images)' --output text", "0")
		s.Check("questions without an answer", "grep -cE 'not within a minute|got no node' "+report+" || true", "0")
		s.Check("instances that are left", "grep '^| instances of Karpenter' "+report+" | grep -oE '[0-9]+'", "0")
		s.Check("parameters that are left", left, "0")
		s.Refused(started+script, "has a Karpenter, or has had one")
		s.Type("rm " + report)
	})
}
