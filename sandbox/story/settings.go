package story

import "time"

// Settings writes parameters of the rack itself, and checks the effect of each.
func Settings(s *Script) {
	const (
		role  = `aws iam list-role-tags --role-name demo-karpenter-nodes --query 'Tags[?Key==` + "`team`" + `].Value' --output text`
		queue = "aws sqs list-queue-tags --queue-url " + queueURL + " --query Tags.team --output text"
		rule  = `aws events list-tags-for-resource --resource-arn "$(aws events describe-rule --name demo-karpenter --query Arn ` +
			`--output text)" --query 'Tags[?Key==` + "`team`" + `].Value' --output text`
		policy  = "aws iam list-attached-role-policies --role-name demo-karpenter-nodes --query 'length(AttachedPolicies)' --output text"
		plugin  = "kubectl -n kube-system get daemonset nvidia-device-plugin-daemonset -o name --ignore-not-found"
		replica = "kubectl -n kube-system get deployment karpenter -o jsonpath='{.spec.replicas} {.status.readyReplicas}'"
		budgets = "kubectl get nodepool workload -o jsonpath='{.spec.disruption.budgets[*].nodes}'"
	)
	subnets := JSON[[]string](s, "aws eks describe-nodegroup --cluster-name demo --nodegroup-name system --query nodegroup.subnets")
	discovery := "aws ec2 describe-tags --filters Name=key,Values=karpenter.sh/discovery Name=resource-id,Values=" + subnets[1] +
		" --query 'Tags[].Value' --output text"
	s.Chapter("Settings of the rack", func() {
		s.Check("controller's replicas", replica, "2 2")
		s.Check("policies of the nodes' role", policy, "4")
		// Karpenter does not know this type, so EC2 is asked for its architecture. It makes no step due: after the others, and in an
		// iteration of its own, it would be recorded by the audit only.
		s.Put("node_type", "m99.large")
		s.Put("tags", "team=web")
		s.Put("node_policy_arns", "arn:aws:iam::aws:policy/CloudWatchAgentServerPolicy")
		s.Put("nvidia_device_plugin_enable", "true")
		s.Put("high_availability", "false")
		s.Put("karpenter_freeze", "true")
		s.Reconciled()
		s.Check("device plugin", plugin, "daemonset.apps/nvidia-device-plugin-daemonset")
		s.Check("tag of the nodes' role", role, "web")
		s.Check("tag of the queue", queue, "web")
		s.Check("tag of the rule", rule, "web")
		s.Check("tag of the nodes", "kubectl get ec2nodeclass workload -o jsonpath='{.spec.tags.team}'", "web")
		s.Check("policies of the nodes' role", policy, "5")
		s.Check("disruption budgets", budgets, "10% 0")
		s.Until("controller's replicas", replica, "1 1", time.Minute)
		auditInOrder(s, "The schedule's audit asks EC2 about that instance type, too.")
	})

	s.Chapter("One subnet less", func() {
		s.Check("tag of the second subnet", discovery, "demo")
		s.Reconciled(s.Put("subnet_ids", subnets[0]))
		lagsEnd(s)
		s.Check("tag of the second subnet", discovery, "")
	})

	s.Chapter("An id that does not exist, and the settings back again", func() {
		s.Put("subnet_ids", "subnet-0123456789abcdef0")
		s.Rejected("there is no such subnet")
		s.Unset("subnet_ids", "tags", "node_policy_arns", "nvidia_device_plugin_enable", "high_availability", "karpenter_freeze", "node_type")
		s.Reconciled()
		s.Check("device plugin", plugin, "")
		s.Check("policies of the nodes' role", policy, "4")
		s.Check("disruption budgets", budgets, "10%")
		lagsEnd(s)
		s.Check("tag of the second subnet", discovery, "demo")
		s.Until("controller's replicas", replica, "2 2", time.Minute)
		s.Check("metrics-server is still pinned", pinned, "true")
	})
	controllerSettings(s)
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
func controllerSettings(s *Script) {
	const (
		config = "karpenter_controller_config"
		live   = "kubectl -n kube-system get deployment karpenter -o jsonpath='{.spec.template.spec.tolerations[*].operator}'"
		pods   = "kubectl -n kube-system get pods -l app.kubernetes.io/name=karpenter,team=web "
		of     = pods + "-o jsonpath='{.items[0].spec.containers[0]."
	)
	s.Chapter("What operators set of the controller", func() {
		s.Type("echo " + quoted(monitors) + " | kubectl apply -f -")
		s.Type("kubectl wait crd servicemonitors.monitoring.coreos.com --for=condition=Established --timeout=30s")
		s.Reconciled(s.Put(config, ofOperators))
		s.Until("both pods are Ready", pods+`-o jsonpath='{.items[*].status.containerStatuses[0].ready}'`, "true true", time.Minute)
		s.Check("memory", of+"resources.limits.memory}'", "1Gi")
		s.Check("proxy", of+`env[?(@.name=="HTTPS_PROXY")].value}'`, "http://proxy.example.com:3128")
		s.Check("no proxy", of+`env[?(@.name=="NO_PROXY")].value}'`, "169.254.170.23,.svc")
		s.Contains("feature gates", of+`env[?(@.name=="FEATURE_GATES")].value}'`, "SpotToSpotConsolidation=true")
		s.Check("tolerations", live, "Exists")
		s.Check("ServiceMonitor", "kubectl -n kube-system get servicemonitor karpenter -o name", "servicemonitor.monitoring.coreos.com/karpenter")
	})

	s.Chapter("What nobody may set", func() {
		generation := s.Output(controllerGeneration)
		s.Put(config, ofNobody)
		s.Rejected("additionalLabels", "controller.env[0].name", "controller.env[1].value", "controller.envFrom")
		s.Check("the controller is as it was", controllerGeneration, generation)
		s.Unset(config)
		s.Reconciled()
		s.Check("ServiceMonitor", "kubectl -n kube-system get servicemonitor karpenter -o name --ignore-not-found", "")
		s.Type("kubectl delete customresourcedefinition servicemonitors.monitoring.coreos.com")
	})
}
