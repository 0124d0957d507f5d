package story

import "time"

// Pools adds pools to the rack demo, overrides the workload pool, and removes them again. The real API server and the
// real Karpenter accept the objects that Sawhorse generates from the parameters.
func Pools(s *Script) {
	const (
		pools, config = "additional_karpenter_nodepools_config", "karpenter_config"
		generations   = "kubectl get nodepools,ec2nodeclasses -o jsonpath='{.items[*].metadata.generation}'"
		class         = "kubectl get ec2nodeclass workload -o jsonpath="
		bucket        = "s3://sawhorse-demo"
	)
	s.Until("the first nodes have gone", nodes, "", 3*time.Minute)
	s.Chapter("More pools", func() {
		s.Put(pools, `[{"name":"gpu","instance_families":"g5,g6","taints":"nvidia.com/gpu=true:NoSchedule","disk":200},`+
			`{"name":"tenant-a","labels":"tenant=a","dedicated":true}]`)
		s.Put(config, `{"nodePool":{"template":{"metadata":{"labels":{"team":"web"}},"spec":{"terminationGracePeriod":"48h"}},`+
			`"disruption":{"budgets":[{"nodes":"10%"},{"nodes":"0","schedule":"0 9 * * mon-fri","duration":"8h"}]}},`+
			`"ec2NodeClass":{"detailedMonitoring":true,"kubelet":{"maxPods":50}}}`)
		s.Reconciled()
		s.Check("all pools are Ready", poolsReady, "build=True gpu=True tenant-a=True workload=True")
		s.Check("the whole Karpenter API", class+"'{.spec.detailedMonitoring} {.spec.kubelet.maxPods}'", "true 50")
		s.Check("the taint of a dedicated pool",
			"kubectl get nodepool tenant-a -o jsonpath='{.spec.template.spec.taints[0].key}={.spec.template.spec.taints[0].value}'",
			"dedicated-node=tenant-a")
	})

	s.Chapter("What is refused, with its place", func() {
		before := s.Output(generations)
		s.Put(config, `{"ec2NodeClass":{"role":"mine"},"nodePool":{"template":{"spec":{"expireAfter":"30d"}}}}`)
		s.Rejected("ec2NodeClass.role is protected", "write, for example, 720h or Never")
		s.Check("the objects", generations, before)
	})

	s.Chapter("From S3, and what a change does to nodes", func() {
		s.Type("aws s3 mb " + bucket)
		s.Type("echo " + quoted(`{"ec2NodeClass":{"userData":"#!/bin/sh"}}`) + " | aws s3 cp - " + bucket + "/racks/demo/config.json")
		s.Reconciled(s.Put(config, bucket+"/racks/demo/config.json"))
		s.Check("the user data of the class", class+"'{.spec.userData}'", "#!/bin/sh")
		s.Says("pool workload is changed: it has no nodes")
		auditInOrder(s, "The schedule's audit reads the object in S3, too.")
		s.Type("aws s3 cp " + bucket + "/racks/demo/config.json " + bucket + "/racks/demo-2/config.json")
		s.Put(config, bucket+"/racks/demo-2/config.json")
		s.Rejected("not below a prefix that the stack allows (s3://sawhorse-demo/racks/demo/)")
	})

	s.Chapter("And away again", func() {
		s.Unset(pools, config)
		s.Reconciled()
		s.Check("pools", poolsReady, "build=True workload=True")
		s.Check("classes", "kubectl get ec2nodeclasses -o jsonpath='{.items[*].metadata.name}'", "build workload")
		s.Type("aws s3 rb --force " + bucket)
	})
}
