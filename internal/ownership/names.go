// Package ownership defines every name, path, tag and label that Sawhorse sets or looks for. The plan, the steps and the
// policies of the CDK stack use it, so that each name is defined once.
package ownership

import (
	"cmp"
	"regexp"
)

// Names that the stack and the functions share.
const (
	// Bus is the event bus for requests and results.
	Bus = "sawhorse"
	// DefaultStack is the default name of the stack.
	DefaultStack = "Sawhorse"
	// DefaultPrefix is the root of the parameter tree.
	DefaultPrefix = "/sawhorse"
	// MostParameters is the number of standard parameters that SSM allows in an account and region. The quota cannot be
	// raised (AWS General Reference, Systems Manager endpoints and quotas).
	MostParameters = 10_000
	// FieldManager is the field manager for server-side apply.
	FieldManager = "sawhorse"
)

// RacksPath returns the path of the roles that Sawhorse creates for racks, below the path of the stack's own roles, which is
// "/" by default. Its functions may change no others.
func RacksPath(rolePath string) string { return cmp.Or(rolePath, "/") + "sawhorse/" }

// StateMachine returns the name of a stack's state machine.
func StateMachine(stack string) string { return stack + "-reconcile" }

// Alias is the name of the alias of the state machine, and of the functions that something else than the state machine
// calls: the version that is in force.
const Alias = "live"

// Paths returns a rack's paths in Parameter Store. Prefix is "/sawhorse" by default.
type Paths struct{ Prefix string }

// Racks returns the folder of all racks.
func (p Paths) Racks() string { return p.Prefix + "/racks" }

// Hold returns the parameter that holds racks: their passes plan and report, and change nothing.
func (p Paths) Hold() string { return p.Prefix + "/hold" }

// Rack returns the folder of a rack.
func (p Paths) Rack(rack string) string { return p.Racks() + "/" + rack }

// Params returns the folder of the parameters that users write.
func (p Paths) Params(rack string) string { return p.Rack(rack) + "/params" }

// Change returns the parameter that changes several of these at once. Users write it.
func (p Paths) Change(rack string) string { return p.Racks() + "/" + rack + "/change" }

// Status returns the parameter with the rack's status.
func (p Paths) Status(rack string) string { return p.Rack(rack) + "/status" }

// Outputs returns the parameter with what Sawhorse made for the rack.
func (p Paths) Outputs(rack string) string { return p.Rack(rack) + "/outputs" }

var rackName = regexp.MustCompile(`^[a-z]([a-z0-9-]*[a-z0-9])?$`)

// ValidRack reports whether a text is a valid rack name: a-z first, then a-z, 0-9 and dashes, and no dash at the end.
func ValidRack(rack string) bool { return rackName.MatchString(rack) }

// RackInPrefix is the part of a prefix in S3 that stands for the name of the rack that reads. It is a whole part of the
// path: a slash is before and after it.
const RackInPrefix = "{rack}"

// MaxDrainSeconds is the longest drain window that the stack can be deployed with (drainSeconds). The deadlines of the
// steps that drain are longer.
const MaxDrainSeconds = 3600

// MaxProofSeconds is the longest time that the stack can give a pool for its first node (proofSeconds). The deadline of the
// step proof is longer, so that the step itself ends what it began.
const MaxProofSeconds = 900

// MaxEnabledRack is the longest rack name in characters with Karpenter on. "{rack}-karpenter-build-nodes" and the names that
// Karpenter derives from it must fit into the limits of AWS.
const MaxEnabledRack = 26

// ControllerRole returns the name of the Karpenter controller's IAM role.
func ControllerRole(rack string) string { return rack + "-karpenter" }

// NodeRole returns the name of the IAM role of the nodes that Karpenter launches.
func NodeRole(rack string) string { return rack + "-karpenter-nodes" }

// BuildNodeRole returns the name of the IAM role of build nodes that have a role of their own.
func BuildNodeRole(rack string) string { return rack + "-karpenter-build-nodes" }

// ProfilePath returns the IAM path where Karpenter creates the instance profiles of a cluster's nodes
// (karpenter-provider-aws 1.10, pkg/providers/instanceprofile).
func ProfilePath(region, cluster string) string { return "/karpenter/" + region + "/" + cluster + "/" }

// RackNamespace returns the namespace of a rack's own Deployments (its API, router and resolver).
func RackNamespace(rack string) string { return rack + "-system" }

// Queue returns the name of the interruption queue.
func Queue(rack string) string { return rack + "-karpenter" }

// Rule returns the name of the EventBridge rule that sends events to the interruption queue.
func Rule(rack string) string { return rack + "-karpenter" }

// SpotRole is EC2's service-linked role for spot instances. An account without it launches none.
const SpotRole = "AWSServiceRoleForEC2Spot"

// SpotRolePath is its path.
const SpotRolePath = "/aws-service-role/spot.amazonaws.com/"

// PodIdentityAgent is the EKS add-on by which pods get credentials through EKS Pod Identity.
const PodIdentityAgent = "eks-pod-identity-agent"

// Variables by which the AWS SDK finds the credentials of a pod's own role. EKS's webhook sets them when a pod is admitted:
// the first for EKS Pod Identity, the second for IRSA.
const (
	PodIdentityVariable = "AWS_CONTAINER_CREDENTIALS_FULL_URI"
	WebTokenVariable    = "AWS_WEB_IDENTITY_TOKEN_FILE"
)

// AnnotationRole is on a service account that has a role by IRSA. Its value is the role's ARN.
const AnnotationRole = "eks.amazonaws.com/role-arn"

// CNI is the name of the VPC CNI's DaemonSet in Namespace, and of its service account and its container.
const CNI = "aws-node"

// OIDCClient is the audience of service account tokens for STS, which IRSA uses. It must be among the client IDs of the
// cluster's OIDC provider (EKS user guide, "Create an IAM OIDC provider for your cluster").
const OIDCClient = "sts.amazonaws.com"

// RuleTarget is the ID of the rule's only target.
const RuleTarget = "queue"

// AWS tags, some of which are also labels of Kubernetes objects.
const (
	// TagRack is on everything that Sawhorse made, as a tag or a label. Its value is the rack. On an EKS cluster the
	// cluster's owner sets it, to let the rack in.
	TagRack = "sawhorse.dev/rack"
	// TagCluster is on AWS resources together with TagRack. Its value is the cluster's ARN.
	TagCluster = "sawhorse.dev/cluster"
	// TagQueue is the purpose of a queue. CloudWatch finds the queues of all racks by it.
	TagQueue             = "sawhorse.dev/queue"
	TagQueueInterruption = "interruption"
	// TagRole is on the access entries of Sawhorse's functions. Its value is IAM's unique ID of the role that an entry was made
	// for.
	TagRole = "sawhorse.dev/role"
	// TagDiscovery is on the subnets and security groups that Karpenter may use. Its value is the cluster's name.
	TagDiscovery = "karpenter.sh/discovery"
	// TagNodes is on the account's own images that nodes may run. Its value does not matter.
	TagNodes = "sawhorse.dev/nodes"
	// TagName and TagRackOfNode are on the instance and the volume of every node.
	TagName       = "Name"
	TagRackOfNode = "Rack"
	// TagClusterOwned is the prefix of the tag by which load balancer controllers find a cluster's security group.
	// Karpenter also sets the tag on instances.
	TagClusterOwned = "kubernetes.io/cluster/"
	// TagNodeGroup is on the Auto Scaling group of every managed node group. Its value is the node group.
	TagNodeGroup = "eks:nodegroup-name"
	// TagEKSCluster is on every instance that Karpenter launches. Its value is the cluster's name.
	TagEKSCluster = "eks:eks-cluster-name"
)

// TagPrefix is the prefix of Sawhorse's own tags.
const TagPrefix = "sawhorse.dev/"

// ReservedTags and ReservedTagPrefixes are tag keys by which AWS, Kubernetes, Karpenter and the operators of nodes
// recognize resources. With TagPrefix they are the keys that a rack's own tags may not have.
var (
	ReservedTags        = []string{TagName, TagRackOfNode, TagEKSCluster}
	ReservedTagPrefixes = []string{"aws:", "karpenter.sh/", "karpenter.k8s.aws/", "kubernetes.io/"}
)

// Labels of nodes and of managed node groups.
const (
	// LabelSystemNode is on the nodes that the rack's own Deployments run on.
	LabelSystemNode = "convox.io/system-node"
	// LabelNodePool is on the nodes that Karpenter launches. Its value is the pool.
	LabelNodePool = "convox.io/nodepool"
	// LabelPool is Karpenter's label of nodes and NodeClaims, and its tag of instances, with the same value.
	LabelPool = "karpenter.sh/nodepool"
	// LabelRegistered is on nodes that have joined the cluster as Karpenter's, with the value true.
	LabelRegistered = "karpenter.sh/registered"
	// LabelNodeGroup is on every node of a managed node group. Its value is the group.
	LabelNodeGroup = "eks.amazonaws.com/nodegroup"
	// LabelBuild is on build node groups and build nodes.
	LabelBuild = "convox-build"
	// TaintBuild is the key of the build nodes' taint.
	TaintBuild = "dedicated"
	// LabelAdditional is on a rack's additional node groups.
	LabelAdditional = "convox.io/label"
)

// TaintSystem is the key of the taint that EKS recommends for system node groups. The chart of Karpenter's controller
// tolerates no other.
const TaintSystem = "CriticalAddonsOnly"

// Retiring is the key of the taint that keeps new pods away from the nodes of a pool that is being removed, and the label of its
// NodePool.
const Retiring = "sawhorse.dev/retiring"

// What a NodeClaim has that is replaced because of its age.
const (
	// Rotating is its label.
	Rotating = "sawhorse.dev/rotating"
	// AnnotationHash is the annotation with the hash of its NodePool, as version/hash: Rotated is in its place.
	AnnotationHash = "sawhorse.dev/nodepool-hash"
	// Rotated is no hash of Karpenter's, so that Karpenter finds the NodeClaim to be drifted.
	Rotated = "sawhorse-rotates"
	// NodePoolHash and NodePoolHashVersion are Karpenter's annotations that it compares with those of the NodePool.
	NodePoolHash        = "karpenter.sh/nodepool-hash"
	NodePoolHashVersion = "karpenter.sh/nodepool-hash-version"
)

// DoNotDisrupt is Karpenter's annotation on pods and nodes that are not to be disrupted.
const DoNotDisrupt = "karpenter.sh/do-not-disrupt"

// AnnotationMigrating is on a node that migrate_node_groups empties, see package drain.
const AnnotationMigrating = "sawhorse.dev/migrating"

// Annotations on Deployments that Sawhorse changed but did not make. They are removed when the change is undone.
const (
	// AnnotationAutoscaler is on the Cluster Autoscaler Deployment. Its value is the rack.
	AnnotationAutoscaler = "sawhorse.dev/autoscaler"
	// AnnotationUnpinned is on the same if its pods found no room on system nodes. Its value is the time.
	AnnotationUnpinned = "sawhorse.dev/unpinned"
	// AnnotationPin is on a Deployment that was placed on system nodes ("pinned") or did not fit there ("unfit" and the
	// time).
	AnnotationPin = "sawhorse.dev/pin"
)

// Annotations on objects that Sawhorse made, with the time of an action that must not be repeated too often.
const (
	// AnnotationPodsDeleted is on the Deployment of Karpenter's controller: the time at which Sawhorse last deleted
	// pods that had been admitted without credentials.
	AnnotationPodsDeleted = "sawhorse.dev/pods-deleted"
	// AnnotationValidate is on an EC2NodeClass: the time at which Sawhorse last had Karpenter check again whether EC2
	// allows it to launch.
	AnnotationValidate = "sawhorse.dev/validate-again"
)

// What is installed in the cluster.
const (
	// Namespace is the namespace of Karpenter.
	Namespace = "kube-system"
	// ProofNamespace is the namespace of the pods that ask for the first nodes of pools. Nothing else is in it.
	ProofNamespace = "sawhorse-proof"
	// ReleaseCRD and ReleaseController are Karpenter's two charts. Helm's releases of them that are taken over have these
	// names too.
	ReleaseCRD        = "karpenter-crd"
	ReleaseController = "karpenter"
	// ManagedBy is the value of the label app.kubernetes.io/managed-by on the charts' objects.
	ManagedBy = "Sawhorse"
	// ServiceAccount is the controller's service account.
	ServiceAccount = "karpenter"
	// ControllerImage is the image repository of the controller in the chart.
	ControllerImage = "public.ecr.aws/karpenter/controller"
	// KarpenterVersion is the version for a rack that names none. The catalogue has others (package karpenter).
	KarpenterVersion = "1.10.0"
	// WorkloadPool and BuildPool are the names of the NodePool and the EC2NodeClass of the built-in pools.
	WorkloadPool = "workload"
	BuildPool    = "build"
	// DevicePlugin is the DaemonSet in Namespace that offers NVIDIA GPUs to pods. The name is NVIDIA's own.
	DevicePlugin = "nvidia-device-plugin-daemonset"
	// DevicePluginImage is the only version that Sawhorse installs, with the digest that NVIDIA's operator uses
	// (NVIDIA/gpu-operator, v25.3.3 and v25.3.4: values.yaml has the version, the bundle's ClusterServiceVersion the
	// digest).
	DevicePluginImage = "nvcr.io/nvidia/k8s-device-plugin:v0.17.4@sha256:3c54348fe5a57e5700e7d8068e7531d2ef2d5f3ccb70c8f6bac0953432527abd"
	// LabelGPUMaker is on every node with a GPU that Karpenter launches. MakerNVIDIA is its value for NVIDIA GPUs.
	LabelGPUMaker = "karpenter.k8s.aws/instance-gpu-manufacturer"
	MakerNVIDIA   = "nvidia"
	// TerminationFinalizer keeps NodeClaims and Nodes until Karpenter has terminated their instance. ClassFinalizer
	// keeps EC2NodeClasses until Karpenter has removed what it made for them.
	TerminationFinalizer = "karpenter.sh/termination"
	ClassFinalizer       = "karpenter.k8s.aws/termination"
	// ResourceGPU is the resource name of NVIDIA GPUs, and the key of the taint that keeps other pods away.
	ResourceGPU = "nvidia.com/gpu"
)

// NodeName returns the Name tag of a pool's instances.
func NodeName(rack, pool string) string { return rack + "/karpenter/" + pool }

// Group returns the Kubernetes group of one function's access entry, which is also the name of the ClusterRole bound to
// it.
func Group(function string) string { return "sawhorse:" + function }

// Partition keys of the table, and prefixes of partition keys. IAM limits a function to partitions
// (dynamodb:LeadingKeys), so what one function executes for another is not in a partition that every function writes.
const (
	// PartitionRack is the prefix for a rack's records. Every function of a pass writes them.
	PartitionRack = "rack#"
	// PartitionPlan is the prefix for a rack's plan. The functions of steps execute it, and cannot write it.
	PartitionPlan = "plan#"
	// PartitionChange is the prefix for the changes of several of a rack's parameters, which the function change writes to
	// Parameter Store.
	PartitionChange = "change#"
	// PartitionSnapshot is the prefix for a rack's snapshots. Whoever goes back to one has its values applied, so only the function
	// report writes them.
	PartitionSnapshot = "snapshot#"
	// PartitionCluster is the prefix for a cluster's claim, followed by the cluster's ARN.
	PartitionCluster = "cluster#"
	// PartitionList is the key of the list of racks.
	PartitionList = "racks"
	// PartitionRollouts is the key of the racks with Karpenter, whose nodes the schedule looks at.
	PartitionRollouts = "rollouts"
)
