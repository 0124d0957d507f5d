package story

import "time"

// Pools adds pools to the rack demo, overrides the workload pool, and removes them again. The real API server and the
// real Karpenter accept the objects that Sawhorse generates from the parameters.
func Pools(t *Teller) {
	const (
		more   = `put-parameter --overwrite --name /sawhorse/racks/demo/params/additional_karpenter_nodepools_config --type String --value `
		config = `put-parameter --overwrite --name /sawhorse/racks/demo/params/karpenter_config --type String --value `
	)
	t.Chapter("More pools")
	t.Type(`aws ssm ` + more +
		`'[{"name":"gpu","instance_families":"g5,g6","taints":"nvidia.com/gpu=true:NoSchedule","disk":200},{"name":"tenant-a",` +
		`"labels":"tenant=a","dedicated":true}]'`)
	t.Type(`aws ssm ` + config +
		`'{"nodePool":{"template":{"metadata":{"labels":{"team":"web"}},"spec":{"terminationGracePeriod":"48h"}},` +
		`"disruption":{"budgets":[{"nodes":"10%"},{"nodes":"0","schedule":"0 9 * * mon-fri","duration":"8h"}]}},` +
		`"ec2NodeClass":{"detailedMonitoring":true,"kubelet":{"maxPods":50}}}'`)
	t.Until("all pools are Ready", poolsReady, "build=True gpu=True tenant-a=True workload=True", 2*time.Minute)
	t.Until("the whole Karpenter API", "kubectl get ec2nodeclass workload -o jsonpath='{.spec.detailedMonitoring} {.spec.kubelet.maxPods}'",
		"true 50", time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Check("status", state, "Reconciled")
	t.Check("the taint of a dedicated pool",
		"kubectl get nodepool tenant-a -o jsonpath='{.spec.template.spec.taints[0].key}={.spec.template.spec.taints[0].value}'",
		"dedicated-node=tenant-a")

	t.Chapter("What is refused, with its place")
	untouched := t.Ask("kubectl get nodepools,ec2nodeclasses -o jsonpath='{.items[*].metadata.generation}'")
	t.Type(`aws ssm ` + config + `'{"ec2NodeClass":{"role":"mine"},"nodePool":{"template":{"spec":{"expireAfter":"30d"}}}}'`)
	t.Until("status", state, "Rejected", time.Minute)
	t.Contains("a protected field", status, "ec2NodeClass.role is protected")
	t.Contains("a value that Kubernetes would refuse", status, "write, for example, 720h or Never")
	t.Check("the objects", "kubectl get nodepools,ec2nodeclasses -o jsonpath='{.items[*].metadata.generation}'", untouched)

	t.Chapter("From S3, and what a change does to nodes")
	t.Type("aws s3 mb s3://sawhorse-demo")
	t.Type(`echo '{"ec2NodeClass":{"userData":"#!/bin/sh"}}' | aws s3 cp - s3://sawhorse-demo/racks/demo/config.json`)
	t.Type(`aws ssm ` + config + "s3://sawhorse-demo/racks/demo/config.json")
	t.Until("the user data of the class", "kubectl get ec2nodeclass workload -o jsonpath='{.spec.userData}'", "#!/bin/sh", time.Minute)
	t.Until("status", state, "Reconciled", time.Minute)
	t.Contains("the status tells what becomes of the nodes", status, "pool workload is changed: it has no nodes")
	auditInOrder(t, "The schedule's audit reads the object in S3, too.")
	t.Type("aws s3 cp s3://sawhorse-demo/racks/demo/config.json s3://sawhorse-demo/racks/demo-2/config.json")
	t.Type(`aws ssm ` + config + "s3://sawhorse-demo/racks/demo-2/config.json")
	t.Until("status", state, "Rejected", time.Minute)
	t.Contains("an object of rack demo-2", status, "not below a prefix that the stack allows (s3://sawhorse-demo/racks/demo/)")

	t.Chapter("And away again")
	for _, name := range []string{"additional_karpenter_nodepools_config", "karpenter_config"} {
		t.Type(put + name + " --value unset")
	}
	t.Until("pools", poolsReady, "build=True workload=True", 2*time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Check("status", state, "Reconciled")
	t.Check("classes", "kubectl get ec2nodeclasses -o jsonpath='{.items[*].metadata.name}'", "build workload")
	t.Type("aws s3 rb --force s3://sawhorse-demo")
}
