// Package names makes every name, path, tag and label that Sawhorse gives or looks for: for the plan, for the steps and
// for the policies of the CDK stack. Nothing else in the repository spells one out.
package names

import "regexp"

// Names that the stack and the functions share.
const (
	// Bus is the event bus for requests in and outcomes out.
	Bus = "sawhorse"
	// DefaultStack is the stack's name, unless it was deployed under another one.
	DefaultStack = "Sawhorse"
	// DefaultPrefix is the root of the parameter tree.
	DefaultPrefix = "/sawhorse"
	// IAMPath holds the roles that Sawhorse creates; its functions may write no other.
	IAMPath = "/sawhorse/"
	// MostParameters is how many standard parameters SSM holds in an account and region; the quota cannot be raised (AWS General
	// Reference, Systems Manager endpoints and quotas).
	MostParameters = 10_000
	// FieldManager owns the fields that Sawhorse applies in a cluster.
	FieldManager = "sawhorse"
)

// StateMachine is the name of a stack's state machine.
func StateMachine(stack string) string { return stack + "-reconcile" }

// Paths are the places of a rack in Parameter Store, below one prefix ("/sawhorse" on a normal stack).
type Paths struct{ Prefix string }

// Racks is the folder of all racks.
func (p Paths) Racks() string { return p.Prefix + "/racks" }

// Params is the folder of the parameters that users write.
func (p Paths) Params(rack string) string { return p.Racks() + "/" + rack + "/params" }

// Status is the parameter that tells what Sawhorse made of them.
func (p Paths) Status(rack string) string { return p.Racks() + "/" + rack + "/status" }

// Outputs is the folder of what Sawhorse made.
func (p Paths) Outputs(rack string) string { return p.Racks() + "/" + rack + "/outputs" }

var rackName = regexp.MustCompile(`^[a-z]([a-z0-9-]*[a-z0-9])?$`)

// ValidRack tells whether the text is a rack's name: a-z first, then a-z, 0-9 and dashes, no dash at the end.
func ValidRack(rack string) bool { return rackName.MatchString(rack) }

// MaxDrainSeconds is the longest drain window that the stack can be deployed with (drainSeconds). The steps that drain have a
// longer deadline.
const MaxDrainSeconds = 3600

// MaxEnabledRack is how long a rack's name may be with Karpenter on: "{rack}-karpenter-nodes" and names that Karpenter
// derives must fit (reference 000, Constraints).
const MaxEnabledRack = 26

// ControllerRole is the IAM role of the Karpenter controller.
func ControllerRole(rack string) string { return rack + "-karpenter" }

// NodeRole is the IAM role of the nodes that Karpenter launches.
func NodeRole(rack string) string { return rack + "-karpenter-nodes" }

// ProfilePath is where Karpenter puts the instance profiles of a cluster's nodes (karpenter-provider-aws 1.10,
// pkg/providers/instanceprofile).
func ProfilePath(region, cluster string) string { return "/karpenter/" + region + "/" + cluster + "/" }

// Queue is the interruption queue.
func Queue(rack string) string { return rack + "-karpenter" }

// Rule is the EventBridge rule that fills the interruption queue.
func Rule(rack string) string { return rack + "-karpenter" }

// OIDCClient is the audience of the tokens that service accounts hand to STS, where the Pod Identity agent does not: the
// cluster's OIDC provider must have it among its client ids (EKS user guide, "Create an IAM OIDC provider for your cluster").
const OIDCClient = "sts.amazonaws.com"

// RuleTarget is the id of the rule's one target.
const RuleTarget = "queue"

// AWS tags, and labels of Kubernetes objects, by which Sawhorse knows what it made.
const (
	// TagRack is on everything Sawhorse made, as a tag or as a label; its value is the rack. On an EKS cluster it is the owner's, who lets
	// the rack in by it.
	TagRack = "sawhorse.dev/rack"
	// TagCluster is on AWS resources beside TagRack; its value is the cluster's ARN.
	TagCluster = "sawhorse.dev/cluster"
	// TagQueue tells what a queue is for; CloudWatch finds the queues of all racks by it.
	TagQueue             = "sawhorse.dev/queue"
	TagQueueInterruption = "interruption"
	// TagDiscovery marks the subnets and security groups that Karpenter may use; its value is the cluster's name.
	TagDiscovery = "karpenter.sh/discovery"
	// TagName and TagRackOfNode are on every node's instance and volume.
	TagName       = "Name"
	TagRackOfNode = "Rack"
	// TagClusterOwned is how load balancer controllers find a cluster's security group; Karpenter puts it on instances, too.
	TagClusterOwned = "kubernetes.io/cluster/"
	// TagEKSCluster is on every instance that Karpenter launches; its value is the cluster's name.
	TagEKSCluster = "eks:eks-cluster-name"
)

// Labels of nodes and of managed node groups.
const (
	// LabelSystemNode marks the nodes on which the rack's own Deployments run.
	LabelSystemNode = "convox.io/system-node"
	// LabelNodePool tells a Karpenter node's pool.
	LabelNodePool = "convox.io/nodepool"
	// LabelPool is Karpenter's own label of nodes and NodeClaims, and its tag of instances, with the same value.
	LabelPool = "karpenter.sh/nodepool"
	// LabelNodeGroup is on every node of a managed node group; its value is the group.
	LabelNodeGroup = "eks.amazonaws.com/nodegroup"
	// LabelBuild marks build node groups and build nodes.
	LabelBuild = "convox-build"
	// LabelAdditional marks a rack's additional node groups.
	LabelAdditional = "convox.io/label"
)

// TaintSystem is the key of the taint that EKS advises for system node groups, and the only one that the chart of Karpenter's controller
// tolerates.
const TaintSystem = "CriticalAddonsOnly"

// Annotations on Deployments that Sawhorse did not make and has changed; they go when the change does.
const (
	// AnnotationAutoscaler is on the Cluster Autoscaler's; its value is the rack.
	AnnotationAutoscaler = "sawhorse.dev/autoscaler"
	// AnnotationPin is on one that was pinned to system nodes ("pinned"), or that did not fit there ("unfit" and the generation).
	AnnotationPin = "sawhorse.dev/pin"
)

// Annotations on what Sawhorse made, which keep when it last did something that it must not do too often.
const (
	// AnnotationPodsDeleted is on the Deployment of Karpenter's controller: when Sawhorse last deleted pods of it that had been
	// admitted without credentials.
	AnnotationPodsDeleted = "sawhorse.dev/pods-deleted"
	// AnnotationValidate is on an EC2NodeClass: when Sawhorse last had Karpenter try again whether EC2 lets it launch.
	AnnotationValidate = "sawhorse.dev/validate-again"
)

// What is installed in the cluster.
const (
	// Namespace is where Karpenter is installed.
	Namespace = "kube-system"
	// ReleaseCRD and ReleaseController are the two Helm releases.
	ReleaseCRD        = "karpenter-crd"
	ReleaseController = "karpenter"
	// ServiceAccount is the controller's.
	ServiceAccount = "karpenter"
	// ControllerImage is the repository of the controller's image, as the chart has it.
	ControllerImage = "public.ecr.aws/karpenter/controller"
	// KarpenterVersion is the one version that Sawhorse installs.
	KarpenterVersion = "1.10.0"
	// KarpenterDigest is the digest of the controller's image of that version, for all architectures, as the chart of the release has
	// it (aws/karpenter-provider-aws, "chore: Release v1.10.0 (#9026)", charts/karpenter/values.yaml).
	KarpenterDigest = "sha256:0c215133a37e0d8bc2515b75120d2fefa14be3f939aebc14020813cdc3c001a3"
	// WorkloadPool and BuildPool name the NodePool and the EC2NodeClass of the built-in pools.
	WorkloadPool = "workload"
	BuildPool    = "build"
	// DevicePlugin is the DaemonSet by which nodes offer their NVIDIA GPUs to pods, in Namespace; the name is NVIDIA's own.
	DevicePlugin = "nvidia-device-plugin-daemonset"
	// DevicePluginImage is the one version of it that Sawhorse installs, by the digest that NVIDIA's own operator has for it
	// (NVIDIA/gpu-operator, v25.3.3 and v25.3.4: values.yaml has the version, the bundle's ClusterServiceVersion the digest).
	DevicePluginImage = "nvcr.io/nvidia/k8s-device-plugin:v0.17.4@sha256:3c54348fe5a57e5700e7d8068e7531d2ef2d5f3ccb70c8f6bac0953432527abd"
	// LabelGPUMaker is on every node that Karpenter launches with a GPU; MakerNVIDIA is its value for NVIDIA's.
	LabelGPUMaker = "karpenter.k8s.aws/instance-gpu-manufacturer"
	MakerNVIDIA   = "nvidia"
	// TerminationFinalizer keeps NodeClaims and Nodes until Karpenter has ended their instance, ClassFinalizer EC2NodeClasses
	// until it has cleaned up after them.
	TerminationFinalizer = "karpenter.sh/termination"
	ClassFinalizer       = "karpenter.k8s.aws/termination"
	// ResourceGPU is how pods ask for an NVIDIA GPU, and the key of the taint that keeps the others away.
	ResourceGPU = "nvidia.com/gpu"
)

// NodeName is the Name tag of a pool's instances.
func NodeName(rack, pool string) string { return rack + "/karpenter/" + pool }

// Group is the Kubernetes group of one function's access entry, and the name of the ClusterRole bound to it.
func Group(function string) string { return "sawhorse:" + function }

// The partition keys of the table: what begins with PartitionRack is a rack's, with PartitionCluster a cluster's, by its ARN; the list of
// the racks is in PartitionList.
const (
	PartitionRack    = "rack#"
	PartitionCluster = "cluster#"
	PartitionList    = "racks"
)
