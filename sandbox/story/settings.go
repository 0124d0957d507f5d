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
}
