package story

import (
	"net/http"
	"time"
)

// Pods checks Karpenter's purpose: unschedulable pods get a node within seconds, builds get nodes of their own, a spot
// node that is to be interrupted is replaced, and an empty node is removed.
func Pods(s *Script) {
	const (
		queue = "aws sqs get-queue-attributes --queue-url " + queueURL +
			" --attribute-names ApproximateNumberOfMessages --query Attributes.ApproximateNumberOfMessages --output text"
		builds = "kubectl get nodes -l convox-build=true,karpenter.sh/nodepool=build -o "
	)
	s.Chapter("Spot where there is some; idle nodes go at once", func() {
		s.Change(map[string]string{"karpenter_capacity_types": "spot,on-demand", "karpenter_consolidate_after": "1s",
			"karpenter_build_consolidate_after": "1s"})
		s.Reconciled()
		s.Check("NodePools", poolsReady, "build=True workload=True")
		s.Reconciled(s.Request("full")) // which looks for EC2's service-linked role for spot
		s.Until("the first nodes have gone", nodes, "", 2*time.Minute)
	})

	s.Chapter("A build has a node of its own", func() {
		builder.start(s)
		s.Check("its node has the taint",
			builds+`jsonpath='{.items[0].spec.taints[?(@.key=="dedicated")].value}:{.items[0].spec.taints[?(@.key=="dedicated")].effect}'`,
			"build:NoSchedule")
		builder.end(s)
	})

	s.Chapter("Pods that fit nowhere have a node in seconds", func() {
		crowd.start(s)
		s.Check("the NodePool of their nodes", crowd.where(), "workload")
		s.Type("kubectl wait nodeclaims -l karpenter.sh/nodepool=workload --for=condition=Registered --timeout=30s")
		s.Type("kubectl get nodeclaims,nodes -L karpenter.sh/nodepool,karpenter.sh/capacity-type,node.kubernetes.io/instance-type")
	})

	s.Chapter("A spot instance is to be interrupted", func() {
		claims := nodeClaims(s, "-l karpenter.sh/nodepool=workload").Items
		for _, claim := range claims {
			s.Equal("capacity type", claim.Metadata.Labels["karpenter.sh/capacity-type"], "spot")
		}
		interrupt(s, claims[0])
		s.Until("the node", "kubectl get node "+claims[0].Status.NodeName+" -o name --ignore-not-found", "", time.Minute)
		s.Until("pods of orders that run", crowd.runs(), "3", time.Minute)
		s.Check("the NodePool of their nodes", crowd.where(), "workload")
		s.Check("messages in the queue", queue, "0")
	})

	s.Chapter("Nodes that have become empty go", func() {
		crowd.end(s)
		s.Until("nodes of NodePools", nodes, "", 2*time.Minute)
		s.Reconciled(s.Change(nil, "karpenter_capacity_types", "karpenter_consolidate_after", "karpenter_build_consolidate_after"))
		s.Check("NodePools", poolsReady, "build=True workload=True")
	})
}

// builder has a pod that runs on nodes for builds. It is a Deployment and not a single pod: the taint of a node that is
// not registered yet may still evict a pod that arrives at that moment.
var builder = app{
	name: "builder", replicas: 1, cpu: "50m",
	spec: "nodeSelector: {convox-build: \"true\"}\n      tolerations: [{key: dedicated, value: build, effect: NoSchedule}]",
}

// interrupt has EC2 warn that it interrupts a NodeClaim's spot instance.
func interrupt(s *Script, claim nodeClaim) {
	s.Say("EC2 puts the warning on the default bus (the sandbox plays EC2 here), and rule demo-karpenter brings it to the queue.")
	s.sandbox(http.MethodPost, "events", object{"Source": "aws.ec2", "DetailType": "EC2 Spot Instance Interruption Warning",
		"Detail": object{"instance-id": claim.instance(), "instance-action": "terminate"}}, nil)
}

// pending is the demo's chapter about pending pods.
func pending(s *Script) {
	s.Chapter("d. Pending pods have a node in seconds", func() {
		crowd.start(s)
		s.Check("the NodePool of their nodes", crowd.where(), "workload")
		s.Type("kubectl get nodes -L karpenter.sh/nodepool,node.kubernetes.io/instance-type,topology.kubernetes.io/zone")
		crowd.end(s)
	})
}
