package story

import "time"

// Forgotten deletes all of the rack's parameters. With Karpenter on, this changes nothing. With Karpenter off, it
// removes the functions' access to the cluster and the rack's records, and the cluster is free for another rack.
func Forgotten(s *Script) {
	const (
		stored = "aws ssm get-parameters-by-path --path /sawhorse/racks/demo --recursive --query 'length(Parameters)' --output text"
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
	s.Chapter("Deleting is no command", func() {
		s.Put("karpenter_cpu_limit", "77")
		s.Served()
		s.Check("NodePool's CPU limit", cpuLimit, "77")
		for name := range s.parameters() {
			if name != "karpenter_cpu_limit" {
				s.Delete("demo", name)
			}
		}
		s.Delete("demo", "karpenter_cpu_limit") // the last one: while others are left, a pass gives it its default
		s.Reconciled()
		s.Says("has no parameters any more")
		s.Check("NodePool's CPU limit", cpuLimit, "77")
		s.Check("NodePool workload is Ready", ready, "True")
	})

	s.Chapter("Off, and forgotten", func() {
		s.Reconciled(s.Put("karpenter_enabled", "false"))
		s.Check("Karpenter's Deployment", controllerName, "")
		s.Check("claims", claims, "1")
		s.Check("the schedule visits it", listed, "1")
		s.Equal("access entries of functions", len(JSON[[]string](s, entries)), 9)
		s.Check("their rights in the cluster", rights, "14")
		s.Say("The execution is stopped while it deletes the last of the entries: another one goes on.")
		s.inject(stopAt("access", "eks", "DeleteAccessEntry", 8))
		deleteParameters(s)
		s.Until("what is in Parameter Store", stored, "0", 3*time.Minute)
		s.inject()
		s.Served()
		s.Check("what is kept of the rack and does not expire", kept, "")
		s.Equal("access entries of functions", len(JSON[[]string](s, entries)), 0)
		s.Check("their rights in the cluster", rights, "0")
		s.Check("claims", claims, "0")
		s.Check("the schedule visits it no more", listed, "0")
		s.Check("access mode", accessMode, "API_AND_CONFIG_MAP")
	})
}
