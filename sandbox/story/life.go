package story

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Commands for the scripts about a rack's life.
const (
	status    = "aws ssm get-parameter --name /sawhorse/racks/demo/status --query Parameter.Value --output text"
	claims    = "kubectl get nodeclaims -o name"
	nodes     = "kubectl get nodes -l karpenter.sh/nodepool -o name"
	simulated = "kubectl -n kube-system get configmaps -o name | grep kwok-aws-instances || true"
	// charted are the objects of Karpenter's chart.
	charted = "kubectl get -A -o name -l app.kubernetes.io/instance=karpenter deployments,services,serviceaccounts,poddisruptionbudgets," +
		"roles,rolebindings,clusterroles,clusterrolebindings"
)

// autoscalerBefore is what autoscaler prints of the cluster as it is created: Cluster Autoscaler before Karpenter.
const autoscalerBefore = `1 ["./cluster-autoscaler","--v=4","--stderrthreshold=info","--cloud-provider=aws",` +
	`"--skip-nodes-with-local-storage=false","--expander=least-waste",` +
	`"--node-group-auto-discovery=asg:tag=k8s.io/cluster-autoscaler/enabled,k8s.io/cluster-autoscaler/demo","--balance-similar-node-groups"]`

// Off turns Karpenter off in the rack demo, unless it is off or has never been on.
func Off(s *Script) {
	reset(s)
	if s.Output(controllerName) == "" {
		s.pass("Karpenter is off")
		return
	}
	off(s)
}

// OffAgain turns Karpenter on, if it has never been on, and off. The CRDs exist afterwards.
func OffAgain(s *Script) {
	if s.Output("kubectl get crd nodepools.karpenter.sh -o name --ignore-not-found") == "" {
		Enabled(s)
	}
	Off(s)
}

// unchanged checks that a full pass finds nothing to repair.
func unchanged(s *Script) {
	s.resetCalls()
	s.Reconciled(s.Request("full"))
	writes := slices.DeleteFunc(s.writes(), func(call string) bool { return strings.Contains(call, " kubernetes apply ") })
	s.Equal("calls that write, beside records and what is applied as it is", writes, "[]")
}

// on turns Karpenter on and waits for it.
func on(s *Script) {
	s.Reconciled(s.Put("karpenter_enabled", "true"))
	s.Check("NodePool workload is Ready", ready, "True")
}

// off turns Karpenter off and waits until it has been removed.
func off(s *Script) {
	s.Reconciled(s.Put("karpenter_enabled", "false"))
}

// app is a Deployment of a script, in namespace shop.
type app struct {
	name     string
	replicas int
	cpu      string // request of a pod, as YAML has it: `"2"`, 500m
	limits   string // limits of extended resources, in YAML
	more     string // further fields of the pod's metadata, in YAML
	spec     string // further fields of the pod's spec, in YAML; lines after the first are indented by six spaces
}

// crowd has three pods, each too large for a system node; single has one.
var (
	crowd  = app{name: "orders", replicas: 3, cpu: `"2"`}
	single = app{name: "orders", replicas: 1, cpu: `"2"`}
)

// create returns the command that creates the Deployment, in place of the one that the cluster may begin with: what became of that one's
// pods would be a rolling update.
func (a app) create() string {
	return fmt.Sprintf(`kubectl replace --force -f - <<'EOF'
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: shop}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}%[4]s}
    spec:
      containers: [{name: web, image: "public.ecr.aws/nginx/nginx:1.29", resources: {requests: {cpu: %[3]s, memory: 64Mi}%[6]s}}]%[5]s
EOF`, a.name, a.replicas, a.cpu, prefixed(", ", a.more), prefixed("\n      ", a.spec), prefixed(", limits: ", a.limits))
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

// node returns the command that prints the node of the first pod; nothing if it has none.
func (a app) node() string {
	return "kubectl -n shop get pods -l app=" + a.name + " -o jsonpath='{.items[0].spec.nodeName}'"
}

// start creates the Deployment and waits until its pods run. It prints how long that took.
func (a app) start(s *Script) {
	s.Type(a.create())
	s.Until(fmt.Sprintf("pods of %s that run", a.name), a.runs(), fmt.Sprint(a.replicas), 3*time.Minute)
}

// end deletes the Deployment.
func (a app) end(s *Script) { s.Type("kubectl -n shop delete deployment " + a.name) }

// withoutKarpenter checks the cluster after Karpenter has been turned off: nothing that was created for Karpenter is
// left, and everything else is as it was before.
func withoutKarpenter(s *Script) {
	s.Check("Cluster Autoscaler is as it was, byte for byte", autoscaler, autoscalerBefore)
	s.Check("build group (min, desired, max)", buildGroup, "1 1 3")
	s.Check("metrics-server is pinned to", pinned, "")
	s.Check("NodePools, EC2NodeClasses and NodeClaims", "kubectl get nodepools,ec2nodeclasses,nodeclaims -o name", "")
	s.Check("nodes of NodePools", nodes, "")
	s.Check("simulated instances", simulated, "")
	s.Check("Karpenter's Deployment", controllerName, "")
	s.Check("objects of Karpenter's chart", charted, "")
	s.Check("Karpenter's CRDs", "kubectl get crd nodepools.karpenter.sh -o jsonpath={.metadata.name}", "nodepools.karpenter.sh")
	s.Refused("aws iam get-role --role-name demo-karpenter", "NoSuchEntity")
	s.Refused("aws iam get-role --role-name demo-karpenter-nodes", "NoSuchEntity")
	s.Check("instance profiles", instanceProfiles, "0")
	s.Refused("aws sqs get-queue-url --queue-name demo-karpenter", "NonExistentQueue")
	s.Refused("aws events describe-rule --name demo-karpenter", "ResourceNotFoundException")
	s.Check("pod identity associations", podIdentities, "0")
	s.Refused(outputs, "ParameterNotFound")
	s.Say("What karpenter_auth_mode brought stays: it is one-way, and costs nothing.")
	s.Check("access mode", accessMode, "API_AND_CONFIG_MAP")
	s.Check("system group's label",
		`aws eks describe-nodegroup --cluster-name demo --nodegroup-name system `+
			`--query 'nodegroup.labels."convox.io/system-node"' --output text`, "true")
	s.Check("subnets and groups with the discovery tag", tagged, "true")
	s.Contains("CRDs", "kubectl get crds -o name", "customresourcedefinition.apiextensions.k8s.io/nodepools.karpenter.sh")
}
