package story

import "time"

// SetAndUnset sets a policy of the nodes and unsets it within seconds, and the other way round, while IAM's replicas still
// show the state before. What a pass reads then is older than what the pass before it has written. Nothing stays behind.
func SetAndUnset(s *Script) {
	const (
		parameter = "node_policy_arns"
		admin     = "arn:aws:iam::aws:policy/AdministratorAccess"
		attached  = "aws iam list-attached-role-policies --role-name demo-karpenter-nodes " +
			"--query \"contains(AttachedPolicies[].PolicyArn, '" + admin + "')\""
		has = "the nodes' role has AdministratorAccess"
		// The replicas are behind for longer than the passes take.
		seconds = 90
	)
	s.Chapter("A policy of the nodes, set and unset within seconds", func() {
		setLag(s, "iam", seconds)
		s.Put(parameter, admin)
		s.Until(has, attached, "true", time.Minute)
		s.Unset(parameter)
		s.Reconciled()
		s.Check(has, attached, "false")
	})

	s.Chapter("The same policy, unset and set again", func() {
		setLag(s, "iam", 0)
		s.Reconciled(s.Put(parameter, admin))
		s.Check(has, attached, "true")
		lagsEnd(s)
		setLag(s, "iam", seconds)
		s.Unset(parameter)
		s.Until(has, attached, "false", time.Minute)
		s.Reconciled(s.Put(parameter, admin))
		s.Check(has, attached, "true")
	})

	drawLag(s, "iam")
	s.Unset(parameter)
	s.Reconciled()
	s.Check(has, attached, "false")
}
