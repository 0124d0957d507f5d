// Package plan computes what should exist for a rack and the steps that get there. It is pure: the same Config and Facts
// give the same Plan, byte for byte; nothing here knows a clock, an environment or an SDK.
package plan

import (
	"fmt"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/params"
)

// Format is the version of the Plan's JSON. A step refuses a plan of another version, and the next pass makes a new one.
const Format = 1

// Plan is what should exist for one rack, section by section, and what to do about it. It is plain data and prints as JSON.
type Plan struct {
	Format     int     `json:"format"`
	Rack       string  `json:"rack"`
	Generation int64   `json:"generation"`
	Cluster    Cluster `json:"cluster"`
	Goal       Goal    `json:"goal"`
	// Force passes the guards of a removal (spec 6), as an event asked of this pass. It is nothing that is wanted of the
	// rack, so Build knows nothing of it and no fingerprint has it.
	Force bool `json:"force,omitempty"`

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
	// Effects are what becomes of the pools, those that stay as they are left out.
	Effects []Effect `json:"effects,omitempty"`
}

// Effect is what becomes of a pool, and of its nodes.
type Effect struct {
	Pool   string     `json:"pool"`
	Change PoolChange `json:"change"`
	// Replaces tells that Karpenter replaces nodes of the pool, or drains all of them where the pool goes. Of a cluster that is gone there is
	// no Karpenter either.
	Replaces bool `json:"replaces,omitempty"`
	// MayReplace tells that Karpenter may replace nodes beside those: whether it does depends on facts that nobody has looked up.
	MayReplace bool `json:"mayReplace,omitempty"`
	// Reasons are Karpenter's own words for why nodes are replaced: the reasons of the condition Drifted of their NodeClaims.
	Reasons []string `json:"reasons,omitempty"`
	// Nodes is how many nodes the pool has; nil where nobody has counted.
	Nodes *int `json:"nodes,omitempty"`
	// Replaced is how many of them Karpenter replaces for certain; nil where the NodeClaims were not looked at.
	Replaced *int `json:"replaced,omitempty"`
}

// PoolChange is what is done to a pool.
type PoolChange string

// The changes of pools.
const (
	PoolCreated PoolChange = "created"
	PoolChanged PoolChange = "changed"
	PoolRemoved PoolChange = "removed"
)

// String is a sentence for people.
func (e Effect) String() string {
	count := "its nodes"
	if e.Nodes != nil {
		count = fmt.Sprintf("its %d nodes", *e.Nodes)
		if *e.Nodes == 1 {
			count = "its 1 node"
		}
	}
	switch {
	case e.Change != PoolCreated && e.Nodes != nil && *e.Nodes == 0:
		return fmt.Sprintf("pool %s is %s: it has no nodes", e.Pool, e.Change)
	case e.Change == PoolRemoved && !e.Replaces:
		return fmt.Sprintf("pool %s went with its cluster: Sawhorse ends through EC2 what is left of its nodes", e.Pool)
	case e.Change == PoolRemoved:
		return fmt.Sprintf("pool %s is removed: Karpenter drains and ends %s", e.Pool, count)
	case e.Replaces || e.MayReplace:
		return fmt.Sprintf("pool %s is changed: Karpenter %s (%s), as its disruption budget allows",
			e.Pool, e.replaces(count), strings.Join(e.Reasons, ", "))
	case e.Change == PoolChanged && e.Nodes != nil && *e.Nodes == 1:
		return fmt.Sprintf("pool %s is changed: its 1 node stays", e.Pool)
	case e.Change == PoolChanged:
		return fmt.Sprintf("pool %s is changed: %s stay", e.Pool, count)
	default:
		return fmt.Sprintf("pool %s is created", e.Pool)
	}
}

// replaces is what Karpenter does with the nodes that are counted so.
func (e Effect) replaces(count string) string {
	switch {
	case !e.Replaces && e.Nodes != nil && *e.Nodes == 1:
		return "may replace " + count
	case !e.Replaces:
		return "may replace some or all of " + count
	case e.Replaced == nil || *e.Replaced == *e.Nodes:
		return "replaces " + count
	}
	some := fmt.Sprintf("replaces %d of %s", *e.Replaced, count)
	if e.MayReplace {
		return some + ", and may replace others"
	}
	return some
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
	// Guards names the step behind it that this one makes safe; it is due with that one and by nothing else.
	Guards string `json:"guards,omitempty"`
	// Whole keeps the step from being ended early by a write to the rack.
	Whole bool `json:"whole,omitempty"`
	// Why is for people: what the step brings about.
	Why string `json:"why"`
	// Fingerprint is what was applied once the step is done: a hash of the step's part of the plan. ChangeStep, which is
	// part of no plan, has none.
	Fingerprint string `json:"fingerprint"`
}

// Cluster is which EKS cluster it is. Where its API server is, whoever connects asks EKS.
type Cluster struct {
	Name       string `json:"name"`
	ARN        string `json:"arn"`
	Account    string `json:"account"`
	Region     string `json:"region"`
	Partition  string `json:"partition"`
	OIDCIssuer string `json:"oidcIssuer,omitempty"`
	// Gone tells that the cluster has been deleted: the plan only clears away what is left in AWS.
	Gone bool `json:"gone,omitempty"`
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
	// System are the groups whose nodes carry the system label; of a group that is replaced, its copy.
	System []string `json:"system,omitempty"`
	// Replaced are the SPOT groups among the system groups that give way to an on-demand copy.
	Replaced []Replacement `json:"replaced,omitempty"`
	// Build are the build groups.
	Build []string `json:"build,omitempty"`
	// BuildEmpty wants the build groups at min 0, desired 0, as the pool build takes their place; else they are as the baseline has them.
	BuildEmpty bool `json:"buildEmpty,omitempty"`
	// BuildMin is the size that the build groups go back to; nil: the one they had.
	BuildMin *int `json:"buildMin,omitempty"`
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
	// SharedNetworks are the ARNs of the chosen subnets and security groups that another account shares: the controller may use
	// them by name, where it may use those of its own account by their tag.
	SharedNetworks []string `json:"sharedNetworks,omitempty"`
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
	// ImageRepository replaces the chart's; empty: the chart's.
	ImageRepository string `json:"imageRepository,omitempty"`
	// IsolatedVPC tells Karpenter that there is no way to the internet.
	IsolatedVPC bool `json:"isolatedVPC,omitempty"`
	// DevicePlugin wants the NVIDIA device plugin's DaemonSet.
	DevicePlugin bool `json:"devicePlugin,omitempty"`
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
	// Deployment is its namespace/name; empty: found by its image.
	Deployment string `json:"deployment,omitempty"`
	// Groups are the additional and build node groups that it still scales, in state "groups".
	Groups []AutoscaledGroup `json:"groups,omitempty"`
	// Managed are the names of the Auto Scaling groups of all managed node groups. Another one that Cluster Autoscaler scaled before
	// stays its target; the step looks for those.
	Managed []string `json:"managed,omitempty"`
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
