package events

// Outputs is the JSON in a rack's parameter /sawhorse/racks/{rack}/outputs: what Sawhorse made for the rack. A field is absent
// while there is nothing of its kind, and the parameter while there is nothing at all. A pass that changes one of them writes
// the parameter at its end. Other automation may read it; more fields may be added.
type Outputs struct {
	// QueueURL and QueueARN are those of the SQS queue from which Karpenter reads interruptions.
	QueueURL string `json:"interruption_queue_url,omitempty"`
	QueueARN string `json:"interruption_queue_arn,omitempty"`
	// Rule is the name of the EventBridge rule that feeds the queue.
	Rule string `json:"interruption_rule,omitempty"`
	// ControllerRoleARN is that of the IAM role of Karpenter's controller, NodeRoleARN that of the nodes' role, BuildNodeRoleARN
	// that of build nodes where they have a role of their own.
	ControllerRoleARN string `json:"karpenter_role_arn,omitempty"`
	NodeRoleARN       string `json:"karpenter_node_role_arn,omitempty"`
	BuildNodeRoleARN  string `json:"karpenter_build_node_role_arn,omitempty"`
	// Karpenter is the version in force, whose controller worked last, like 1.10.0. KarpenterBefore is the one before it.
	Karpenter       string `json:"karpenter_version,omitempty"`
	KarpenterBefore string `json:"karpenter_version_before,omitempty"`
	// BaselineNodes is what the cluster's node groups ran when Karpenter was turned on: instance types with numbers of nodes, such as
	// c6i.large/spot=2,m5.large=3. A group of several types counts as nodes of the first one. An empty type is one that is not known.
	BaselineNodes string `json:"baseline_nodes,omitempty"`
}
