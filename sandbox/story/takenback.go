package story

import "time"

// TakenBack makes settings and takes them back within seconds, while the replicas of IAM and EC2 still show the state
// before. What a pass reads then is older than what the pass before it has written. Nothing stays behind.
func TakenBack(t *Teller) {
	const (
		policy   = put + "node_policy_arns --type String --query Version --value "
		admin    = "arn:aws:iam::aws:policy/AdministratorAccess"
		attached = "aws iam list-attached-role-policies --role-name demo-karpenter-nodes --query 'AttachedPolicies[].PolicyArn' " +
			"--output text | grep -c policy/AdministratorAccess || true"
		subnets = put + "subnet_ids --type String --query Version --value "
		first   = `"$(aws eks describe-nodegroup --cluster-name demo --nodegroup-name system --query 'nodegroup.subnets[0]' --output text)"`
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

	t.Chapter("A subnet that is not chosen, and chosen again")
	all := t.Ask(tagged)
	late(t, "tags", seconds)
	t.Type(subnets + first)
	t.Until("one subnet less has the discovery tag", "test \"$("+tagged+")\" -lt "+all+" && echo yes || true", "yes", time.Minute)
	t.Type(subnets + "unset")
	ended()
	t.Until("subnets and security groups with the discovery tag", tagged, all, patience)
	drawn(t, "tags")
}
