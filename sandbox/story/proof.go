package story

import (
	"fmt"
	"time"

	"github.com/sawhorse-io/sawhorse/sandbox/chaos/fault"
)

// Proof turns Karpenter on while its first node does not come, for seven reasons, one after the other. Each is named while the
// pass waits, Cluster Autoscaler keeps the cluster, and the pass goes on by itself when the reason is gone. One of them lasts
// until the pass fails.
func Proof(s *Script) {
	const pods = "kubectl -n sawhorse-proof get pods -o name"
	untouched := func() {
		s.Check("Cluster Autoscaler is as it was, byte for byte", autoscaler, autoscalerBefore)
		s.Check("build group (min, desired, max)", buildGroup, "1 1 3")
	}
	// again has Karpenter try at once with another NodeClaim: it waits longer and longer with one that fails. The next iteration
	// of the pass has the whole time again.
	again := func() {
		s.Type("kubectl delete nodeclaims --all --wait=false")
		s.Request()
	}
	refuses := func(code string) {
		refuseLaunches(s, code)
		again()
	}

	s.Chapter("On, up to the proof", func() {
		s.inject(fault.Fault{Call: fault.Call{Function: "proof", Service: "dynamodb"}, Nth: 1, Seconds: 600, Kind: fault.Throttle})
		s.Unset("build_node_enabled")
		s.Put("karpenter_consolidate_after", "1s")
		s.Put("karpenter_auth_mode", "true")
		s.Put("karpenter_enabled", "true")
		s.Until("NodePool workload is Ready", ready, "True", 5*time.Minute)
		untouched()
	})

	s.Chapter("EC2 refuses the first launch: UnauthorizedOperation", func() {
		refuses("UnauthorizedOperation")
		s.Until("the status says why", says("is not authorized"), "is not authorized", 2*time.Minute)
		untouched()
	})

	for _, code := range []string{
		"AuthFailure.ServiceLinkedRoleCreationNotPermitted", "VcpuLimitExceeded", "InsufficientInstanceCapacity",
	} {
		s.Chapter("EC2 refuses the first launch: "+code, func() {
			refuses(code)
			s.Until("the status says why", says(code), code, 2*time.Minute)
			s.Check("the pod that asks for the node", pods, "pod/workload")
			untouched()
		})
	}

	forget := func() {
		s.Say("A new controller of Karpenter does not remember what EC2 has refused.")
		s.Type("kubectl -n kube-system rollout restart deployment karpenter")
		s.Type("kubectl -n kube-system rollout status deployment karpenter --timeout 3m")
	}

	s.Chapter("No address in the subnets, until the pass fails", func() {
		forget()
		refuses("InsufficientFreeAddressesInSubnet")
		s.Failed("pool workload has no first node yet", "InsufficientFreeAddressesInSubnet", "nothing was handed over")
		s.Equal("the step that failed", s.Status().Failure.Step, "proof")
		s.Contains("the remedy", "sawhorse status demo || true", "name larger ones in subnet_ids")
		s.Until("the pod that asked for the node", pods, "", time.Minute)
		untouched()
	})

	s.Chapter("A node that never registers", func() {
		s.inject()
		forbidNodes(s, "karpenter.sh/nodepool")
		forget()
		s.Request()
		s.Until("the status says why", says("Registered=Unknown"), "Registered=Unknown", 2*time.Minute)
		untouched()
	})

	s.Chapter("A CNI that gives no address", func() {
		s.Type("kubectl -n sawhorse-proof annotate pod workload sandbox.sawhorse.dev/no-network=true")
		allowNodes(s)
		again()
		s.Until("the status says why", says("FailedCreatePodSandBox"), "FailedCreatePodSandBox", 3*time.Minute)
		s.Check("its node is Ready", `kubectl get nodes -l karpenter.sh/nodepool=workload `+
			`-o jsonpath='{.items[*].status.conditions[?(@.type=="Ready")].status}'`, "True")
		untouched()
	})

	s.Chapter("Nothing is in the way any more", func() {
		s.Type("kubectl -n sawhorse-proof annotate pod workload sandbox.sawhorse.dev/no-network-")
		s.Reconciled()
		s.Contains("Cluster Autoscaler scales the build group alone", autoscalerCommand, `"--nodes=1:3:`)
		s.Until("the pod that asked for the node", pods, "", time.Minute)
		s.Until("its node, which nothing needs", nodes, "", 2*time.Minute)
	})

	s.Chapter("What was handed over is asked for nothing", func() {
		unchanged(s)
		s.Reconciled(s.Put("karpenter_cpu_limit", "1"))
		s.Until("nodes of NodePools", nodes, "", time.Minute)
		s.Unset("karpenter_cpu_limit", "karpenter_consolidate_after")
		s.Reconciled()
	})
}

// says returns the command that prints a text if the running pass waits for something that has it.
func says(text string) string {
	return "(sawhorse status demo 2>/dev/null || true) | grep 'a pass is running' | grep -o '" + text + "' | head -1"
}

// forbidNodes has the API server refuse nodes with a label, as if they could not reach it, until allowNodes.
func forbidNodes(s *Script, label string) {
	s.Type(fmt.Sprintf(`kubectl apply -f - <<'EOF'
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-nodes}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [nodes]}]
  validations:
  - {expression: "!has(object.metadata.labels) || !('%[1]s' in object.metadata.labels)", message: "no nodes"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-nodes}
spec: {policyName: no-nodes, validationActions: [Deny]}
EOF`, label))
	probe := "(kubectl create --dry-run=server -f - 2>&1 <<'EOF' || true\n" +
		"{apiVersion: v1, kind: Node, metadata: {name: probe, labels: {\"" + label + "\": probe}}}\nEOF\n) | grep -o 'no nodes' | head -1"
	s.Until("nodes are refused", probe, "no nodes", time.Minute)
}

func allowNodes(s *Script) {
	s.Type("kubectl delete validatingadmissionpolicybindings,validatingadmissionpolicies no-nodes")
}

// SpotRole turns Karpenter on with spot in an account without EC2's service-linked role for it.
func SpotRole(s *Script) {
	const named = " --role-name AWSServiceRoleForEC2Spot"
	trust := s.Output("aws iam get-role --query Role.AssumeRolePolicyDocument --output json" + named)
	create := "aws iam create-role --path /aws-service-role/spot.amazonaws.com/ --assume-role-policy-document " + quoted(trust) + named
	ends := func(state string) {
		s.Await("state", func() string { // replicas of IAM do not show at once that the role is there, or gone
			s.FullPass()
			state, _ := s.state()
			return state
		}, state, 3*time.Minute)
	}
	s.Chapter("Spot in an account that never had any", func() {
		s.Type("aws iam delete-role" + named)
		s.Reconciled(s.Put("karpenter_auth_mode", "true"))
		s.resetCalls()
		s.Put("karpenter_capacity_types", "spot,on-demand")
		s.Put("karpenter_enabled", "true")
		s.Rejected("aws iam create-service-linked-role --aws-service-name spot.amazonaws.com")
		s.Equal("calls that write, beside Sawhorse's own records", s.writes(), "[]")
		s.Check("Karpenter's Deployment", controllerName, "")
	})

	s.Chapter("With the role, it is turned on", func() {
		s.Say("MiniStack gives the role another name, so the script does not use the command.")
		s.Type(create)
		ends("Reconciled") // the pass that turns it on among them
		s.Check("NodePool workload is Ready", ready, "True")
	})

	s.Chapter("An audit looks for the role too", func() {
		s.Type("aws iam delete-role" + named)
		ends("Rejected")
		s.Check("NodePool workload is Ready", ready, "True")
		s.Type(create)
		ends("Reconciled")
		s.Unset("karpenter_capacity_types")
		s.Reconciled()
	})
}

// OffWithoutRoom turns Karpenter off while the nodes do not come that its pods need. Karpenter stays the only autoscaler until
// they come.
func OffWithoutRoom(s *Script) {
	movers := app{name: "movers", replicas: 3, cpu: "900m"}
	const pools = "kubectl get nodepools -o jsonpath='{range .items[*]}{.metadata.name}{.metadata.deletionTimestamp} {end}'"
	s.Chapter("Off, and the nodes do not come", func() {
		movers.start(s)
		forbidNodes(s, "eks.amazonaws.com/nodegroup")
		s.Put("karpenter_enabled", "false")
		s.Until("it waits for nodes", says("wait for further nodes"), "wait for further nodes", 2*time.Minute)
		s.Check("Cluster Autoscaler's replicas", autoscalerReplicas, "0")
		s.Check("NodePools", pools, "build workload")
		s.Check("pods of movers that run", movers.runs(), "3")
	})

	s.Chapter("They come", func() {
		allowNodes(s)
		s.Reconciled()
		s.Check("Cluster Autoscaler's replicas", autoscalerReplicas, "1")
		s.Check("pods of movers that run", movers.runs(), "3")
		movers.end(s)
		withoutKarpenter(s)
	})
}
