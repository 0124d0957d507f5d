package doctor

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/sawhorse-io/sawhorse/internal/names"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// Observed is what was seen of a rack, its cluster and its account. A field whose source is in Unseen says nothing.
type Observed struct {
	Rack string
	// Caller is the ARN of who looked, of the role where it is a session of one; empty where nobody could tell.
	Caller string
	// Unseen has, for each source that could not be looked at, why.
	Unseen map[Source]string

	// Params are the rack's parameters as written, Secure the names of those that are a SecureString. Config is what they say, the
	// defaults where there are none.
	Params map[string]string
	Secure []string
	Config params.Config

	// Parameters is the number of standard parameters of the account and region, the racks' and all others.
	Parameters int

	// Cluster is nil where there is none of that name (Missing), or where nobody could look.
	Cluster    *Cluster
	Missing    bool
	NodeGroups []plan.NodeGroup
	AddOns     []AddOn
	// Association tells that Karpenter's service account has a Pod Identity association; Provider that IAM knows the cluster's
	// OIDC issuer, and ProviderWithoutSTS that it does not know STS as a client of it.
	Association, Provider, ProviderWithoutSTS bool

	Subnets        []Subnet
	SecurityGroups []plan.Tagged
	Endpoints      []Endpoint
	Instances      []Instance
	Keys           []Key

	// Quotas are limits by name, Account what IAM says of the account: both quotas and what is used of them.
	Quotas  map[Quota]float64
	Account map[string]int
	// Rules is the number of rules on the default bus; RuleExists tells that the rack's is among them.
	Rules      int
	RuleExists bool
	SpotRole   bool
	// Bounded are those of KeyActions that the permissions boundary keeps off the controller's role.
	Bounded []string
	// Denied are the actions that policies of the organization deny.
	Denied []string

	Nodes        []corev1.Node
	Pods         []corev1.Pod
	Deployments  []appsv1.Deployment
	StatefulSets []appsv1.StatefulSet
	DaemonSets   []appsv1.DaemonSet
	Budgets      []policyv1.PodDisruptionBudget
}

// Cluster is what EKS says of the cluster.
type Cluster struct {
	plan.ClusterFacts
	VPC string
	// PublicAPI tells that the API server has a public endpoint.
	PublicAPI bool
}

// AddOn is an EKS add-on of the cluster.
type AddOn struct {
	Name, Version, Status string
	// Issues is what EKS says is wrong with it; Listed are the versions that EKS has for the cluster's Kubernetes, the newest first.
	Issues, Listed []string
}

// Subnet is a subnet of the cluster's VPC.
type Subnet struct {
	plan.Tagged
	Free int
}

// Endpoint is a VPC endpoint.
type Endpoint struct {
	Service, Type, State string
	PrivateDNS           bool
}

// Instance is an EC2 instance of the account that runs.
type Instance struct {
	ID, Type string
	VCPU     int
	Spot     bool
	HopLimit int
	Tags     map[string]string
}

// Key is a KMS key that nodes' volumes are encrypted with.
type Key struct {
	ID, State string
	// AWSManaged keys are open to all of the account, by way of EBS.
	AWSManaged bool
	Policy     string
	// Grantees are the principals with grants on it.
	Grantees []string
}

// Quota names a limit of the account by its service and code in Service Quotas.
type Quota struct{ Service, Code string }

// The quotas that a rack can run into.
var (
	OnDemandVCPU = Quota{"ec2", "L-1216C47A"}
	SpotVCPU     = Quota{"ec2", "L-34B43A08"}
	RulesPerBus  = Quota{"events", "L-244521F2"}
)

// The names of what Observed.Account counts, as IAM has them.
const (
	Roles    = "Roles"
	Profiles = "InstanceProfiles"
)

// on tells whether Karpenter is on, or was being turned on: its rule is there.
func (o *Observed) on() bool { return o.RuleExists }

// pools are the pools that the parameters ask for.
func (o *Observed) pools() []params.Pool {
	pools := []params.Pool{o.Config.Workload}
	pools[0].Name = names.WorkloadPool
	if o.Config.BuildNodes {
		build := o.Config.Build
		build.Name = names.BuildPool
		pools = append(pools, build)
	}
	return append(pools, o.Config.Additional...)
}

// addOn is nil where the cluster does not have it.
func (o *Observed) addOn(name string) *AddOn {
	for i := range o.AddOns {
		if o.AddOns[i].Name == name {
			return &o.AddOns[i]
		}
	}
	return nil
}
