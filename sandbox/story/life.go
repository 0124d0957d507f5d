package story

import (
	"fmt"
	"strings"
	"time"
)

// Commands for the scripts about a rack's life.
const (
	status    = "aws ssm get-parameter --name /sawhorse/racks/demo/status --query Parameter.Value --output text"
	claims    = "kubectl get nodeclaims -o name"
	nodes     = "kubectl get nodes -l karpenter.sh/nodepool -o name"
	simulated = "kubectl -n kube-system get configmaps -o name | grep kwok-aws-instances || true"
	releases  = "kubectl -n kube-system get secrets -l owner=helm -o jsonpath='{.items[*].metadata.labels.name}'"
	bus       = `aws events put-events --query FailedEntryCount --output text --entries `
	fullPass  = bus + `'[{"EventBusName":"sawhorse","Source":"operator","DetailType":"Rack Reconcile Requested",` +
		`"Detail":"{\"rack\":\"demo\",\"full\":true}"}]'`
	forced = bus + `'[{"EventBusName":"sawhorse","Source":"operator","DetailType":"Rack Reconcile Requested",` +
		`"Detail":"{\"rack\":\"demo\",\"force\":true}"}]'`
	turnOn  = put + "karpenter_enabled --value true --type String"
	turnOff = put + "karpenter_enabled --value false --type String"
)

// Off turns Karpenter off in the rack demo, unless it is off or has never been on.
func Off(t *Teller) {
	if t.Ask(controllerName) == "" {
		t.hold("Karpenter is off")
		return
	}
	t.Type(turnOff)
	t.Type("sawhorse watch demo")
	t.Check("status", state, "Reconciled")
}

// OffAgain turns Karpenter on, if it has never been on, and off. The CRDs exist afterwards.
func OffAgain(t *Teller) {
	if t.Ask("kubectl get crd nodepools.karpenter.sh -o name --ignore-not-found") == "" {
		Enabled(t)
	}
	Off(t)
}

// repair requests a full pass and waits until it has ended.
func repair(t *Teller) {
	const count = leaseOf + "Item.served.N" // not the status, which is not written again if it is unchanged
	before := t.Ask(count)
	t.Check("request", fullPass, "0")
	t.Until("a full pass has ended", fmt.Sprintf(`[ "$(%s)" = %s ] || echo yes`, count, before), "yes", time.Minute)
	t.Until("the pass has ended", running, "0", 3*time.Minute)
}

// unchanged checks that a full pass finds nothing to repair.
func unchanged(t *Teller) {
	t.Type(countAnew)
	repair(t)
	t.Check("calls of the functions that write, beside their own records and what is applied as it is",
		changing+" | grep -v ' kubernetes apply ' || true", "")
	t.Check("status", state, "Reconciled")
}

// on turns Karpenter on and waits for it.
func on(t *Teller) {
	began := time.Now()
	t.Type(turnOn)
	t.Type("sawhorse watch demo")
	t.Check("status", state, "Reconciled")
	t.Check("NodePool workload is Ready", ready, "True")
	t.Note("on", time.Since(began))
}

// off turns Karpenter off and waits until it has been removed.
func off(t *Teller) {
	began := time.Now()
	t.Type(turnOff)
	t.Type("sawhorse watch demo")
	t.Check("status", state, "Reconciled")
	t.Note("off", time.Since(began))
}

// app is a Deployment of a script, in namespace shop.
type app struct {
	name     string
	replicas int
	cpu      string
	more     string // further fields of the pod's metadata, in YAML
	spec     string // further fields of the pod's spec, in YAML
}

// crowd has three pods, each too large for a system node; single has one.
var (
	crowd  = app{name: "orders", replicas: 3, cpu: `"2"`}
	single = app{name: "orders", replicas: 1, cpu: `"2"`}
)

// apply returns the command that creates the Deployment.
func (a app) apply() string {
	return fmt.Sprintf(`kubectl apply -f - <<'EOF'
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: shop}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}%[4]s}
    spec:
      containers: [{name: web, image: "public.ecr.aws/nginx/nginx:1.29", resources: {requests: {cpu: %[3]s, memory: 64Mi}}}]%[5]s
EOF`, a.name, a.replicas, a.cpu, prefixed(", ", a.more), prefixed("\n      ", a.spec))
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// runs returns the command that prints how many of its pods are available.
func (a app) runs() string {
	return "kubectl -n shop get deployment " + a.name + " -o jsonpath='{.status.availableReplicas}'"
}

// where returns the command that prints the NodePools of its pods' nodes.
func (a app) where() string {
	return "kubectl -n shop get pods -l app=" + a.name +
		" -o jsonpath='{.items[*].spec.nodeName}' | xargs kubectl get nodes --no-headers " +
		`-o custom-columns='pool:.metadata.labels.karpenter\.sh/nodepool' | sort -u | paste -sd' '`
}

// pod returns the command that prints the name of its first pod, node the one for that pod's node.
func (a app) pod() string {
	return "kubectl -n shop get pods -l app=" + a.name + " -o jsonpath='{.items[0].metadata.name}'"
}

func (a app) node() string {
	return "kubectl -n shop get pods -l app=" + a.name + " -o jsonpath='{.items[0].spec.nodeName}'"
}

// start creates the Deployment and waits until its pods run. It prints how long that took.
func (a app) start(t *Teller) {
	t.Type(a.apply())
	t.Until(fmt.Sprintf("pods of %s that run", a.name), a.runs(), fmt.Sprint(a.replicas), time.Minute)
}

// end deletes the Deployment.
func (a app) end(t *Teller) { t.Type("kubectl -n shop delete deployment " + a.name) }

// withoutKarpenter checks the cluster after Karpenter has been turned off: nothing that was created for Karpenter is
// left, and everything else is as it was before.
func withoutKarpenter(t *Teller, autoscalerBefore string) {
	t.Check("Cluster Autoscaler is as it was, byte for byte", autoscaler, autoscalerBefore)
	t.Check("build group (min, desired, max)", buildGroup, "1 1 3")
	t.Check("metrics-server is pinned to", pinned, "")
	t.Check("NodePools, EC2NodeClasses and NodeClaims", "kubectl get nodepools,ec2nodeclasses,nodeclaims -o name", "")
	t.Check("nodes of NodePools", nodes, "")
	t.Check("simulated instances", simulated, "")
	t.Check("Karpenter's Deployment", controllerName, "")
	t.Check("Helm releases", releases, "karpenter-crd")
	t.Refused("aws iam get-role --role-name demo-karpenter", "NoSuchEntity")
	t.Refused("aws iam get-role --role-name demo-karpenter-nodes", "NoSuchEntity")
	t.Check("instance profiles", instanceProfiles, "0")
	t.Refused("aws sqs get-queue-url --queue-name demo-karpenter", "NonExistentQueue")
	t.Refused("aws events describe-rule --name demo-karpenter", "ResourceNotFoundException")
	t.Check("pod identity associations", podIdentities, "0")
	t.Check("outputs", "aws ssm get-parameters-by-path --path /sawhorse/racks/demo/outputs --query 'length(Parameters)' --output text", "0")
	t.Say("What karpenter_auth_mode brought stays: it is one-way, and costs nothing.")
	t.Check("access mode", accessMode, "API_AND_CONFIG_MAP")
	t.Check("system group's label",
		`aws eks describe-nodegroup --cluster-name demo --nodegroup-name system `+
			`--query 'nodegroup.labels."convox.io/system-node"' --output text`, "true")
	t.Check("subnets and groups with the discovery tag", tagged+" | sed 's/^0$/none/;s/^[0-9]*$/some/'", "some")
	t.Contains("CRDs", "kubectl get crds -o name", "customresourcedefinition.apiextensions.k8s.io/nodepools.karpenter.sh")
}

// asBefore derives Cluster Autoscaler's settings before Karpenter from the current ones. Sawhorse
// changes only its replicas.
func asBefore(t *Teller) string {
	_, line, _ := strings.Cut(t.Ask(autoscaler), " ")
	return "1 " + line
}
