package story

import (
	"fmt"
	"strings"
	"time"
)

// Autoscaler checks Cluster Autoscaler's settings without additional groups, with one, with other limits of it, without
// it again, and with Karpenter off. It then checks a Deployment with another name, two of them, and none.
func Autoscaler(s *Script) {
	const (
		describe = "aws eks describe-nodegroup --cluster-name demo --nodegroup-name "
		update   = "aws eks update-nodegroup-config --cluster-name demo --nodegroup-name batch --query update.status --output text "
		active   = describe + "batch --query nodegroup.status --output text"
		asg      = describe + "batch --query 'nodegroup.resources.autoScalingGroups[0].name' --output text"
		scaler   = "kubectl -n shop get deployment scaler -o jsonpath='{.spec.replicas}'"
		groups   = "aws eks list-nodegroups --cluster-name demo --query 'sort(nodegroups)' --output text | tr '\\t' ' '"
	)
	name := "" // of the Auto Scaling group
	s.Check("replicas without additional groups", autoscalerReplicas, "0")

	s.Chapter("An additional node group, and not a dedicated one", func() {
		s.Type(createGroup("batch", `--launch-template "id=$(`+ofSystem+`launchTemplate.id --output text),version=1" `+
			`--scaling-config minSize=0,desiredSize=0,maxSize=2 --labels convox.io/label=batch`))
		s.Until("the group", active, "ACTIVE", time.Minute)
		s.Request("full")
		s.Rejected("batch")
		s.Check("replicas", autoscalerReplicas, "0")
	})

	s.Chapter("A dedicated one", func() {
		s.Type(update + "--taints 'addOrUpdateTaints=[{key=dedicated,value=batch,effect=NO_SCHEDULE}]'")
		s.Until("the group", active, "ACTIVE", time.Minute)
		s.FullPass()
		name = s.Output(asg)
		s.Check("replicas, and where it may run", autoscalerPinning, "1 true")
		s.Contains("what it scales", autoscalerCommand, `"--nodes=0:2:`+name+`"`)
		s.Lacks("discovery", autoscalerCommand, "node-group-auto-discovery")
		s.Contains("the other arguments are as they were", autoscalerCommand,
			`"./cluster-autoscaler","--v=4","--stderrthreshold=info","--cloud-provider=aws","--skip-nodes-with-local-storage=false",`+
				`"--expander=least-waste"`)
	})

	s.Chapter("Other limits", func() {
		s.Type(update + "--scaling-config minSize=0,desiredSize=0,maxSize=5")
		s.Until("the group", active, "ACTIVE", time.Minute)
		s.FullPass()
		s.Contains("what it scales", autoscalerCommand, `"--nodes=0:5:`+name+`"`)
		unchanged(s)
	})

	s.Chapter("Off, and on again, with that group", func() {
		off(s)
		s.Check("Cluster Autoscaler is as it was, byte for byte", autoscaler, autoscalerBefore)
		on(s)
		s.Check("replicas, and where it may run", autoscalerPinning, "1 true")
		s.Contains("what it scales", autoscalerCommand, `"--nodes=0:5:`+name+`"`)
	})

	s.Chapter("Without the group", func() {
		s.Type("aws eks delete-nodegroup --cluster-name demo --nodegroup-name batch --query nodegroup.status --output text")
		s.Until("node groups", groups, "build system", 2*time.Minute)
		s.FullPass()
		s.Check("replicas", autoscalerReplicas, "0")
	})

	s.Chapter("Without a pool for builds, and with it again", func() {
		s.Reconciled(s.Put("build_node_enabled", "false"))
		s.Check("build group (min, desired, max)", buildGroup, "1 1 3")
		s.Says("Node group build had been brought to zero")
		s.Say("The pool goes with the node that it had to show before the build group was emptied.")
		s.Until("nodes of NodePool build", "kubectl get nodes -l karpenter.sh/nodepool=build -o name", "", 4*time.Minute)
		s.FullPass()
		s.Check("NodePool build", "kubectl get nodepool build -o name --ignore-not-found", "")
		s.Check("replicas, and where it may run", autoscalerPinning, "1 true")
		s.Contains("what it scales", autoscalerCommand, `"--nodes=1:3:`+s.Output(strings.ReplaceAll(asg, "batch", "build"))+`"`)
		unchanged(s)
		s.Says("build node groups with nodes and no pool to replace them: build")
		s.Reconciled(s.Put("build_node_enabled", "true"))
		s.Check("build group (min, desired, max)", buildGroup, "0 0 3")
		s.Check("replicas", autoscalerReplicas, "0")
	})

	s.Chapter("Two of them", func() {
		s.Type(renamed("scaler"))
		s.Request("full")
		s.Rejected("kube-system/cluster-autoscaler, shop/scaler")
		s.Check("the second one's replicas", scaler, "1")
	})

	s.Chapter("Off while there are two: what was handed over comes back", func() {
		off(s)
		s.Check("Cluster Autoscaler is as it was, byte for byte", autoscaler, autoscalerBefore)
	})

	saved := ""
	s.Chapter("Another name", func() {
		saved = s.Output("kubectl -n kube-system get deployment cluster-autoscaler -o jsonpath='{.spec}'")
		s.Type("kubectl -n kube-system delete deployment cluster-autoscaler")
		on(s)
		s.Check("it is found by its image", scaler, "0")
		off(s)
		s.Check("and comes back", scaler, "1")
	})

	s.Chapter("None", func() {
		s.Type("kubectl -n shop delete deployment scaler")
		on(s)
		s.Says("No Cluster Autoscaler was found")
		for _, limit := range []string{"200", "unset"} {
			s.Reconciled(s.Put("karpenter_cpu_limit", limit))
			s.Says("No Cluster Autoscaler was found")
		}
		s.Type(`kubectl apply -f - <<'EOF'
{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "cluster-autoscaler", "namespace": "kube-system",
 "labels": {"app": "cluster-autoscaler"}}, "spec": ` + saved + `}
EOF`)
		s.FullPass()
		s.Check("one that comes later is handed over too", autoscalerReplicas, "0")
		s.Omits("No Cluster Autoscaler")
	})
}

// ofSystem begins the command that prints a field of the node group system.
const ofSystem = "aws eks describe-nodegroup --cluster-name demo --nodegroup-name system --query nodegroup."

// createGroup returns the command that creates a node group with the role and the subnets of the group system.
func createGroup(name, options string) string {
	return "aws eks create-nodegroup --cluster-name demo --nodegroup-name " + name + ` --node-role "$(` + ofSystem +
		`nodeRole --output text)" --subnets $(` + ofSystem + "subnets --output text) --instance-types m5.large " + options +
		" --query nodegroup.status --output text"
}

// renamed returns the command that creates a Cluster Autoscaler with another name.
func renamed(name string) string {
	return fmt.Sprintf(`kubectl apply -f - <<'EOF'
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: shop}
spec:
  replicas: 1
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      containers: [{name: main, image: "registry.k8s.io/autoscaling/cluster-autoscaler:v1.35.0",
        command: [./cluster-autoscaler, "--nodes=1:3:some-asg"]}]
EOF`, name)
}
