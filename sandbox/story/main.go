package story

import (
	"time"
)

// Commands that several chapters use.
const (
	put        = "aws ssm put-parameter --overwrite --name /sawhorse/racks/demo/params/"
	state      = status + ` | python3 -c 'import json,sys; print(json.load(sys.stdin)["state"])'`
	autoscaler = `kubectl -n kube-system get deployment cluster-autoscaler ` +
		`-o jsonpath='{.spec.replicas} {.spec.template.spec.containers[0].command} {.spec.template.spec.containers[0].args}'`
	buildGroup = "aws eks describe-nodegroup --cluster-name demo --nodegroup-name build " +
		"--query 'nodegroup.scalingConfig.[minSize,desiredSize,maxSize]' --output text | tr '\\t' ' '"
	tagged = "aws ec2 describe-tags --filters Name=key,Values=karpenter.sh/discovery Name=value,Values=demo " +
		"--query 'length(Tags)' --output text"
	pinned = `kubectl -n kube-system get deployment metrics-server ` +
		`-o jsonpath='{.spec.template.spec.nodeSelector.convox\.io/system-node}'`
	cpuLimit = `kubectl get nodepool workload -o jsonpath='{.spec.limits.cpu}'`

	accessMode         = "aws eks describe-cluster --name demo --query cluster.accessConfig.authenticationMode --output text"
	autoscalerReplicas = "kubectl -n kube-system get deployment cluster-autoscaler -o jsonpath='{.spec.replicas}'"
	autoscalerPinning  = `kubectl -n kube-system get deployment cluster-autoscaler ` +
		`-o jsonpath='{.spec.replicas} {.spec.template.spec.nodeSelector.convox\.io/system-node}'`
	controllerName  = "kubectl -n kube-system get deployment karpenter -o name --ignore-not-found"
	controllerReady = "kubectl -n kube-system get deployment karpenter -o jsonpath='{.status.readyReplicas}/{.spec.replicas}'"
	poolsReady      = `kubectl get nodepools ` +
		`-o jsonpath='{range .items[*]}{.metadata.name}={.status.conditions[?(@.type=="Ready")].status} {end}'`
	poolGeneration   = "kubectl get nodepool workload -o jsonpath='{.metadata.generation}'"
	podIdentities    = "aws eks list-pod-identity-associations --cluster-name demo --query 'length(associations)' --output text"
	instanceProfiles = "aws iam list-instance-profiles --path-prefix /karpenter/ --query 'length(InstanceProfiles)' --output text"
	queueRule        = "aws events describe-rule --name demo-karpenter --query State --output text"
	newestImage      = "$(aws ec2 describe-images --owners amazon --query 'Images[0].ImageId' --output text)"
)

// Main is the story of the demo: Karpenter is turned on in a cluster with Cluster Autoscaler, changed, and turned off
// again, which restores the original state.
func Main(t *Teller) {
	before(t)
	baseline := t.Ask(autoscaler)
	enable(t)
	change(t)
	pending(t)
	refusedBySSM(t)
	refusedByThePass(t)
	disable(t, baseline)
	t.Summary()
}

func before(t *Teller) {
	t.Chapter("a. The cluster before")
	t.Type("aws eks describe-cluster --name demo --query 'cluster.{name: name, version: version, access: " +
		"accessConfig.authenticationMode}' --output table")
	t.Type("kubectl get nodes -L eks.amazonaws.com/nodegroup,topology.kubernetes.io/zone")
	t.Type("kubectl get deployments -A")
	t.Check("access mode", accessMode, "CONFIG_MAP")
	t.Check("Cluster Autoscaler's replicas", autoscalerReplicas, "1")
	t.Check("build group (min, desired, max)", buildGroup, "1 1 3")
	t.Say("The rack is registered with every parameter: from now on Parameter Store itself refuses a bad value. " +
		"(SSM takes 3 writes a second; the sandbox takes more.)")
	t.Type("sawhorse register demo --all --rate 50")
}

func enable(t *Teller) {
	t.Chapter("b. Two writes turn Karpenter on")
	t.Say("One more before them has it launch nodes for builds, too: the build group is given up for that pool.")
	t.Type(put + "build_node_enabled --value true")
	began := time.Now()
	t.Type(put + "karpenter_auth_mode --value true")
	t.Type(put + "karpenter_enabled --value true")
	t.Type("sawhorse watch demo")
	t.Until("status", state, "Reconciled", 5*time.Minute)
	t.Note("from the first write to a running Karpenter", time.Since(began))
	t.Check("access mode", accessMode, "API_AND_CONFIG_MAP")
	t.Type("aws eks list-access-entries --cluster-name demo --output table")
	t.Check("access entry of Karpenter's nodes",
		`aws eks describe-access-entry --cluster-name demo --principal-arn "$(aws iam get-role --role-name demo-karpenter-nodes `+
			`--query Role.Arn --output text)" --query accessEntry.type --output text`, "EC2_LINUX")
	t.Check("system group's label",
		`aws eks describe-nodegroup --cluster-name demo --nodegroup-name system `+
			`--query 'nodegroup.labels."convox.io/system-node"' --output text`, "true")
	t.Check("subnets and groups with the discovery tag", tagged+" | sed 's/^0$/none/;s/^[0-9]*$/some/'", "some")
	t.Check("controller's role", "aws iam get-role --role-name demo-karpenter --query Role.Path --output text", "/sawhorse/")
	t.Check("its policies", "aws iam list-role-policies --role-name demo-karpenter --query 'length(PolicyNames)' --output text", "5")
	t.Contains("queue", "aws sqs get-queue-url --queue-name demo-karpenter --output text", "demo-karpenter")
	t.Check("rule", queueRule, "ENABLED")
	t.Check("Helm releases",
		"kubectl -n kube-system get secrets -l owner=helm,status=deployed -o jsonpath='{.items[*].metadata.labels.name}'",
		"karpenter-crd karpenter")
	t.Check("Karpenter's pods are Ready", controllerReady, "2/2")
	t.Type("kubectl get nodepools,ec2nodeclasses")
	t.Check("NodePool workload is Ready",
		`kubectl get nodepool workload -o jsonpath='{.status.conditions[?(@.type=="Ready")].status}'`, "True")
	t.Check("EC2NodeClass workload is Ready",
		`kubectl get ec2nodeclass workload -o jsonpath='{.status.conditions[?(@.type=="Ready")].status}'`, "True")
	t.Check("Cluster Autoscaler's replicas", autoscalerReplicas, "0")
	t.Check("build group (min, desired, max)", buildGroup, "0 0 3")
	t.Check("metrics-server is pinned to system nodes", pinned, "true")
	t.Check("output interruption_queue_arn",
		"aws ssm get-parameter --name /sawhorse/racks/demo/outputs/interruption_queue_arn --query Parameter.Value --output text",
		"arn:aws:sqs:us-east-1:000000000000:demo-karpenter")
}

func change(t *Teller) {
	t.Chapter("c. A change lands")
	t.Check("NodePool's CPU limit", cpuLimit, "100")
	t.Type(put + "karpenter_cpu_limit --value 200")
	t.Until("NodePool's CPU limit after the write", cpuLimit, "200", time.Minute)
	t.Contains("status", "sawhorse status demo --wait", "Reconciled")
	t.Say("The same write once more changes nothing. What the pass made of it is told all the same.")
	t.Type(put + "karpenter_cpu_limit --value 200")
	t.Contains("it is followed to its end", "sawhorse watch demo", "nothing to do and nothing new to say")
	t.Contains("and it is told when it is over already", "sawhorse watch demo", "nothing to do and nothing new to say")
}

func refusedBySSM(t *Teller) {
	t.Chapter("e. A bad value is refused by SSM itself")
	t.Refused(put+"karpenter_node_expiry --value 30d", "ParameterPatternMismatchException")
	t.Check("the parameter",
		"aws ssm get-parameter --name /sawhorse/racks/demo/params/karpenter_node_expiry --query Parameter.Value --output text", "unset")
}

func refusedByThePass(t *Teller) {
	t.Chapter("f. A bad combination is refused by the pass")
	untouched := t.Ask(poolGeneration)
	t.Type(put + "karpenter_auth_mode --value false")
	t.Until("status", state, "Rejected", time.Minute)
	t.Type("sawhorse status demo || true")
	t.Contains("the sentence", status, "EKS cannot go back")
	t.Type(put + "karpenter_auth_mode --value false")
	t.Contains("refused once more, for the same", "sawhorse watch demo", "Rejected, for what the status says already")
	t.Check("NodePool's generation is what it was", poolGeneration, untouched)
	t.Check("access mode", accessMode, "API_AND_CONFIG_MAP")
	t.Type(put + "karpenter_auth_mode --value true")
	t.Until("status", state, "Reconciled", time.Minute)
}

func disable(t *Teller, baseline string) {
	t.Chapter("g. Off again")
	began := time.Now()
	t.Type(put + "karpenter_enabled --value false")
	t.Type("sawhorse watch demo")
	t.Until("status", state, "Reconciled", 5*time.Minute)
	t.Note("from the write to a cluster without Karpenter", time.Since(began))
	withoutKarpenter(t, baseline)
}
