package story

import (
	"fmt"
)

// Guards turns Karpenter off while the pods on Karpenter's nodes fit nowhere else, and while there is a NodePool that
// Sawhorse did not make. Both are rejected with a remedy before any call that writes. force overrides them.
func Guards(s *Script) {
	const (
		pools = "kubectl get nodepools,ec2nodeclasses " +
			"-o jsonpath='{range .items[*]}{.kind} {.metadata.name} {.metadata.deletionTimestamp}{\"\\n\"}{end}'"
	)
	s.Chapter("Off, where the pods would have no place", func() {
		system := s.Output(systemGroup)
		crowd.start(s)
		s.Type("kubectl wait nodeclaims --all --for=condition=Registered --timeout=30s")
		untouched := s.Output(pools)
		s.resetCalls()
		s.Put("karpenter_enabled", "false")
		s.Rejected()
		s.Equal("calls that write, beside Sawhorse's own records", s.writes(), "[]")
		s.Check("Cluster Autoscaler's replicas", autoscalerReplicas, "0")
		s.Check("build group (min, desired, max)", buildGroup, "0 0 3")
		s.Check("system group (min, desired, max)", systemGroup, system)
		s.Type("sawhorse status demo || true")
		s.Says("cpu", `"force": ["room"]`)
		s.Check("NodePools and EC2NodeClasses", pools, untouched)
		s.Check("pods of orders that run", crowd.runs(), "3")
	})

	s.Chapter("Off, where others have a NodePool", func() {
		s.Type(poolOf("theirs"))
		s.Request()
		s.Rejected("theirs")
		s.Equal("calls that write, beside Sawhorse's own records", s.writes(), "[]")
	})

	s.Chapter("One word lifts one guard", func() {
		s.Force("room")
		s.Rejected("theirs", `"force": ["foreign-pools"]`)
		s.Equal("calls that write, beside Sawhorse's own records", s.writes(), "[]")
	})

	s.Chapter("Off, all the same", func() {
		s.Put(change, `{"set": {"karpenter_enabled": "false"}, "force": ["room", "foreign-pools"]}`)
		s.Reconciled()
		s.Says("Pods without a place stay Pending", "did not make: theirs")
		s.Check("NodePools", "kubectl get nodepools -o name", "nodepool.karpenter.sh/theirs")
		crowd.end(s)
		s.Type("kubectl delete nodepool theirs")
		withoutKarpenter(s)
	})
}

const (
	systemGroup = "aws eks describe-nodegroup --cluster-name demo --nodegroup-name system " +
		"--query 'nodegroup.scalingConfig.[minSize,desiredSize,maxSize]' --output text | tr '\\t' ' '"
)

// poolOf returns the command that creates a NodePool that Sawhorse did not make.
func poolOf(name string) string {
	return fmt.Sprintf(`kubectl apply --server-side -f - <<'EOF'
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: %s, labels: {team: theirs}}
spec:
  limits: {cpu: "3"}
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: workload}
      requirements: [{key: kubernetes.io/arch, operator: In, values: [amd64]}]
EOF`, name)
}
