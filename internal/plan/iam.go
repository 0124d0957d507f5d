package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/canonical"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// nodePolicies are the AWS managed policies of every node role, beside that of the CNI.
var nodePolicies = []string{
	"AmazonEC2ContainerRegistryPullOnly",
	"AmazonEKSWorkerNodePolicy",
	"AmazonSSMManagedInstanceCore",
}

// Infrastructure describes Karpenter's identity: its roles, the controller's credentials and the nodes' access entries.
type Infrastructure struct {
	// Present is false if all of it must be removed. The roles then have only their names and ARNs.
	Present bool `json:"present"`
	// Controller is the role of Karpenter's controller, Nodes that of the nodes it launches.
	Controller Role `json:"controller"`
	Nodes      Role `json:"nodes"`
	// BuildNodes is the role of build nodes if they have one of their own, and else nil.
	BuildNodes *Role `json:"buildNodes,omitempty"`
	// Retired is the name of a role that nodes had in an earlier plan, or empty. It is removed once no node has it.
	Retired string `json:"retired,omitempty"`
	// PodIdentity selects EKS Pod Identity for the controller's credentials. Otherwise the controller uses IRSA with
	// the cluster's OIDC provider.
	PodIdentity bool `json:"podIdentity,omitempty"`
	// CNIIndependent means that the CNI has credentials of its own, so that the roles of nodes lack its policy.
	CNIIndependent bool `json:"cniIndependent,omitempty"`
	// Tags are set on everything that is created. They include the ownership tags.
	Tags map[string]string `json:"tags"`
}

// Role describes an IAM role. Its permissions boundary is not in it: that is a policy of the deployment, and a plan may
// be older than the deployment. The step uses the present one.
type Role struct {
	Name        string `json:"name"`
	ARN         string `json:"arn"`
	Description string `json:"description,omitempty"`
	// Trust is the trust policy.
	Trust Document `json:"trust,omitempty"`
	// Policies are the inline policies by name. The role has no others.
	Policies map[string]Document `json:"policies,omitempty"`
	// Attached are the ARNs of the attached managed policies. The role has no others.
	Attached []string `json:"attached,omitempty"`
}

// Document is a JSON document, such as an IAM policy: its text without white space, with sorted keys.
type Document string

func document(fields map[string]any) Document { return Document(canonical.JSON(fields)) }

// JSON returns the document as AWS gets it.
func (d Document) JSON() string { return string(d) }

// with replaces each ${name} by its value. Names and ARNs need no escaping within JSON.
func (d Document) with(namesAndValues ...string) Document {
	return Document(strings.NewReplacer(namesAndValues...).Replace(string(d)))
}

// MarshalJSON returns the document, which is part of the JSON of its plan.
func (d Document) MarshalJSON() ([]byte, error) { return []byte(d), nil }

// UnmarshalJSON takes a document over from the JSON of a plan.
func (d *Document) UnmarshalJSON(text []byte) error {
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		return err
	}
	*d = document(fields)
	return nil
}

// Path returns the IAM path of the role, which its ARN has between the kind and the name.
func (r Role) Path() string {
	_, path, _ := strings.Cut(strings.TrimSuffix(r.ARN, r.Name), ":role")
	return path
}

// infrastructure plans Karpenter's identity.
func (b *builder) infrastructure() {
	rack := b.config.Rack
	b.plan.Infrastructure = Infrastructure{
		Present: b.config.Enabled, PodIdentity: b.podIdentity(), CNIIndependent: b.config.Enabled && b.cniIndependent(), Tags: b.tags(),
		Controller: b.role(ownership.ControllerRole(rack)), Nodes: b.role(ownership.NodeRole(rack)),
	}
	if !b.config.Enabled {
		return
	}
	b.roles()
	b.lackingPolicies()
	for _, unmanaged := range b.facts.Unmanaged {
		b.problem("rack", "%s exists and was not made by Sawhorse for this rack and cluster; names in IAM are shared by all regions of an "+
			"account, so a rack of the same name in another region collides too; delete it, or use another rack name", unmanaged)
	}
	switch lost := !b.plan.Infrastructure.PodIdentity && !b.facts.OIDCProvider && !b.facts.Offline; {
	case lost && b.facts.Records.Credentials == "irsa":
		b.problem("karpenter_enabled",
			"IAM has no OIDC provider for cluster %s any more, so Karpenter gets no credentials, and the choice of IRSA is kept; "+
				"run `aws iam create-open-id-connect-provider --url %s --client-id-list %s`", b.config.ClusterName, b.plan.Cluster.OIDCIssuer,
			ownership.OIDCClient)
	case lost:
		b.problem("karpenter_enabled",
			"cluster %s has neither the add-on %s nor an IAM OIDC provider, so Karpenter could get no credentials; "+
				"run `aws eks create-addon --cluster-name %s --addon-name %s`, or create the provider for %s", b.config.ClusterName,
			ownership.PodIdentityAgent, b.config.ClusterName, ownership.PodIdentityAgent, b.plan.Cluster.OIDCIssuer)
	}
	if !b.plan.Infrastructure.PodIdentity && b.facts.OIDCProvider && b.facts.OIDCWithoutSTS {
		b.problem("karpenter_enabled",
			"the IAM OIDC provider of cluster %s lacks the client id %s, so STS would give Karpenter no credentials; "+
				"run `aws iam add-client-id-to-open-id-connect-provider --client-id %s --open-id-connect-provider-arn %s`",
			b.config.ClusterName, ownership.OIDCClient, ownership.OIDCClient, OIDCProviderARN(b.plan.Cluster))
	}
}

// nodePolicies returns the ARNs of the AWS managed policies of a node role, and its inline policies by name.
func (b *builder) nodePolicies() (arns []string, inline map[string]Document) {
	names := slices.Clone(nodePolicies)
	switch cluster := b.facts.Cluster; {
	case b.cniIndependent():
	case cluster != nil && cluster.IPv6:
		inline = map[string]Document{"cni-ipv6": cniIPv6(b.plan.Cluster)}
	default:
		names = append(names, cniPolicy)
	}
	slices.Sort(names)
	for _, name := range names {
		arns = append(arns, fmt.Sprintf("arn:%s:iam::aws:policy/%s", b.plan.Cluster.Partition, name))
	}
	return arns, inline
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
		_, name, _ := strings.Cut(policy, ":policy/")
		// AWS recommends AmazonEC2ContainerRegistryPullOnly instead, which Karpenter's nodes have.
		if !slices.Contains(b.plan.Infrastructure.Nodes.Attached, policy) && name != "AmazonEC2ContainerRegistryReadOnly" && name != cniPolicy {
			lacking = append(lacking, policy)
		}
	}
	if len(lacking) > 0 {
		b.warn("node_policy_arns", "the role of the system node groups has policies that role %s of Karpenter's nodes lacks: %s; "+
			"pods that rely on them fail on Karpenter's nodes; add them to node_policy_arns, or give those pods a role of their own",
			b.plan.Infrastructure.Nodes.Name, strings.Join(lacking, ","))
	}
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

// role returns a role that Sawhorse makes, as far as a removal needs it.
func (b *builder) role(name string) Role {
	c, path := b.plan.Cluster, ownership.RacksPath(b.facts.Deployment.RolePath)
	return Role{Name: name, ARN: fmt.Sprintf("arn:%s:iam::%s:role%s%s", c.Partition, c.Account, path, name)}
}

// roles adds the roles' policies.
func (b *builder) roles() {
	c, made := b.plan.Cluster, &b.plan.Infrastructure
	made.Controller.Description = "Karpenter's controller in EKS cluster " + c.Name
	made.Controller.Trust = controllerTrust(c, made.PodIdentity)
	made.Controller.Policies = b.controllerPolicies()
	minimal, inline := b.nodePolicies()
	made.Nodes.Description = "Nodes that Karpenter launches for EKS cluster " + c.Name
	made.Nodes.Trust, made.Nodes.Policies = nodeTrust(c), inline
	made.Nodes.Attached = slices.Concat(minimal, b.config.NodePolicyARNs)
	slices.Sort(made.Nodes.Attached)
	made.Nodes.Attached = slices.Compact(made.Nodes.Attached)
	b.buildNodes(minimal)
}

// buildNodes adds the role of build nodes, or has it removed if they had one. Karpenter may pass it in both cases: it launches
// build nodes with it until their pool has been changed.
func (b *builder) buildNodes(policies []string) {
	c, made := b.plan.Cluster, &b.plan.Infrastructure
	wanted := b.config.BuildNodes && b.config.BuildMinimalRole
	if !wanted && !(b.facts.Records.WasOn && b.facts.Records.HadBuildRole) {
		return
	}
	role := b.role(ownership.BuildNodeRole(b.config.Rack))
	made.Controller.Policies["build-nodes"] = policy(map[string]any{
		"Sid": "AllowPassingBuildNodeRole", "Effect": "Allow", "Resource": role.ARN, "Action": "iam:PassRole",
		"Condition": map[string]any{"StringEquals": map[string]any{
			"iam:PassedToService": []string{"ec2.amazonaws.com", "ec2.amazonaws.com.cn"}}},
	})
	if !wanted {
		made.Retired = role.Name
		return
	}
	role.Description = "Build nodes that Karpenter launches for EKS cluster " + c.Name
	role.Trust, role.Attached, role.Policies = nodeTrust(c), policies, made.Nodes.Policies
	made.BuildNodes = &role
}

// RoleARN returns the ARN of another of the rack's roles, which all have one path.
func (i Infrastructure) RoleARN(name string) string {
	return strings.TrimSuffix(i.Controller.ARN, i.Controller.Name) + name
}

// controllerPolicies returns the version's policies with the values of the cluster, and those for what is the rack's choice.
func (b *builder) controllerPolicies() map[string]Document {
	c := b.plan.Cluster
	all := make(map[string]Document, len(b.karpenter.policies))
	for name, policy := range b.karpenter.policies {
		all[name] = policy.with("${Partition}", c.Partition, "${Region}", c.Region, "${Account}", c.Account, "${ClusterName}", c.Name,
			"${NodeRoleARN}", b.plan.Infrastructure.Nodes.ARN, "${QueueARN}", b.plan.Queue.ARN)
	}
	if shared := b.sharedNetworks(); len(shared) > 0 {
		all["shared-networks"] = policy(map[string]any{
			"Sid": "AllowSharedNetworkAccessActions", "Effect": "Allow",
			"Resource": shared, "Action": []string{"ec2:RunInstances", "ec2:CreateFleet"},
		})
	}
	if owners := b.facts.Deployment.ImageOwners; len(owners) > 0 {
		all["image-owners"] = policy(map[string]any{
			"Sid": "AllowImagesOfOwners", "Effect": "Allow", "Action": []string{"ec2:RunInstances", "ec2:CreateFleet"},
			"Resource":  fmt.Sprintf("arn:%s:ec2:%s::image/*", c.Partition, c.Region),
			"Condition": map[string]any{"StringEquals": map[string]any{"ec2:Owner": owners}},
		})
	}
	return all
}

// controllerTrust allows one service account of this cluster to assume the role: through EKS Pod Identity, which passes
// the cluster, the namespace and the service account as session tags, or through IRSA.
func controllerTrust(c Cluster, podIdentity bool) Document {
	if podIdentity {
		return trustOfPodIdentity.with("${Cluster}", c.ARN)
	}
	issuer := strings.TrimPrefix(c.OIDCIssuer, "https://")
	return trustOfIRSA.with("${Provider}", OIDCProviderARN(c), "${Issuer}", issuer)
}

var (
	trustOfPodIdentity = trust("Service", "pods.eks.amazonaws.com", []string{"sts:AssumeRole", "sts:TagSession"},
		map[string]any{
			"aws:RequestTag/eks-cluster-arn":            "${Cluster}",
			"aws:RequestTag/kubernetes-namespace":       ownership.Namespace,
			"aws:RequestTag/kubernetes-service-account": ownership.ServiceAccount,
		})
	trustOfIRSA = trust("Federated", "${Provider}", []string{"sts:AssumeRoleWithWebIdentity"},
		map[string]any{
			"${Issuer}:aud": ownership.OIDCClient,
			"${Issuer}:sub": "system:serviceaccount:" + ownership.Namespace + ":" + ownership.ServiceAccount,
		})
	trustOfEC2      = trust("Service", "ec2.amazonaws.com", []string{"sts:AssumeRole"}, nil)
	trustOfEC2China = trust("Service", "ec2.amazonaws.com.cn", []string{"sts:AssumeRole"}, nil)
)

func nodeTrust(c Cluster) Document {
	if c.Partition == "aws-cn" {
		return trustOfEC2China
	}
	return trustOfEC2
}

// trust returns the trust policy for a principal of a kind, whose request has the values in equals.
func trust(kind, principal string, actions []string, equals map[string]any) Document {
	statement := map[string]any{"Effect": "Allow", "Principal": map[string]any{kind: principal}, "Action": actions}
	if equals != nil {
		statement["Condition"] = map[string]any{"StringEquals": equals}
	}
	return policy(statement)
}

func policy(statements ...map[string]any) Document {
	return document(map[string]any{"Version": "2012-10-17", "Statement": statements})
}
