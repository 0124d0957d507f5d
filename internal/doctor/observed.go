package doctor

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// Observed holds what was observed of a rack, its cluster and its account. A field is meaningless if its source is in
// Unseen.
type Observed struct {
	Rack string
	// Kubernetes is the version of Kubernetes, such as 1.36, to which the cluster is to be upgraded; empty for none.
	Kubernetes string
	// Caller is the ARN of the caller, or of the role if the caller is a role session. It is empty if it could not be
	// read.
	Caller string
	// Unseen holds the reason for each source that could not be read.
	Unseen map[Source]string

	// Params are the rack's parameters as written. Secure are the names of those that are a SecureString. Config is what
	// Examined returns.
	Params map[string]string
	Secure []string
	Config params.Config
	// Facts are what a pass reads for this Config. Missing means that there is no cluster of that name.
	Facts   plan.Facts
	Missing bool

	// Held is what the rack's status says of the stack's hold; empty if that does not hold the rack.
	Held string

	// Parameters is the number of standard parameters in the account and region, including those that are no rack's.
	Parameters int

	AddOns []AddOn
	// Association is true if Karpenter's service account has a Pod Identity association.
	Association bool
	// PublicAPI is true if the API server has a public endpoint.
	PublicAPI bool
	// Free has the number of free addresses of each subnet by its ID.
	Free      map[string]int
	Endpoints []Endpoint
	Instances []Instance
	Keys      []Key

	// Quotas are limits by name. Account holds IAM's account summary by IAM's names: quotas and their usage.
	Quotas  map[Quota]float64
	Account map[string]int
	// Rules is the number of rules on the default bus. RuleExists is true if the rack's rule is one of them.
	Rules      int
	RuleExists bool
	// ControllerRole is the ARN of the controller's role, or empty if it does not exist yet.
	ControllerRole string
	// Bounded are the KeyActions that the permissions boundary of the controller's role does not allow.
	Bounded []string
	// Limited are the actions of Karpenter's that the permissions boundary of the controller's role does not allow.
	Limited []string
	// Denied are the actions that the organization's policies deny.
	Denied []string

	Nodes        []corev1.Node
	Pods         []corev1.Pod
	Deployments  []appsv1.Deployment
	StatefulSets []appsv1.StatefulSet
	DaemonSets   []appsv1.DaemonSet
	CNI          plan.CNI
	Budgets      []policyv1.PodDisruptionBudget
	Pools        []PoolObject
	// Launches are the NodeClaims that have not become nodes.
	Launches []Launch
	// Waiting are the pods that Karpenter launches no node for.
	Waiting []Waiter
}

// AddOn is an EKS add-on of the cluster.
type AddOn struct {
	Name, Version, Status string
	// Issues are the problems that EKS reports. Listed are the versions that EKS has for the cluster's Kubernetes
	// version, the newest first.
	Issues, Listed []string
}

// Endpoint is a VPC endpoint.
type Endpoint struct {
	Service, Type, State string
	PrivateDNS           bool
}

// Instance is a running EC2 instance of the account.
type Instance struct {
	ID, Type string
	VCPU     int
	Spot     bool
	HopLimit int
	Tags     map[string]string
}

// Key is a KMS key that encrypts nodes' volumes.
type Key struct {
	ID, State string
	// AWSManaged keys may be used by the whole account through EBS.
	AWSManaged bool
	Policy     string
	// Grantees are the principals with grants on the key.
	Grantees []string
}

// Quota names a quota of the account by its service and code in Service Quotas.
type Quota struct{ Service, Code string }

// The quotas that a rack can run into.
var (
	OnDemandVCPU = Quota{"ec2", "L-1216C47A"}
	SpotVCPU     = Quota{"ec2", "L-34B43A08"}
	RulesPerBus  = Quota{"events", "L-244521F2"}
)

// on reports whether Karpenter is on or was being turned on: its EventBridge rule exists.
func (o *Observed) on() bool { return o.RuleExists }

// running returns the version of Karpenter that the Deployment of its controller names, or "" if there is none.
func (o *Observed) running() string {
	for _, container := range o.controller().Containers {
		image, _, _ := strings.Cut(container.Image, "@")
		if _, tag, found := strings.Cut(image[strings.LastIndexByte(image, '/')+1:], ":"); found && container.Name == "controller" {
			return tag
		}
	}
	return ""
}

// controller returns the pod of Karpenter's controller as its Deployment has it; empty if there is none.
func (o *Observed) controller() (pod corev1.PodSpec) {
	for _, d := range o.Deployments {
		if d.Namespace == ownership.Namespace && d.Name == ownership.ReleaseController {
			pod = d.Spec.Template.Spec
		}
	}
	return pod
}

// addOn returns an add-on; nil if the cluster does not have it.
func (o *Observed) addOn(name string) *AddOn {
	for i := range o.AddOns {
		if o.AddOns[i].Name == name {
			return &o.AddOns[i]
		}
	}
	return nil
}
