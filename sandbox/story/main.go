package story

import (
	"time"
)

// Commands that several chapters use.
const (
	put        = "aws ssm put-parameter --overwrite --name /sawhorse/racks/demo/params/"
	autoscaler = `kubectl -n kube-system get deployment cluster-autoscaler ` +
		`-o jsonpath='{.spec.replicas} {.spec.template.spec.containers[0].command} {.spec.template.spec.containers[0].args}'`
	buildGroup = "aws eks describe-nodegroup --cluster-name demo --nodegroup-name build " +
		"--query 'nodegroup.scalingConfig.[minSize,desiredSize,maxSize]' --output text | tr '\\t' ' '"
	tagged = "aws ec2 describe-tags --filters Name=key,Values=karpenter.sh/discovery Name=value,Values=demo " +
		"--query 'length(Tags) > `0`' --output json"
	pinned = `kubectl -n kube-system get deployment metrics-server ` +
		`-o jsonpath='{.spec.template.spec.nodeSelector.convox\.io/system-node}'`
	cpuLimit = `kubectl get nodepool workload -o jsonpath='{.spec.limits.cpu}'`

	accessMode         = "aws eks describe-cluster --name demo --query cluster.accessConfig.authenticationMode --output text"
	autoscalerReplicas = "kubectl -n kube-system get deployment cluster-autoscaler -o jsonpath='{.spec.replicas}'"
	autoscalerPinning  = `kubectl -n kube-system get deployment cluster-autoscaler ` +
		`-o jsonpath='{.spec.replicas} {.spec.template.spec.nodeSelector.convox\.io/system-node}'`
	controllerName  = "kubectl -n kube-system get deployment karpenter -o name --ignore-not-found"
	controllerReady = "kubectl -n kube-system get deployment karpenter -o jsonpath='{.status.readyReplicas}/{.spec.replicas}'"
	managed         = `kubectl -n kube-system get deployment karpenter -o jsonpath='{.metadata.labels.app\.kubernetes\.io/managed-by}'`
	helmRecords     = "kubectl -n kube-system get secrets -l owner=helm -o name"
	poolsReady      = `kubectl get nodepools ` +
		`-o jsonpath='{range .items[*]}{.metadata.name}={.status.conditions[?(@.type=="Ready")].status} {end}'`
	aliases          = `kubectl get ec2nodeclasses -o jsonpath='{range .items[*]}{.metadata.name} {.spec.amiSelectorTerms[*].alias};{end}'`
	classReady       = `kubectl get ec2nodeclass workload -o jsonpath='{.status.conditions[?(@.type=="Ready")].status}'`
	poolBudgets      = "kubectl get nodepools -o jsonpath='{range .items[*]}{.metadata.name} {.spec.disruption.budgets[*].nodes};{end}'"
	poolGeneration   = "kubectl get nodepool workload -o jsonpath='{.metadata.generation}'"
	podIdentities    = "aws eks list-pod-identity-associations --cluster-name demo --query 'length(associations)' --output text"
	instanceProfiles = "aws iam list-instance-profiles --path-prefix /karpenter/ --query 'length(InstanceProfiles)' --output text"
	queueURL         = `"$(aws sqs get-queue-url --queue-name demo-karpenter --query QueueUrl --output text)"`
	queueRule        = "aws events describe-rule --name demo-karpenter --query State --output text"
	newestImage      = "$(aws ec2 describe-images --owners amazon --query 'Images[0].ImageId' --output text)"
)

// Main is the story of the demo: Karpenter is turned on in a cluster with Cluster Autoscaler, changed, and turned off
// again, which restores the original state.
func Main(s *Script) {
	clusterBefore(s)
	enable(s)
	lands(s)
	pending(s)
	refusedBySSM(s)
	refusedByThePass(s)
	disable(s)
	s.Summary()
}

func clusterBefore(s *Script) {
	s.Chapter("a. The cluster before", func() {
		s.Type("aws eks describe-cluster --name demo --query 'cluster.{name: name, version: version, access: " +
			"accessConfig.authenticationMode}' --output table")
		s.Type("kubectl get nodes -L eks.amazonaws.com/nodegroup,topology.kubernetes.io/zone")
		s.Type("kubectl get deployments -A")
		s.Check("access mode", accessMode, "CONFIG_MAP")
		s.Check("Cluster Autoscaler's replicas", autoscalerReplicas, "1")
		s.Check("build group (min, desired, max)", buildGroup, "1 1 3")
		s.Say("The rack is registered with every parameter: from now on Parameter Store itself refuses a bad value. " +
			"(SSM takes 3 writes a second; the sandbox takes more.)")
		s.Type("sawhorse register demo --all --rate 50")
	})
}

func enable(s *Script) {
	s.Chapter("b. Two writes turn Karpenter on", func() {
		s.Say("One more before them has it launch nodes for builds, too: the build group is given up for that pool.")
		s.Put("build_node_enabled", "true")
		began := time.Now()
		s.Put("karpenter_auth_mode", "true")
		s.Put("karpenter_enabled", "true")
		s.Type("sawhorse watch demo")
		s.Reconciled()
		s.Note("from the first write to a running Karpenter", time.Since(began))
		s.Check("access mode", accessMode, "API_AND_CONFIG_MAP")
		s.Type("aws eks list-access-entries --cluster-name demo --output table")
		s.Check("access entry of Karpenter's nodes",
			`aws eks describe-access-entry --cluster-name demo --principal-arn "$(aws iam get-role --role-name demo-karpenter-nodes `+
				`--query Role.Arn --output text)" --query accessEntry.type --output text`, "EC2_LINUX")
		s.Check("system group's label",
			`aws eks describe-nodegroup --cluster-name demo --nodegroup-name system `+
				`--query 'nodegroup.labels."convox.io/system-node"' --output text`, "true")
		s.Check("subnets and groups with the discovery tag", tagged, "true")
		s.Check("controller's role", "aws iam get-role --role-name demo-karpenter --query Role.Path --output text", "/sawhorse/")
		s.Check("its policies", "aws iam list-role-policies --role-name demo-karpenter --query 'length(PolicyNames)' --output text", "5")
		s.Contains("queue", "aws sqs get-queue-url --queue-name demo-karpenter --output text", "demo-karpenter")
		s.Check("rule", queueRule, "ENABLED")
		s.Check("who manages Karpenter's Deployment", managed, "Sawhorse")
		s.Check("records of Helm", helmRecords, "")
		s.Check("Karpenter's pods are Ready", controllerReady, "2/2")
		s.Type("kubectl get nodepools,ec2nodeclasses")
		s.Check("NodePool workload is Ready",
			`kubectl get nodepool workload -o jsonpath='{.status.conditions[?(@.type=="Ready")].status}'`, "True")
		s.Check("EC2NodeClass workload is Ready", classReady, "True")
		s.Check("Cluster Autoscaler's replicas", autoscalerReplicas, "0")
		s.Check("build group (min, desired, max)", buildGroup, "0 0 3")
		s.Check("metrics-server is pinned to system nodes", pinned, "true")
		s.Check("output interruption_queue_arn", output("interruption_queue_arn"), "arn:aws:sqs:us-east-1:000000000000:demo-karpenter")
	})
}

func lands(s *Script) {
	s.Chapter("c. A change lands", func() {
		s.Check("NodePool's CPU limit", cpuLimit, "100")
		s.Put("karpenter_cpu_limit", "200")
		s.Until("NodePool's CPU limit after the write", cpuLimit, "200", time.Minute)
		s.Contains("status", "sawhorse status demo --wait", "Reconciled")
		s.Reconciled()
		s.Say("The same write once more changes nothing. What the pass made of it is told all the same.")
		s.Put("karpenter_cpu_limit", "200")
		s.Contains("it is followed to its end", "sawhorse watch demo", "nothing to do and nothing new to say")
		s.Contains("and it is told when it is over already", "sawhorse watch demo", "nothing to do and nothing new to say")
		s.Served()
	})
}

func refusedBySSM(s *Script) {
	s.Chapter("e. A bad value is refused by SSM itself", func() {
		s.Refused(put+"karpenter_node_expiry --value 30d", "ParameterPatternMismatchException")
		s.Check("the parameter",
			"aws ssm get-parameter --name /sawhorse/racks/demo/params/karpenter_node_expiry --query Parameter.Value --output text", "unset")
	})
}

func refusedByThePass(s *Script) {
	s.Chapter("f. A bad combination is refused by the pass", func() {
		untouched := s.Output(poolGeneration)
		s.Put("karpenter_auth_mode", "false")
		s.Rejected("EKS cannot go back")
		s.Type("sawhorse status demo || true")
		s.Put("karpenter_auth_mode", "false")
		s.Contains("refused once more, for the same", "sawhorse watch demo", "Rejected, for what the status says already")
		s.Rejected()
		s.Check("NodePool's generation is what it was", poolGeneration, untouched)
		s.Check("access mode", accessMode, "API_AND_CONFIG_MAP")
		s.Reconciled(s.Put("karpenter_auth_mode", "true"))
	})
}

func disable(s *Script) {
	s.Chapter("g. Off again", func() {
		began := time.Now()
		s.Put("karpenter_enabled", "false")
		s.Type("sawhorse watch demo")
		s.Reconciled()
		s.Note("from the write to a cluster without Karpenter", time.Since(began))
		withoutKarpenter(s)
	})
}
