package story

import "time"

// Collisions turns Karpenter on where others own resources of the same names: first in AWS, then in the cluster. Each
// time all conflicts are reported together, and nothing changes until they are resolved.
func Collisions(s *Script) {
	const (
		subnet = `"$(aws eks describe-cluster --name demo --query 'cluster.resourcesVpcConfig.subnetIds[0]' --output text)"`
		theirs = "kubectl -n shop create deployment karpenter --image=public.ecr.aws/karpenter/controller:0.37.0 --replicas=0 " +
			"&& kubectl -n shop label deployment karpenter app.kubernetes.io/name=karpenter"
		found = "kubectl -n kube-system get deployment cluster-autoscaler -o jsonpath='{.metadata.generation}'; " +
			"kubectl get nodepools,ec2nodeclasses -o jsonpath='{.items[*].metadata.uid}'; " + charted
	)
	s.Chapter("Names in AWS that are taken", func() {
		for _, role := range []string{"demo-karpenter-nodes", "demo-karpenter-build-nodes"} {
			s.Type("aws iam create-role --role-name " + role + " --query Role.Arn --output text --assume-role-policy-document " +
				argument(trusting("ec2.amazonaws.com", "sts:AssumeRole")))
		}
		s.Put("build_node_enabled", "true")
		s.Put("build_node_minimal_role_enabled", "true")
		// A rack that was just turned off had a queue of that name, and SQS reserves the name for a minute.
		s.Until("a queue of theirs", "aws sqs create-queue --queue-name demo-karpenter > /dev/null && echo made", "made", 2*time.Minute)
		s.Type("aws ec2 create-tags --resources " + subnet + " --tags Key=karpenter.sh/discovery,Value=other")
		untouched := s.Output(found)
		lagsEnd(s)
		s.Put("karpenter_enabled", "true")
		s.Rejected("demo-karpenter-nodes", "demo-karpenter-build-nodes", "queue demo-karpenter", "karpenter.sh/discovery=other")
		s.Refused("aws iam get-role --role-name demo-karpenter", "NoSuchEntity")
		s.Check("Cluster Autoscaler, pools and Karpenter's objects", found, untouched)
	})

	s.Chapter("Names in the cluster that are taken", func() {
		s.Type("aws iam delete-role --role-name demo-karpenter-nodes; aws iam delete-role --role-name demo-karpenter-build-nodes")
		s.Unset("build_node_minimal_role_enabled", "build_node_enabled")
		s.Type("aws sqs delete-queue --queue-url " + queueURL)
		s.Type("aws ec2 create-tags --resources " + subnet + " --tags Key=karpenter.sh/discovery,Value=demo")
		s.Type(theirs)
		s.Type(poolOf("workload"))
		untouched := s.Output(found)
		queueLagsEnd(s)
		s.Request()
		s.Rejected("Deployment/shop/karpenter", "NodePool/workload")
		s.Refused("aws iam get-role --role-name demo-karpenter", "NoSuchEntity")
		s.Check("Cluster Autoscaler, pools and Karpenter's objects", found, untouched)
	})

	s.Chapter("Out of the way", func() {
		s.Type("kubectl -n shop delete deployment karpenter")
		s.Type("kubectl delete nodepool workload")
		s.Request()
		s.Reconciled() // after SQS has let go of the queue's name
		s.Check("NodePool workload is Ready", ready, "True")
	})
}
