package story

import "time"

// Anew removes everything that Sawhorse knows about the rack demo, if there is anything: Karpenter is turned off, and
// parameters and records are deleted.
func Anew(t *Teller) {
	const (
		params = "aws ssm get-parameters-by-path --path /sawhorse/racks/demo/params --query 'Parameters[].Name' --output text"
		left   = "aws ssm get-parameters-by-path --path /sawhorse/racks/demo --recursive --query 'Parameters[].Name' --output text"
	)
	if t.Ask(left) == "" {
		t.hold("the rack is new")
		return
	}
	Off(t)
	t.Type(params + " | xargs -r -n 10 aws ssm delete-parameters --query 'length(DeletedParameters)' --output text --names")
	t.Until("what is in Parameter Store", left, "", time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
}

// Unasked turns Karpenter on in a cluster whose owner has not allowed the rack in. Nothing in the cluster changes until
// the owner does.
func Unasked(t *Teller) {
	const (
		cluster = `"$(aws eks describe-cluster --name demo --query cluster.arn --output text)"`
		tag     = `aws eks describe-cluster --name demo --query 'cluster.tags."sawhorse.dev/rack"' --output text`
		untag   = "aws eks untag-resource --resource-arn " + cluster + " --tag-keys sawhorse.dev/rack"
		access  = "aws eks describe-cluster --name demo --query cluster.accessConfig.authenticationMode --output text; " +
			"aws eks list-access-entries --cluster-name demo --query accessEntries --output text"
		written = "calls of the functions that write, beside their own records"
	)
	t.Chapter("A cluster whose owner has not let the rack in")
	t.Type(untag)
	t.Check("its tag", tag, "None")
	untouched := t.Ask(access)
	t.Type(countAnew)
	t.Type(put + "karpenter_auth_mode --value true --type String")
	t.Type(turnOn)
	t.Until("status", state, "Rejected", time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Type("sawhorse status demo || true")
	t.Contains("the tag", status, "does not carry the tag sawhorse.dev/rack=demo")
	t.Contains("one way out", status, "`sawhorse register demo --cluster demo`")
	t.Contains("and the other", status, "`aws eks tag-resource --resource-arn "+t.Ask("echo "+cluster)+" --tags sawhorse.dev/rack=demo`")
	repair(t)
	t.Check(written, changing, "")
	t.Check("access mode and entries", access, untouched)
	t.Refused("aws iam get-role --role-name demo-karpenter", "NoSuchEntity")

	t.Chapter("One that lets another rack in")
	t.Type("aws eks tag-resource --resource-arn " + cluster + " --tags sawhorse.dev/rack=other")
	t.Refused("sawhorse register demo", "lets rack other in and no other; nothing was written")
	t.Check("its tag", tag, "other")
	repair(t)
	t.Contains("the problem", status, "if its owner has let another rack in, write the name of another cluster")
	t.Check("what it says of the other rack", status+" | grep -c 'rack other' || true", "0")
	t.Check(written, changing, "")
	t.Check("access mode and entries", access, untouched)
	t.Type(untag)

	t.Chapter("Let in")
	t.Type("sawhorse register demo --rate 50")
	t.Check("its tag", tag, "demo")
	t.Check("request", event, "0")
	t.Until("NodePool workload is Ready", ready, "True", 5*time.Minute)
	t.Until("the pass has ended", running, "0", 3*time.Minute)
	t.Check("status", state, "Reconciled")
	t.Check("what the status still says of the tag", status+" | grep -c 'carry the tag' || true", "0")
}
