// Package plan computes what should exist for a rack and the steps that get there. It is pure: the same Config and Facts
// give the same Plan, byte for byte; nothing here knows a clock, an environment or an SDK.
package plan

import "github.com/sawhorse-io/sawhorse/internal/params"

// Format is the version of the Plan's JSON. A step refuses a plan of another version, and the next pass makes a new one.
const Format = 1

// Plan is what should exist for one rack, section by section, and what to do about it. It is plain data and prints as JSON.
type Plan struct {
	Format     int     `json:"format"`
	Rack       string  `json:"rack"`
	Generation int64   `json:"generation"`
	Cluster    Cluster `json:"cluster"`
	Goal       Goal    `json:"goal"`

	Access         Access         `json:"access"`
	Network        Network        `json:"network"`
	Nodegroups     Nodegroups     `json:"nodegroups"`
	Infrastructure Infrastructure `json:"infrastructure"`
	Queue          Queue          `json:"queue"`
	Controller     Controller     `json:"controller"`
	NodePools      NodePools      `json:"nodepools"`
	Autoscaler     Autoscaler     `json:"autoscaler"`

	// Steps are all that lead to the goal, in order; a pass does those that are Due.
	Steps []Step `json:"steps"`
}

// Goal is how far the rack has been taken, or is to be.
type Goal string

const (
	// GoalNone leaves the cluster as it is: Sawhorse has never changed it and is not asked to.
	GoalNone Goal = "none"
	// GoalAccess is karpenter_auth_mode alone: the cluster is ready for Karpenter, or Karpenter has been taken out again.
	GoalAccess Goal = "access"
	// GoalKarpenter is Karpenter running.
	GoalKarpenter Goal = "karpenter"
)

// Step is one call of one function until it is done.
type Step struct {
	// Name is unique in a plan: the function's name, and the part of its section where it has several: "nodegroups/pins".
	Name string `json:"name"`
	// Function is the directory under functions/ that does it.
	Function string `json:"function"`
	// Part is what follows the slash in Name.
	Part string `json:"part,omitempty"`
	// Deadline is how long the step may take, waits included, in seconds.
	Deadline int `json:"deadline"`
	// Why is for people: what the step brings about.
	Why string `json:"why"`
	// Fingerprint is what was applied once the step is done: a hash of the step's part of the plan.
	Fingerprint string `json:"fingerprint"`
}

// Cluster is how to reach the EKS cluster.
type Cluster struct {
	Name string `json:"name"`
	ARN  string `json:"arn"`
	// Endpoint is the API server's URL, CA its certificate authority in base64 PEM, both as DescribeCluster gives them.
	Endpoint   string `json:"endpoint"`
	CA         string `json:"ca"`
	Account    string `json:"account"`
	Region     string `json:"region"`
	Partition  string `json:"partition"`
	OIDCIssuer string `json:"oidcIssuer,omitempty"`
	// SecurityGroup is the cluster security group that EKS made.
	SecurityGroup string `json:"securityGroup,omitempty"`
}

// Access is the desired access to the cluster.
type Access struct {
	// Mode is the wanted authentication mode: API_AND_CONFIG_MAP, or API where the cluster has that already.
	Mode string `json:"mode,omitempty"`
}

// Network is what carries the discovery tag of the cluster.
type Network struct {
	Subnets        []string `json:"subnets,omitempty"`
	SecurityGroups []string `json:"securityGroups,omitempty"`
}

// Nodegroups is what the plan wants of the managed node groups and of the Deployments that run on the system nodes.
type Nodegroups struct {
	// System are the groups whose nodes carry the system label.
	System []string `json:"system,omitempty"`
	// Build are the build groups.
	Build []string `json:"build,omitempty"`
	// BuildEmpty wants the build groups at min 0, desired 0; else they are as the baseline has them.
	BuildEmpty bool `json:"buildEmpty,omitempty"`
	// Pinned are the Deployments (namespace/name) whose pods belong on system nodes; empty: nodeSelectors as the baseline has them.
	Pinned []string `json:"pinned,omitempty"`
}

// Infrastructure is Karpenter's identity: two roles, the controller's credentials and the nodes' access entry.
type Infrastructure struct {
	// Present is false where all of it is to be gone.
	Present        bool   `json:"present"`
	ControllerRole string `json:"controllerRole"`
	NodeRole       string `json:"nodeRole"`
	// PodIdentity chooses EKS Pod Identity for the controller's credentials; else IRSA through the cluster's OIDC provider.
	PodIdentity bool `json:"podIdentity,omitempty"`
	// NodePolicies are the ARNs of the policies attached to the node role.
	NodePolicies []string `json:"nodePolicies,omitempty"`
	// Tags are on everything that is created, the ownership marks among them.
	Tags map[string]string `json:"tags"`
}

// Queue is the interruption queue and the rule that fills it.
type Queue struct {
	Present bool              `json:"present"`
	Name    string            `json:"name"`
	Rule    string            `json:"rule"`
	Tags    map[string]string `json:"tags"`
}

// Controller is the two Helm releases.
type Controller struct {
	// CRDs wants the release of the CRDs; it is never removed again.
	CRDs bool `json:"crds,omitempty"`
	// Present wants the controller's release.
	Present bool   `json:"present"`
	Version string `json:"version"`
	// HighAvailability wants two replicas.
	HighAvailability bool `json:"highAvailability,omitempty"`
	// Queue is the name (no ARN) for settings.interruptionQueue.
	Queue string `json:"queue,omitempty"`
	// RoleARN annotates the service account with IRSA; empty with Pod Identity.
	RoleARN string `json:"roleARN,omitempty"`
}

// NodePools are the finished manifests of the NodePools and EC2NodeClasses, EC2NodeClasses first, each kind by name. None: all of ours are to be gone.
type NodePools struct {
	Objects []Object `json:"objects,omitempty"`
}

// Object is a Kubernetes object as JSON has it.
type Object = map[string]any

// Autoscaler is what Cluster Autoscaler should do.
type Autoscaler struct {
	State AutoscalerState `json:"state,omitempty"`
	// Groups are the additional node groups that it still scales, in state "groups".
	Groups []AutoscaledGroup `json:"groups,omitempty"`
	// FallbackArgs are the targets of a Cluster Autoscaler that is turned on again without a baseline.
	FallbackArgs []string `json:"fallbackArgs,omitempty"`
}

// AutoscalerState is one row of the spec's Cluster Autoscaler table.
type AutoscalerState string

const (
	// AutoscalerOff is 0 replicas.
	AutoscalerOff AutoscalerState = "off"
	// AutoscalerGroups is 1 replica on system nodes with explicit --nodes and no auto-discovery.
	AutoscalerGroups AutoscalerState = "groups"
	// AutoscalerBaseline is as it was found before the first change.
	AutoscalerBaseline AutoscalerState = "baseline"
)

// AutoscaledGroup is one --nodes=min:max:asg.
type AutoscaledGroup struct {
	Min int    `json:"min"`
	Max int    `json:"max"`
	ASG string `json:"asg"`
}

// Outcome is what Build made of the input.
type Outcome struct {
	Plan     Plan
	Problems []params.Problem
	Warnings []params.Problem
}
