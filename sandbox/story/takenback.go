package story

import "time"

// TakenBack sets a policy of the nodes and takes it back within seconds, and the other way round, while IAM's replicas still
// show the state before. What a pass reads then is older than what the pass before it has written. Nothing stays behind.
func TakenBack(t *Teller) {
	const (
		policy   = put + "node_policy_arns --type String --query Version --value "
		admin    = "arn:aws:iam::aws:policy/AdministratorAccess"
		attached = "aws iam list-attached-role-policies --role-name demo-karpenter-nodes --query 'AttachedPolicies[].PolicyArn' " +
			"--output text | grep -c policy/AdministratorAccess || true"
		// The replicas are behind for longer than the passes take, and than the script waits for what they have done.
		seconds, patience = 90, 40 * time.Second
	)
	ended := func() {
		t.Type("sawhorse watch demo")
		t.Check("status", state, "Reconciled")
	}
	t.Chapter("A policy of the nodes, set and unset within seconds")
	late(t, "iam", seconds)
	t.Type(policy + admin)
	t.Until("the nodes' role has AdministratorAccess", attached, "1", time.Minute)
	t.Type(policy + "unset")
	ended()
	t.Until("the nodes' role has AdministratorAccess", attached, "0", patience)

	t.Chapter("The same policy, unset and set again")
	late(t, "iam", 0)
	t.Type(policy + admin)
	t.Until("the nodes' role has AdministratorAccess", attached, "1", time.Minute)
	ended()
	known(t)
	late(t, "iam", seconds)
	t.Type(policy + "unset")
	t.Until("the nodes' role has AdministratorAccess", attached, "0", time.Minute)
	t.Type(policy + admin)
	ended()
	t.Until("the nodes' role has AdministratorAccess", attached, "1", patience)
	drawn(t, "iam")
	t.Type(policy + "unset")
	t.Until("the nodes' role has AdministratorAccess", attached, "0", time.Minute)
	ended()
}
