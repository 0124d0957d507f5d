package plan

// CNI describes where the pods of the VPC CNI (DaemonSet aws-node) get their AWS credentials: from a role of their own,
// or else from the role of their node.
type CNI struct {
	// Pods is the number of its pods. It is 0 if the cluster runs another CNI, which may use the nodes' role.
	Pods int `json:"pods"`
	// OwnRole means that its service account has a role, by EKS Pod Identity or by IRSA, so that new pods get credentials
	// of their own.
	OwnRole bool `json:"ownRole"`
	// Lacking is the number of pods that were admitted without such credentials. They use the node's role until they are
	// created again.
	Lacking int `json:"lacking,omitempty"`
}

// Independent reports whether no pod of the VPC CNI needs the nodes' role.
func (c CNI) Independent() bool { return c.Pods > 0 && c.OwnRole && c.Lacking == 0 }

// cniPolicy is the AWS managed policy that the VPC CNI needs. A node's role has it unless the VPC CNI is independent, or the
// cluster's addresses are IPv6.
const cniPolicy = "AmazonEKS_CNI_Policy"

// cniIPv6 returns the policy that the VPC CNI needs in an IPv6 cluster, for which AWS has no managed one (EKS user guide,
// "Amazon EKS node IAM role").
func cniIPv6(c Cluster) Document {
	return policy(
		map[string]any{"Effect": "Allow", "Resource": "*", "Action": []string{
			"ec2:AssignIpv6Addresses", "ec2:DescribeInstances", "ec2:DescribeTags", "ec2:DescribeNetworkInterfaces", "ec2:DescribeInstanceTypes",
		}},
		map[string]any{"Effect": "Allow", "Action": []string{"ec2:CreateTags"},
			"Resource": "arn:" + c.Partition + ":ec2:*:*:network-interface/*"},
	)
}

// cniIndependent reports whether the roles of nodes do without the policy of the CNI. If the cluster was not observed, the
// decision of the last plan stays: without the policy a node whose CNI needs it has no network.
func (b *builder) cniIndependent() bool {
	if observed := b.facts.CNI; observed != nil {
		return observed.Independent()
	}
	return b.facts.Records.WasOn && b.facts.Records.CNIIndependent
}
