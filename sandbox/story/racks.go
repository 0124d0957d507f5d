package story

import "time"

// TwoRacks checks that a second rack that names the first rack's cluster is rejected.
func TwoRacks(t *Teller) {
	const (
		second = "aws ssm put-parameter --overwrite --type String --name /sawhorse/racks/second/params/"
		status = "aws ssm get-parameter --name /sawhorse/racks/second/status --query Parameter.Value --output text 2>/dev/null"
		named  = status + ` | python3 -c 'import json,sys; print(json.load(sys.stdin)["state"])'`
		traces = "kubectl get nodepools,ec2nodeclasses -o name; kubectl get nodepool workload " +
			"-o jsonpath='{.metadata.generation} {.metadata.labels}'"
	)
	t.Chapter("A second rack for one cluster")
	untouched := t.Ask(traces)
	t.Type(second + "cluster_name --value demo")
	t.Type(second + "karpenter_auth_mode --value true")
	t.Type(second + "karpenter_enabled --value true")
	t.Until("its status", named, "Rejected", time.Minute)
	t.Contains("the sentence", status, "does not carry the tag sawhorse.dev/rack=second, by which its owner lets the rack in")
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Refused("aws iam get-role --role-name second-karpenter", "NoSuchEntity")
	t.Refused("aws sqs get-queue-url --queue-name second-karpenter", "NonExistentQueue")
	t.Check("the first rack's objects", traces, untouched)
	t.Check("the first rack's status", state, "Reconciled")
	for _, name := range []string{"cluster_name", "karpenter_auth_mode", "karpenter_enabled"} {
		t.Type("aws ssm delete-parameter --name /sawhorse/racks/second/params/" + name)
	}
}
