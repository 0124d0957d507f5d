package story

import "time"

// Collisions turns Karpenter on where others own resources of the same names: first in AWS, then in the cluster. Each
// time all conflicts are reported together, and nothing changes until they are resolved.
func Collisions(t *Teller) {
	const (
		subnet = `"$(aws eks describe-cluster --name demo --query 'cluster.resourcesVpcConfig.subnetIds[0]' --output text)"`
		trust  = `'{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"ec2.amazonaws.com"},` +
			`"Action":"sts:AssumeRole"}]}'`
		theirs = "kubectl -n shop create deployment karpenter --image=public.ecr.aws/karpenter/controller:0.37.0 --replicas=0 " +
			"&& kubectl -n shop label deployment karpenter app.kubernetes.io/name=karpenter"
		request = bus +
			`'[{"EventBusName":"sawhorse","Source":"operator","DetailType":"Rack Reconcile Requested","Detail":"{\"rack\":\"demo\"}"}]'`
		found = "kubectl -n kube-system get deployment cluster-autoscaler -o jsonpath='{.metadata.generation}'; " +
			"kubectl get nodepools,ec2nodeclasses -o jsonpath='{.items[*].metadata.uid}'; " + releases
	)
	t.Chapter("Names in AWS that are taken")
	t.Type("aws iam create-role --role-name demo-karpenter-nodes --assume-role-policy-document " + trust +
		" --query Role.Arn --output text")
	// A rack that was just turned off had a queue of that name, and SQS reserves the name for a minute.
	t.Until("a queue of theirs", "aws sqs create-queue --queue-name demo-karpenter > /dev/null && echo made", "made", 2*time.Minute)
	t.Type("aws ec2 create-tags --resources " + subnet + " --tags Key=karpenter.sh/discovery,Value=other")
	untouched := t.Ask(found)
	known(t)
	t.Type(turnOn)
	t.Until("status", state, "Rejected", time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	for _, name := range []string{"demo-karpenter-nodes", "queue demo-karpenter", "karpenter.sh/discovery=other"} {
		t.Contains("it names", status, name)
	}
	t.Refused("aws iam get-role --role-name demo-karpenter", "NoSuchEntity")
	t.Check("Cluster Autoscaler, pools and releases", found, untouched)

	t.Chapter("Names in the cluster that are taken")
	t.Type("aws iam delete-role --role-name demo-karpenter-nodes")
	t.Type(`aws sqs delete-queue --queue-url "$(aws sqs get-queue-url --queue-name demo-karpenter --query QueueUrl --output text)"`)
	t.Type("aws ec2 create-tags --resources " + subnet + " --tags Key=karpenter.sh/discovery,Value=demo")
	t.Type(theirs)
	t.Type(poolOf("workload"))
	untouched = t.Ask(found)
	gone(t)
	t.Check("request", request, "0")
	t.Until("it names the Deployment", status+" | grep -c Deployment/shop/karpenter || true", "1", time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Check("status", state, "Rejected")
	t.Contains("and the NodePool", status, "NodePool/workload")
	t.Refused("aws iam get-role --role-name demo-karpenter", "NoSuchEntity")
	t.Check("Cluster Autoscaler, pools and releases", found, untouched)

	t.Chapter("Out of the way")
	t.Type("kubectl -n shop delete deployment karpenter")
	t.Type("kubectl delete nodepool workload")
	t.Check("request", request, "0")
	t.Until("NodePool workload is Ready, after SQS has let go of the queue's name", ready, "True", 4*time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Check("status", state, "Reconciled")
}
