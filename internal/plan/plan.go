// Package plan computes what should exist for a rack, and the steps that get there. It is pure: the same Config and
// Facts give the same Plan, byte for byte. It reads no clock and no environment, and uses no SDK.
package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sawhorse-io/sawhorse/internal/params"
)

// Format is the version of the Plan's JSON. A step refuses a plan of another version; the next pass makes a new one.
const Format = 2

// Plan describes what should exist for one rack, section by section, and the steps that get there. It has every
// document that the steps apply, so that a step only compares and writes. It is plain data that marshals to JSON.
type Plan struct {
	Format     int     `json:"format"`
	Rack       string  `json:"rack"`
	Generation int64   `json:"generation"`
	Cluster    Cluster `json:"cluster"`
	Goal       Goal    `json:"goal"`
	// Force overrides the checks that can block a removal. It is a property of the request that started the pass and
	// not of the desired state, so Build does not set it and no fingerprint includes it.
	Force bool `json:"force,omitempty"`

	Access         Access         `json:"access"`
	Network        Network        `json:"network"`
	Nodegroups     Nodegroups     `json:"nodegroups"`
	Infrastructure Infrastructure `json:"infrastructure"`
	Queue          Queue          `json:"queue"`
	Controller     Controller     `json:"controller"`
	NodePools      NodePools      `json:"nodepools"`
	Autoscaler     Autoscaler     `json:"autoscaler"`

	// Steps are all steps that lead to the goal, in order. A pass takes those that are Due.
	Steps []Step `json:"steps"`
	// Effects says what changes for each pool. Unchanged pools are left out.
	Effects []Effect `json:"effects,omitempty"`
}

// Effect describes what changes for a pool and its nodes.
type Effect struct {
	Pool   string     `json:"pool"`
	Change PoolChange `json:"change"`
	// Replaces means that Karpenter replaces nodes of the pool or, if the pool is removed, drains all of them. It is
	// false if the cluster is gone, because Karpenter is gone with it.
	Replaces bool `json:"replaces,omitempty"`
	// MayReplace means that Karpenter may replace further nodes, depending on facts that were not observed.
	MayReplace bool `json:"mayReplace,omitempty"`
	// Reasons are the reasons of the condition Drifted that Karpenter sets on the NodeClaims it replaces.
	Reasons []string `json:"reasons,omitempty"`
	// Nodes is the number of nodes in the pool, or nil if they were not counted.
	Nodes *int `json:"nodes,omitempty"`
	// Replaced is how many of them Karpenter certainly replaces, or nil if the NodeClaims were not observed.
	Replaced *int `json:"replaced,omitempty"`
}

// PoolChange says what is done to a pool.
type PoolChange string

// Values of PoolChange.
const (
	PoolCreated PoolChange = "created"
	PoolChanged PoolChange = "changed"
	PoolRemoved PoolChange = "removed"
)

// String describes the effect in a sentence.
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

// replaces says what Karpenter does with the pool's nodes. count is the text for their number.
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

// Goal is a stage that a rack has reached, or is to reach.
type Goal string

const (
	// GoalNone leaves the cluster as it is: Sawhorse has never changed it and is not asked to.
	GoalNone Goal = "none"
	// GoalAccess is karpenter_auth_mode alone: the cluster is ready for Karpenter, or Karpenter has been removed again.
	GoalAccess Goal = "access"
	// GoalKarpenter means that Karpenter runs.
	GoalKarpenter Goal = "karpenter"
)

// Cluster identifies the EKS cluster. The API server's endpoint is not in it; clients ask EKS for it.
type Cluster struct {
	Name       string `json:"name"`
	ARN        string `json:"arn"`
	Account    string `json:"account"`
	Region     string `json:"region"`
	Partition  string `json:"partition"`
	OIDCIssuer string `json:"oidcIssuer,omitempty"`
	// Gone means that the cluster has been deleted. The plan then only removes what is left in AWS.
	Gone bool `json:"gone,omitempty"`
	// SecurityGroup is the cluster security group that EKS created.
	SecurityGroup string `json:"securityGroup,omitempty"`
}

// Network lists the resources that carry the cluster's discovery tag.
type Network struct {
	Subnets        []string `json:"subnets,omitempty"`
	SecurityGroups []string `json:"securityGroups,omitempty"`
}

// Nodegroups describes the desired state of the managed node groups, and of the Deployments that run on system nodes.
type Nodegroups struct {
	// System lists the groups whose nodes get the system label. A group that is being replaced is listed as its copy.
	System []string `json:"system,omitempty"`
	// Replaced lists the SPOT system groups that are replaced by an on-demand copy.
	Replaced []Replacement `json:"replaced,omitempty"`
	// Build lists the build groups.
	Build []string `json:"build,omitempty"`
	// BuildEmpty means that the build groups get min 0 and desired 0, because the build pool replaces them. Otherwise
	// they have the sizes of the baseline.
	BuildEmpty bool `json:"buildEmpty,omitempty"`
	// BuildMin is the size that the build groups return to. If nil, they return to the size they had.
	BuildMin *int `json:"buildMin,omitempty"`
	// Pinned lists the Deployments (namespace/name) whose pods must run on system nodes. If empty, nodeSelectors are as
	// in the baseline.
	Pinned []string `json:"pinned,omitempty"`
}

// NodePools has the finished manifests of the EC2NodeClasses and the NodePools, in this order, each kind sorted by
// name. If there are none, all of Sawhorse's own are removed.
type NodePools struct {
	Objects []Object `json:"objects,omitempty"`
	// Frozen lays the freeze over the budgets of every NodePool. The Objects are without it.
	Frozen bool `json:"frozen,omitempty"`
}

// Names returns the sorted names of the pools. A pool's NodePool and EC2NodeClass have the same name.
func (n NodePools) Names() (names []string) {
	for _, object := range n.Objects {
		name, _ := fields(object["metadata"])["name"].(string)
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Object is a decoded Kubernetes object.
type Object = map[string]any

// Outcome is the result of Build.
type Outcome struct {
	Plan     Plan
	Problems []params.Problem
	Warnings []params.Problem
}
