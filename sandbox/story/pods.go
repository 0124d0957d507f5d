package story

import (
	"fmt"
	"time"
)

// claim reads a field of the workload pool's NodeClaims.
const claim = "kubectl get nodeclaims -l karpenter.sh/nodepool=workload -o jsonpath="

// Pods checks Karpenter's purpose: unschedulable pods get a node within seconds, builds get nodes of their own, a spot
// node that is to be interrupted is replaced, and an empty node is removed.
func Pods(t *Teller) {
	const (
		settings = `{"rack":"demo","set":{"karpenter_capacity_types":"spot,on-demand","karpenter_consolidate_after":"1s",` +
			`"karpenter_build_consolidate_after":"1s"}}`
		back  = `{"rack":"demo","unset":["karpenter_capacity_types","karpenter_consolidate_after","karpenter_build_consolidate_after"]}`
		queue = `aws sqs get-queue-attributes --queue-url "$(aws sqs get-queue-url --queue-name demo-karpenter --query QueueUrl ` +
			`--output text)" --attribute-names ApproximateNumberOfMessages --query Attributes.ApproximateNumberOfMessages --output text`
		builds = "kubectl get nodes -l convox-build=true,karpenter.sh/nodepool=build -o "
	)
	// A Deployment and not a single pod: the taint of a node that is not registered yet may still evict a pod that
	// arrives at that moment.
	builder := app{
		name: "builder", replicas: 1, cpu: "50m",
		spec: "nodeSelector: {convox-build: \"true\"}\n      tolerations: [{key: dedicated, value: build, effect: NoSchedule}]",
	}
	t.Chapter("Spot where there is some; idle nodes go at once")
	request(t, settings)
	t.Until("NodePools", poolsReady, "build=True workload=True", time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)

	t.Chapter("A build has a node of its own")
	builder.start(t)
	t.Check("its node has the taint",
		builds+`jsonpath='{.items[0].spec.taints[?(@.key=="dedicated")].value}:{.items[0].spec.taints[?(@.key=="dedicated")].effect}'`,
		"build:NoSchedule")
	builder.end(t)

	t.Chapter("Pods that fit nowhere have a node in seconds")
	crowd.start(t)
	t.Check("the NodePool of their nodes", crowd.where(), "workload")
	t.Type("kubectl wait nodeclaims -l karpenter.sh/nodepool=workload --for=condition=Registered --timeout=30s")
	t.Type("kubectl get nodeclaims,nodes -L karpenter.sh/nodepool,karpenter.sh/capacity-type,node.kubernetes.io/instance-type")

	t.Chapter("A spot instance is to be interrupted")
	instance, node := t.Ask(claim+"'{.items[0].status.providerID}' | sed 's,.*/,,'"), t.Ask(claim+"'{.items[0].status.nodeName}'")
	t.Check("capacity type", claim+"'{.items[*].metadata.labels.karpenter\\.sh/capacity-type}' | tr ' ' '\\n' | sort -u", "spot")
	t.Say("EC2 puts the warning on the default bus (the sandbox plays EC2 here), and rule demo-karpenter brings it to the queue.")
	t.Type(fmt.Sprintf(`curl -s "$AWS_ENDPOINT_URL/_sandbox/events" -d '{"Source":"aws.ec2",`+
		`"DetailType":"EC2 Spot Instance Interruption Warning","Detail":{"instance-id":"%s","instance-action":"terminate"}}'`, instance))
	t.Until("the node", "kubectl get node "+node+" -o name --ignore-not-found", "", time.Minute)
	t.Until("pods of orders that run", crowd.runs(), "3", time.Minute)
	t.Check("the NodePool of their nodes", crowd.where(), "workload")
	t.Check("messages in the queue", queue, "0")

	t.Chapter("Nodes that have become empty go")
	crowd.end(t)
	t.Until("nodes of NodePools", nodes, "", 2*time.Minute)
	request(t, back)
	t.Until("NodePools", poolsReady, "build=True workload=True", time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Check("status", state, "Reconciled")
}

// pending is the demo's chapter about pending pods.
func pending(t *Teller) {
	t.Chapter("d. Pending pods have a node in seconds")
	crowd.start(t)
	t.Check("the NodePool of their nodes", crowd.where(), "workload")
	t.Type("kubectl get nodes -L karpenter.sh/nodepool,node.kubernetes.io/instance-type,topology.kubernetes.io/zone")
	crowd.end(t)
}
