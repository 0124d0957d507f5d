package doctor

import (
	"fmt"
	"strings"
)

// checks are all checks, in the order of the documentation.
var checks = []check{
	{
		asPass, "what a pass says of the rack's parameters, cluster, node groups, network and credentials",
		"A pass with a problem changes nothing, and warnings say what may not be meant.",
		[]Source{Parameters}, parameters,
	},
	{
		"hold", "the stack's hold, `/sawhorse/hold`",
		"Passes change nothing of a held rack, so nothing that is written to it, and no repair, has an effect until it is let go.",
		[]Source{Hold}, held,
	},
	{
		"parameter-quota", "SSM's quota of standard parameters in the account and region",
		"At the quota no parameter can be created: no setting, and no status or output of a new rack.",
		[]Source{AllParameters}, parameterQuota,
	},
	{
		upgrade, "with `--kubernetes VERSION`: whether Karpenter's version, AMIs, node groups and nodes are fit for that Kubernetes",
		"EKS never goes back to an earlier version: what does not fit is found before the upgrade.",
		[]Source{Parameters, TheCluster, Facts, Nodes, Rules, Deployments}, kubernetesUpgrade,
	},
	{
		"credentials", "the Pod Identity agent, where the service account has an association",
		"Without credentials Karpenter's controller can launch nothing and end nothing.",
		[]Source{TheCluster, AddOns, Associations, Rules}, credentials,
	},
	{
		"cni", "where the VPC CNI gets its rights",
		"Without a role of its own it uses the nodes' role, and whoever gets a node's credentials can change every network interface " +
			"of the account.",
		[]Source{TheCluster, AddOns, Associations, CNI}, cni,
	},
	{
		"add-ons", "health and versions of the EKS add-ons",
		"Each new node needs network, DNS and credentials from them; " +
			"an add-on that EKS no longer lists for the cluster's version breaks on new nodes first.",
		[]Source{TheCluster, AddOns, AddOnVersions}, addOns,
	},
	{
		"endpoints", "VPC endpoints of a private cluster",
		"Without a way to AWS's services the controller launches nothing, and nodes pull no image and never join.",
		[]Source{Parameters, TheCluster, AddOns, Endpoints}, endpoints,
	},
	{
		"subnets", "free addresses of the subnets for nodes",
		"Each node takes an address for itself and more for its pods; a launch into a full subnet fails.",
		[]Source{Parameters, TheCluster, Facts, Addresses}, subnets,
	},
	{
		"discovery", "subnets and security groups without the discovery tag",
		"Karpenter launches only where the tag is.",
		[]Source{Parameters, TheCluster, Facts, Rules}, discovery,
	},
	{
		"vcpu-quota", "EC2's vCPU quotas against the pools' limits",
		"At the quota EC2 refuses to launch, and pods stay Pending while the NodePool still has room.",
		[]Source{Parameters, TheCluster, Quotas, Instances}, vcpuQuota,
	},
	{
		"iam-quota", "IAM's quotas of roles and instance profiles",
		"Turning on makes two roles, or three with build_node_minimal_role_enabled, and Karpenter an instance profile for each pool.",
		[]Source{Parameters, AccountSummary, Rules}, iamQuota,
	},
	{
		"rule-quota", "EventBridge's quota of rules on the default bus",
		"The interruption queue is filled by one rule there.",
		[]Source{Quotas, Rules}, ruleQuota,
	},
	{
		"organization", "service control policies and the boundary of the controller's role, by IAM's simulation",
		"A role cannot do what a service control policy denies, or its boundary does not allow, whatever its own policies allow. " +
			"IAM's simulation does not know the condition keys of the real calls, so treat the result as a hint.",
		[]Source{Organization}, organization,
	},
	{
		"encryption", "who may use the KMS keys of nodes' volumes",
		"An instance whose volume cannot be decrypted ends right after its launch, " +
			"and EC2 reports only Client.InternalError or Client.InvalidKMSKey as the reason.",
		[]Source{Parameters, TheCluster, Keys}, encryption,
	},
	{
		"metadata", "the hop limit of instance metadata of present nodes",
		"At 1, pods cannot take credentials, region or VPC from the node's metadata; above 1, every pod can act as the node.",
		[]Source{Parameters, TheCluster, Instances}, metadata,
	},
	{
		"tolerations", "taints of the pools, and the DaemonSets that tolerate them",
		"A node without its network, storage or log agent is of no use.",
		[]Source{Parameters, TheCluster, DaemonSets}, tolerations,
	},
	{
		"dns", "where CoreDNS runs, and Karpenter's DNS policy",
		"If the last node with CoreDNS goes, a controller that resolves by it cannot launch the next one.",
		[]Source{Nodes, Pods, Deployments}, dns,
	},
	{
		"termination-handler", "AWS Node Termination Handler",
		"It and Karpenter answer the same events, and cordon and drain the same nodes.",
		[]Source{Deployments, DaemonSets, Rules}, terminationHandler,
	},
	{
		"pools", "the rack's NodePools and EC2NodeClasses, by their conditions, as a pass does",
		"Karpenter launches nothing for a NodePool that is not Ready, or whose EC2NodeClass is not.",
		[]Source{Parameters, Rules, NodePools}, nodePools,
	},
	{
		"launches", "NodeClaims that have not launched, registered or initialized, and Karpenter's events about them in the last hour",
		"Their pods stay Pending, and Karpenter tries the same again.",
		[]Source{NodeClaims}, launches,
	},
	{
		"pending-pods", "pods that have been Pending for five minutes, and for which Karpenter says that it launches no node",
		"They wait until what they ask for can be launched, and nothing else does it for them.",
		[]Source{Pods, PodEvents}, pendingPods,
	},
	{
		"budgets", "PodDisruptionBudgets",
		"A drain waits for them: node replacement, consolidation and expiry stop at a budget that allows no eviction, " +
			"and turning off waits its whole drain window.",
		[]Source{Budgets}, budgets,
	},
	{
		"single-replicas", "Deployments and StatefulSets with one pod",
		"A drain ends that pod before the next one runs.",
		[]Source{Deployments, StatefulSets}, singleReplicas,
	},
	{
		"bare-pods", "pods without a controller",
		"A pod that nothing makes again is gone after a drain.",
		[]Source{Pods}, barePods,
	},
	{
		"do-not-disrupt", "pods that ask not to be moved",
		"Their nodes are not consolidated or replaced while they run; " +
			"Karpenter ignores Cluster Autoscaler's annotation safe-to-evict: \"false\".",
		[]Source{Pods}, doNotDisrupt,
	},
}

// Markdown returns the documentation's tables of severities and of checks. docs/doctor.md contains them.
func Markdown() string {
	var out strings.Builder
	out.WriteString("| severity | means |\n|---|---|\n")
	for _, s := range Severities {
		fmt.Fprintf(&out, "| %s | %s |\n", s.Severity, s.Means)
	}
	out.WriteString("\n| check | looks at | why | reads |\n|---|---|---|---|\n")
	for _, c := range checks {
		var needs []string
		for _, s := range c.reads() {
			if s == Facts && c.name != asPass {
				needs = append(needs, "what `"+asPass+"` reads")
				continue
			}
			needs = append(needs, string(s))
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", c.name, c.examines, c.why, strings.Join(needs, ", "))
	}
	return out.String()
}
