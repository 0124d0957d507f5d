package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/names"
)

// nodePolicies are the AWS managed policies of every node role.
var nodePolicies = []string{
	"AmazonEC2ContainerRegistryPullOnly",
	"AmazonEKSWorkerNodePolicy",
	"AmazonEKS_CNI_Policy",
	"AmazonSSMManagedInstanceCore",
}

// infrastructure plans Karpenter's identity and its queue.
func (b *builder) infrastructure() {
	on, rack := b.config.Enabled, b.config.Rack
	b.plan.Infrastructure = Infrastructure{
		Present:        on,
		ControllerRole: names.ControllerRole(rack),
		NodeRole:       names.NodeRole(rack),
		PodIdentity:    b.podIdentity(),
		SharedNetworks: b.sharedNetworks(),
		Tags:           b.marks(),
	}
	for _, name := range nodePolicies {
		b.plan.Infrastructure.NodePolicies = append(b.plan.Infrastructure.NodePolicies,
			fmt.Sprintf("arn:%s:iam::aws:policy/%s", b.plan.Cluster.Partition, name))
	}
	b.plan.Infrastructure.NodePolicies = append(b.plan.Infrastructure.NodePolicies, b.config.NodePolicyARNs...)
	slices.Sort(b.plan.Infrastructure.NodePolicies)
	b.plan.Infrastructure.NodePolicies = slices.Compact(b.plan.Infrastructure.NodePolicies)
	b.plan.Queue = Queue{Present: on, Name: names.Queue(rack), Rule: names.Rule(rack), Tags: b.queueTags()}
	if !on {
		return
	}
	b.lackingPolicies()
	for _, foreign := range b.facts.Foreign {
		b.problem("rack", "%s exists and was not made by Sawhorse for this rack and cluster; "+
			"names in IAM are shared by all regions of an account, so a rack of the same name in another region collides too; "+
			"delete it, or use another rack name", foreign)
	}
	if !b.plan.Infrastructure.PodIdentity && !b.facts.OIDCProvider && !b.facts.Offline {
		b.problem("karpenter_enabled",
			"cluster %s has neither the add-on eks-pod-identity-agent nor an IAM OIDC provider, so Karpenter could get no credentials; "+
				"run `aws eks create-addon --cluster-name %s --addon-name eks-pod-identity-agent`, or create the provider for %s",
			b.config.ClusterName, b.config.ClusterName, b.plan.Cluster.OIDCIssuer)
	}
	if !b.plan.Infrastructure.PodIdentity && b.facts.OIDCProvider && b.facts.OIDCWithoutSTS {
		b.problem("karpenter_enabled",
			"the IAM OIDC provider of cluster %s lacks the client id %s, so STS would give Karpenter no credentials; "+
				"run `aws iam add-client-id-to-open-id-connect-provider --client-id %s --open-id-connect-provider-arn %s`",
			b.config.ClusterName, names.OIDCClient, names.OIDCClient, OIDCProviderARN(b.plan.Cluster))
	}
}

// sharedNetworks returns the ARNs of the chosen subnets and security groups that other accounts own. They are listed
// because an account does not see the tags of another account's resources, and whether policy conditions see those tags
// is not documented.
func (b *builder) sharedNetworks() (arns []string) {
	for _, kind := range []struct {
		name   string
		found  []Tagged
		chosen []string
	}{
		{"subnet", b.facts.Subnets, b.plan.Network.Subnets},
		{"security-group", b.facts.SecurityGroups, b.plan.Network.SecurityGroups},
	} {
		for _, t := range kind.found {
			if t.Owner != "" && t.Owner != b.plan.Cluster.Account && slices.Contains(kind.chosen, t.ID) {
				arns = append(arns,
					fmt.Sprintf("arn:%s:ec2:%s:%s:%s/%s", b.plan.Cluster.Partition, b.plan.Cluster.Region, t.Owner, kind.name, t.ID))
			}
		}
	}
	slices.Sort(arns)
	return arns
}

// OIDCProviderARN returns the ARN of the IAM OIDC provider for a cluster's service account tokens.
func OIDCProviderARN(c Cluster) string {
	return fmt.Sprintf("arn:%s:iam::%s:oidc-provider/%s", c.Partition, c.Account, strings.TrimPrefix(c.OIDCIssuer, "https://"))
}

// Installed reports whether an EKS add-on with this status is running. It runs while it is UPDATING or DEGRADED, and
// after a failed update.
func Installed(status string) bool {
	return slices.Contains([]string{"ACTIVE", "UPDATING", "DEGRADED", "UPDATE_FAILED"}, status)
}

// lackingPolicies adds a warning for policies that system nodes have and Karpenter's nodes lack, because pods that move
// there may need them.
func (b *builder) lackingPolicies() {
	var lacking []string
	for _, policy := range b.facts.SystemPolicies {
		// AWS recommends AmazonEC2ContainerRegistryPullOnly instead, which Karpenter's nodes have.
		if !slices.Contains(b.plan.Infrastructure.NodePolicies, policy) &&
			!strings.HasSuffix(policy, ":policy/AmazonEC2ContainerRegistryReadOnly") {
			lacking = append(lacking, policy)
		}
	}
	if len(lacking) > 0 {
		b.warn("node_policy_arns", "the role of the system node groups has policies that role %s of Karpenter's nodes lacks: %s; "+
			"pods that rely on them fail on Karpenter's nodes; add them to node_policy_arns, or give those pods a role of their own",
			b.plan.Infrastructure.NodeRole, strings.Join(lacking, ","))
	}
}

// queueTags returns the ownership tags and the tag by which one alarm finds the queues of all racks.
func (b *builder) queueTags() map[string]string {
	tags := b.marks()
	tags[names.TagQueue] = names.TagQueueInterruption
	return tags
}

// podIdentity chooses how the controller gets its credentials. A choice that was made before is kept.
func (b *builder) podIdentity() bool {
	switch b.facts.Records.Credentials {
	case "podidentity":
		return true
	case "irsa":
		return false
	}
	return b.facts.PodIdentity || b.facts.Offline && !b.facts.OIDCProvider
}

// controller plans the two Helm releases.
func (b *builder) controller() {
	b.plan.Controller = Controller{
		CRDs:             true,
		Present:          b.config.Enabled,
		Version:          names.KarpenterVersion,
		HighAvailability: b.config.HighAvailability,
		ImageRepository:  b.config.ImageRepository,
		IsolatedVPC:      b.config.IsolatedVPC,
		DevicePlugin:     b.config.Enabled && b.config.NVIDIADevicePlugin,
		Queue:            names.Queue(b.config.Rack),
	}
	if b.config.NVIDIADevicePlugin && !b.config.Enabled {
		b.warn("nvidia_device_plugin_enable", "nvidia_device_plugin_enable is true, but does nothing until karpenter_enabled is true; "+
			"if Karpenter stays off, write false")
	}
	if !b.plan.Infrastructure.PodIdentity {
		b.plan.Controller.RoleARN = fmt.Sprintf("arn:%s:iam::%s:role%s%s", b.plan.Cluster.Partition, b.plan.Cluster.Account, names.IAMPath,
			names.ControllerRole(b.config.Rack))
	}
}
