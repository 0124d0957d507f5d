package story

import "time"

// Forgotten deletes all of the rack's parameters. With Karpenter on, this changes nothing. With Karpenter off, it
// removes the functions' access to the cluster and the rack's records, and the cluster is free for another rack.
func Forgotten(t *Teller) {
	const (
		names  = "aws ssm get-parameters-by-path --path /sawhorse/racks/demo/params --query "
		unset  = names + "'Parameters[?Value==`unset`].Name' --output text | xargs -r -n 10 aws ssm delete-parameters --names > /dev/null"
		others = names + "'Parameters[].Name' --output text | xargs -r aws ssm delete-parameters --names"
		folder = "aws ssm get-parameters-by-path --path /sawhorse/racks/demo --recursive --query 'length(Parameters)' --output text"
		kept   = "aws dynamodb scan --table-name " + table +
			` --filter-expression 'pk IN (:rack, :plan)' --expression-attribute-values '{":rack":{"S":"rack#demo"},":plan":{"S":"plan#demo"}}' ` +
			`--query 'Items[?!ttl].sk.S' --output text`
		listed = "aws dynamodb query --table-name " + table +
			` --key-condition-expression 'pk = :racks' --expression-attribute-values '{":racks":{"S":"racks"}}' ` +
			`--query "length(Items[?sk.S=='demo'])" --output text`
		rights = "kubectl get clusterroles,clusterrolebindings -l sawhorse.dev/rack=demo -o name | wc -l"
		claims = "aws dynamodb scan --table-name " + table +
			` --filter-expression 'sk = :claim' --expression-attribute-values '{":claim":{"S":"claim"}}' --query Count --output text`
	)
	t.Chapter("Deleting is no command")
	t.Type(put + "karpenter_cpu_limit --value 77 --type String")
	t.Until("NodePool's CPU limit", cpuLimit, "77", time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Type(unset)
	t.Type(others)
	t.Until("the status warns", status+" | grep -c 'has no parameters any more' || true", "1", time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Check("status", state, "Reconciled")
	t.Check("NodePool's CPU limit", cpuLimit, "77")
	t.Check("NodePool workload is Ready", ready, "True")

	t.Chapter("Off, and forgotten")
	t.Type(put + "karpenter_enabled --value false --type String")
	t.Until("Karpenter's Deployment", controllerName, "", 2*time.Minute)
	t.Until("the pass has ended", running, "0", 2*time.Minute)
	t.Check("status", state, "Reconciled")
	t.Check("claims", claims, "1")
	t.Check("the schedule visits it", listed, "1")
	t.Check("access entries of functions", entries+" | wc -w", "8")
	t.Check("their rights in the cluster", rights, "12")
	t.Say("The execution is stopped while it deletes the last of the entries: another one goes on.")
	t.Type(faults + `PUT -d '[{"function":"access","service":"eks","action":"DeleteAccessEntry","nth":7,"times":1,"kind":"stop"}]'`)
	t.Type(others)
	t.Until("what is in Parameter Store", folder, "0", 3*time.Minute)
	t.Type(faults + "DELETE")
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Check("what is kept of the rack and does not expire", kept, "")
	t.Check("access entries of functions", entries+" | wc -w", "0")
	t.Check("their rights in the cluster", rights, "0")
	t.Check("claims", claims, "0")
	t.Check("the schedule visits it no more", listed, "0")
	t.Check("access mode", accessMode, "API_AND_CONFIG_MAP")
}
