package story

import "time"

// Settings writes parameters of the rack itself, and checks the effect of each.
func Settings(t *Teller) {
	const (
		set   = "aws ssm put-parameter --overwrite --type String --name /sawhorse/racks/demo/params/"
		role  = `aws iam list-role-tags --role-name demo-karpenter-nodes --query 'Tags[?Key==` + "`team`" + `].Value' --output text`
		queue = `aws sqs list-queue-tags --queue-url "$(aws sqs get-queue-url --queue-name demo-karpenter --query QueueUrl ` +
			`--output text)" --query Tags.team --output text`
		rule = `aws events list-tags-for-resource --resource-arn "$(aws events describe-rule --name demo-karpenter --query Arn ` +
			`--output text)" --query 'Tags[?Key==` + "`team`" + `].Value' --output text`
		policy  = "aws iam list-attached-role-policies --role-name demo-karpenter-nodes --query 'length(AttachedPolicies)' --output text"
		plugin  = "kubectl -n kube-system get daemonset nvidia-device-plugin-daemonset -o name --ignore-not-found"
		replica = "kubectl -n kube-system get deployment karpenter -o jsonpath='{.spec.replicas} {.status.readyReplicas}'"
		budgets = "kubectl get nodepool workload -o jsonpath='{.spec.disruption.budgets[*].nodes}'"
		pins    = `kubectl -n kube-system get deployment metrics-server ` +
			`-o jsonpath='{.spec.template.spec.nodeSelector.convox\.io/system-node}'`
	)
	subnet := func(i string) string {
		return `$(aws eks describe-nodegroup --cluster-name demo --nodegroup-name system --query 'nodegroup.subnets[` + i +
			`]' --output text)`
	}
	discovery := "aws ec2 describe-tags --filters Name=key,Values=karpenter.sh/discovery Name=resource-id,Values=" + subnet("1") +
		" --query 'Tags[].Value' --output text"
	t.Chapter("Settings of the rack")
	t.Check("controller's replicas", replica, "2 2")
	t.Check("policies of the nodes' role", policy, "4")
	t.Type(set + "tags --value team=web")
	t.Type(set + "node_policy_arns --value arn:aws:iam::aws:policy/CloudWatchAgentServerPolicy")
	t.Type(set + "nvidia_device_plugin_enable --value true")
	t.Type(set + "high_availability --value false")
	t.Type(set + "karpenter_freeze --value true")
	t.Type(set + "node_type --value m99.large") // Karpenter does not know this type, so EC2 is asked for its architecture
	t.Until("device plugin", plugin, "daemonset.apps/nvidia-device-plugin-daemonset", 2*time.Minute)
	t.Until("status", state, "Reconciled", 2*time.Minute)
	t.Check("tag of the nodes' role", role, "web")
	t.Check("tag of the queue", queue, "web")
	t.Check("tag of the rule", rule, "web")
	t.Check("tag of the nodes", "kubectl get ec2nodeclass workload -o jsonpath='{.spec.tags.team}'", "web")
	t.Check("policies of the nodes' role", policy, "5")
	t.Check("disruption budgets", budgets, "10% 0")
	t.Until("controller's replicas", replica, "1 1", time.Minute)
	auditInOrder(t, "The schedule's audit asks EC2 about that instance type, too.")

	t.Chapter("One subnet less")
	t.Check("tag of the second subnet", discovery, "demo")
	t.Type(set + "subnet_ids --value " + subnet("0"))
	t.Until("tag of the second subnet", discovery, "", time.Minute)
	t.Until("the pass has ended", running, "0", time.Minute)
	t.Check("status", state, "Reconciled")

	t.Chapter("An id that does not exist, and the settings back again")
	t.Type(set + "subnet_ids --value subnet-0123456789abcdef0")
	t.Until("status", state, "Rejected", time.Minute)
	t.Contains("the sentence", status, "there is no such subnet")
	for _, name := range []string{
		"subnet_ids", "tags", "node_policy_arns", "nvidia_device_plugin_enable", "high_availability", "karpenter_freeze",
		"node_type",
	} {
		t.Type(set + name + " --value unset")
	}
	t.Until("device plugin", plugin, "", 2*time.Minute)
	t.Until("status", state, "Reconciled", 2*time.Minute)
	t.Check("policies of the nodes' role", policy, "4")
	t.Check("disruption budgets", budgets, "10%")
	t.Check("tag of the second subnet", discovery, "demo")
	t.Until("controller's replicas", replica, "2 2", time.Minute)
	t.Check("metrics-server is still pinned", pins, "true")
	controllerSettings(t)
}

// What operators set of Karpenter's controller, with a proxy of the stack's context; and what nobody may set.
const (
	ofOperators = `{"controller":{"resources":{"limits":{"memory":"1Gi"}},"env":[` +
		`{"name":"HTTPS_PROXY","value":"http://proxy.example.com:3128"},{"name":"NO_PROXY","value":"169.254.170.23,.svc"},` +
		`{"name":"GOMEMLIMIT","value":"900MiB"}]},"tolerations":[{"operator":"Exists"}],` +
		`"serviceMonitor":{"enabled":true},"settings":{"featureGates":{"spotToSpotConsolidation":true}},"podLabels":{"team":"web"}}`
	ofNobody = `{"controller":{"env":[{"name":"AWS_ENDPOINT_URL_STS","value":"https://example.com"},` +
		`{"name":"HTTPS_PROXY","value":"http://example.com:3128"}],"envFrom":[{"secretRef":{"name":"any"}}]},` +
		`"additionalLabels":{"rbac.authorization.k8s.io/aggregate-to-view":"true"}}`
	monitors = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",` +
		`"metadata":{"name":"servicemonitors.monitoring.coreos.com"},"spec":{"group":"monitoring.coreos.com","scope":"Namespaced",` +
		`"names":{"plural":"servicemonitors","singular":"servicemonitor",` +
		`"kind":"ServiceMonitor","listKind":"ServiceMonitorList"},"versions":[{"name":"v1","served":true,"storage":true,` +
		`"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`
)

// controllerSettings writes karpenter_controller_config: what operators set runs, and what would reach beyond the rack
// changes nothing.
func controllerSettings(t *Teller) {
	const (
		set     = "aws ssm put-parameter --overwrite --type String --name /sawhorse/racks/demo/params/karpenter_controller_config --value "
		live    = "kubectl -n kube-system get deployment karpenter -o jsonpath='{.spec.template.spec.tolerations[*].operator}'"
		pods    = "kubectl -n kube-system get pods -l app.kubernetes.io/name=karpenter,team=web "
		of      = pods + "-o jsonpath='{.items[0].spec.containers[0]."
		started = "kubectl -n kube-system get deployment karpenter -o jsonpath='{.metadata.generation}'"
	)
	t.Chapter("What operators set of the controller")
	t.Type("echo '" + monitors + "' | kubectl apply -f -")
	t.Type(set + "'" + ofOperators + "'")
	t.Until("both pods are Ready", pods+`-o jsonpath='{.items[*].status.containerStatuses[0].ready}'`, "true true", 3*time.Minute)
	t.Until("status", state, "Reconciled", 2*time.Minute)
	t.Check("memory", of+"resources.limits.memory}'", "1Gi")
	t.Check("proxy", of+`env[?(@.name=="HTTPS_PROXY")].value}'`, "http://proxy.example.com:3128")
	t.Check("no proxy", of+`env[?(@.name=="NO_PROXY")].value}'`, "169.254.170.23,.svc")
	t.Contains("feature gates", of+`env[?(@.name=="FEATURE_GATES")].value}'`, "SpotToSpotConsolidation=true")
	t.Check("tolerations", live, "Exists")
	t.Check("ServiceMonitor", "kubectl -n kube-system get servicemonitor karpenter -o name", "servicemonitor.monitoring.coreos.com/karpenter")

	t.Chapter("What nobody may set")
	generation := t.Ask(started)
	t.Type(set + "'" + ofNobody + "'")
	t.Until("status", state, "Rejected", time.Minute)
	for _, path := range []string{"additionalLabels", "controller.env[0].name", "controller.env[1].value", "controller.envFrom"} {
		t.Contains("the sentences", status, path)
	}
	t.Check("the controller is as it was", started, generation)
	t.Type(set + "unset")
	t.Until("status", state, "Reconciled", 2*time.Minute)
	t.Check("ServiceMonitor", "kubectl -n kube-system get servicemonitor karpenter -o name --ignore-not-found", "")
	t.Type("kubectl delete customresourcedefinition servicemonitors.monitoring.coreos.com")
}
