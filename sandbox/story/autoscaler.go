package story

import (
	"fmt"
	"strings"
	"time"
)

// Autoscaler checks Cluster Autoscaler's settings without additional groups, with one, with other limits of it, without
// it again, and with Karpenter off. It then checks a Deployment with another name, two of them, and none.
func Autoscaler(t *Teller) {
	const (
		describe = "aws eks describe-nodegroup --cluster-name demo --nodegroup-name "
		of       = describe + "system --query nodegroup."
		create   = `aws eks create-nodegroup --cluster-name demo --nodegroup-name batch --node-role "$(` + of +
			`nodeRole --output text)" --subnets $(` + of + `subnets --output text) ` +
			`--launch-template "id=$(` + of +
			`launchTemplate.id --output text),version=1" --instance-types m5.large --scaling-config minSize=0,desiredSize=0,maxSize=2 ` +
			`--labels convox.io/label=batch --query nodegroup.status --output text`
		update  = "aws eks update-nodegroup-config --cluster-name demo --nodegroup-name batch --query update.status --output text "
		active  = describe + "batch --query nodegroup.status --output text"
		asg     = describe + "batch --query 'nodegroup.resources.autoScalingGroups[0].name' --output text"
		groups  = "aws eks list-nodegroups --cluster-name demo --query 'sort(nodegroups)' --output text | tr '\\t' ' '"
		command = `kubectl -n kube-system get deployment cluster-autoscaler -o jsonpath='{.spec.template.spec.containers[0].command}'`
	)
	before := asBefore(t)
	t.Check("replicas without additional groups", scale("kube-system/cluster-autoscaler"), "0")

	t.Chapter("An additional node group, and not a dedicated one")
	t.Type(create)
	t.Until("the group", active, "ACTIVE", time.Minute)
	t.Check("request", fullPass, "0")
	t.Until("status", state, "Rejected", time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Contains("it names the group", status, "batch")
	t.Check("replicas", scale("kube-system/cluster-autoscaler"), "0")

	t.Chapter("A dedicated one")
	t.Type(update + "--taints 'addOrUpdateTaints=[{key=dedicated,value=batch,effect=NO_SCHEDULE}]'")
	t.Until("the group", active, "ACTIVE", time.Minute)
	repair(t)
	name := t.Ask(asg)
	t.Check("replicas, and where it may run", autoscalerPinning, "1 true")
	t.Contains("what it scales", command, `"--nodes=0:2:`+name+`"`)
	t.Check("discovery", command+" | grep -c node-group-auto-discovery || true", "0")
	t.Contains("the other arguments are as they were", command,
		`"./cluster-autoscaler","--v=4","--stderrthreshold=info","--cloud-provider=aws","--skip-nodes-with-local-storage=false",`+
			`"--expander=least-waste"`)

	t.Chapter("Other limits")
	t.Type(update + "--scaling-config minSize=0,desiredSize=0,maxSize=5")
	t.Until("the group", active, "ACTIVE", time.Minute)
	repair(t)
	t.Contains("what it scales", command, `"--nodes=0:5:`+name+`"`)
	unchanged(t)

	t.Chapter("Off, and on again, with that group")
	off(t)
	t.Check("Cluster Autoscaler is as it was, byte for byte", autoscaler, before)
	on(t)
	t.Check("replicas, and where it may run", autoscalerPinning, "1 true")
	t.Contains("what it scales", command, `"--nodes=0:5:`+name+`"`)

	t.Chapter("Without the group")
	t.Type("aws eks delete-nodegroup --cluster-name demo --nodegroup-name batch --query nodegroup.status --output text")
	t.Until("node groups", groups, "build system", 2*time.Minute)
	repair(t)
	t.Check("replicas", scale("kube-system/cluster-autoscaler"), "0")

	t.Chapter("Without a pool for builds, and with it again")
	t.Type(put + "build_node_enabled --value false")
	t.Type("sawhorse watch demo")
	t.Check("build group (min, desired, max)", buildGroup, "1 1 3")
	t.Contains("the status says why", status, "Node group build had been brought to zero")
	t.Check("NodePool build", "kubectl get nodepool build -o name --ignore-not-found", "")
	t.Check("replicas, and where it may run", autoscalerPinning, "1 true")
	t.Contains("what it scales", command, `"--nodes=1:3:`+t.Ask(strings.ReplaceAll(asg, "batch", "build"))+`"`)
	unchanged(t)
	t.Contains("but that the group has nodes", status, "build node groups with nodes and no pool to replace them: build")
	t.Type(buildPool)
	t.Type("sawhorse watch demo")
	t.Check("build group (min, desired, max)", buildGroup, "0 0 3")
	t.Check("replicas", scale("kube-system/cluster-autoscaler"), "0")

	t.Chapter("Two of them")
	t.Type(renamed("scaler"))
	t.Check("request", fullPass, "0")
	t.Until("status", state, "Rejected", time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Contains("it names both", status, "kube-system/cluster-autoscaler, shop/scaler")
	t.Check("the second one's replicas", scale("shop/scaler"), "1")

	t.Chapter("Off while there are two: what was handed over comes back")
	off(t)
	t.Check("Cluster Autoscaler is as it was, byte for byte", autoscaler, before)

	t.Chapter("Another name")
	saved := t.Ask("kubectl -n kube-system get deployment cluster-autoscaler -o jsonpath='{.spec}'")
	t.Type("kubectl -n kube-system delete deployment cluster-autoscaler")
	on(t)
	t.Check("it is found by its image", scale("shop/scaler"), "0")
	off(t)
	t.Check("and comes back", scale("shop/scaler"), "1")

	t.Chapter("None")
	t.Type("kubectl -n shop delete deployment scaler")
	on(t)
	t.Contains("the status says so", status, "No Cluster Autoscaler was found")
	for _, limit := range []string{"200", "unset"} {
		t.Type(put + "karpenter_cpu_limit --type String --value " + limit)
		t.Type("sawhorse watch demo")
		t.Contains("and goes on saying so", status, "No Cluster Autoscaler was found")
	}
	t.Type(`kubectl apply -f - <<'EOF'
{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "cluster-autoscaler", "namespace": "kube-system",
 "labels": {"app": "cluster-autoscaler"}}, "spec": ` + saved + `}
EOF`)
	repair(t)
	t.Check("one that comes later is handed over too", scale("kube-system/cluster-autoscaler"), "0")
	t.Check("and the status says it no more", status+" | grep -c 'No Cluster Autoscaler' || true", "0")
}

// scale returns the command that prints a Deployment's replicas.
func scale(key string) string {
	namespace, name, _ := strings.Cut(key, "/")
	return fmt.Sprintf("kubectl -n %s get deployment %s -o jsonpath='{.spec.replicas}'", namespace, name)
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
