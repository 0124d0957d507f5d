// Package plan computes what should exist for a rack, and the steps that get there. It is pure: the same Config and
// Facts give the same Plan, byte for byte. It reads no clock and no environment, and uses no SDK.
package plan

import (
	"maps"
	"slices"
	"time"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/params"
)

// Format is the version of the Plan's JSON that is written, and readable the newest one that is read. A step refuses a plan of
// another version; the next pass makes a new one. A release that prepares another format raises readable only; the release
// after it writes the format. So whatever comes back by a rollback reads what the release after it wrote. testdata/formats has
// a sample of each.
const Format, readable = 2, 2

// Plan describes what should exist for one rack, section by section, and the steps that get there. It has every
// document that the steps apply, so that a step only compares and writes. It is plain data that marshals to JSON.
type Plan struct {
	Format     int     `json:"format"`
	Rack       string  `json:"rack"`
	Generation int64   `json:"generation"`
	Cluster    Cluster `json:"cluster"`
	Goal       Goal    `json:"goal"`
	// Force has the guards to override. It is a property of the request that started the pass and not of the desired state,
	// so Build does not set it and no fingerprint includes it.
	Force events.Force `json:"force,omitempty"`
	// Params are the parameters that the plan was made from, as written, and Digests those of the objects that they name, by s3:// URI.
	// The pass that puts the plan in force sets them. A release that does not know them knows From, which identifies both
	// (Records.From).
	Params  map[string]string `json:"params,omitempty"`
	Digests map[string]string `json:"digests,omitempty"`
	From    string            `json:"from,omitempty"`
	// Last is the plan whose pools were in force when this one came, with what matters of it to pools. Until the pools of this one
	// are applied, they still are. Of a plan that turns Karpenter off it is the whole plan before, which is in force until that
	// has begun.
	Last *Plan `json:"last,omitempty"`
	// Applied are the steps of a Last that is whole that were applied, with their fingerprints.
	Applied map[string]string `json:"applied,omitempty"`

	Access         Access         `json:"access"`
	Network        Network        `json:"network"`
	Nodegroups     Nodegroups     `json:"nodegroups"`
	Infrastructure Infrastructure `json:"infrastructure"`
	Queue          Queue          `json:"queue"`
	Controller     Controller     `json:"controller"`
	NodePools      NodePools      `json:"nodepools"`
	Proof          Proof          `json:"proof,omitzero"`
	Autoscaler     Autoscaler     `json:"autoscaler"`

	// Steps are all steps that lead to the goal, in order. A pass takes those that are Due.
	Steps []Step `json:"steps"`
	// Effects says what changes for each pool. Unchanged pools are left out.
	Effects []Effect `json:"effects,omitempty"`
}

// Effect describes what changes for a pool and its nodes, in the form that events have.
type Effect = events.PoolEffect

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
	// Endpoint is the API server's address and CA its certificate authority, in base64, where EKS was asked by the same call of a
	// function. A plan is stored without them: whoever can write the table could otherwise redirect the function's token.
	Endpoint, CA string `json:"-"`
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
	// Additional lists the groups that stay as they are. One that was emptied in another role gets its size back.
	Additional []string `json:"additional,omitempty"`
	// BuildEmpty means that the build groups get min 0 and desired 0, because the build pool replaces them. Otherwise
	// they have the sizes of the baseline.
	BuildEmpty bool `json:"buildEmpty,omitempty"`
	// BuildMin is the size that the build groups return to. If nil, they return to the size they had.
	BuildMin *int `json:"buildMin,omitempty"`
	// Pinned lists the Deployments (namespace/name) whose pods must run on system nodes. If empty, nodeSelectors are as
	// in the baseline.
	Pinned []string `json:"pinned,omitempty"`
	// Migration says which system groups are emptied.
	Migration Migration `json:"migration,omitzero"`
}

// Migration says which node groups are emptied once Karpenter has taken over.
type Migration struct {
	// Groups are the groups whose nodes are emptied, Others the system groups that keep theirs.
	Groups []string `json:"groups,omitempty"`
	Others []string `json:"others,omitempty"`
	// Keep is how many system nodes stay at least: one for each pod of Karpenter's controller.
	Keep int `json:"keep,omitempty"`
	// Blocks are the times in which no node is replaced, and none is emptied.
	Blocks []params.Block `json:"blocks,omitempty"`
}

// BlockedAt reports whether no node is emptied at a time.
func (m Migration) BlockedAt(at time.Time) bool {
	return slices.ContainsFunc(m.Blocks, func(b params.Block) bool { return b.Covers(at) })
}

// NodePools has the finished manifests of the EC2NodeClasses and the NodePools, in this order, each kind sorted by
// name. If there are none, all of Sawhorse's own are removed.
type NodePools struct {
	Objects []Object `json:"objects,omitempty"`
	// Overlays are the finished manifests of the NodeOverlays, sorted by name. They are applied before the NodePools.
	Overlays []Object `json:"overlays,omitempty"`
	// RotateAfter is the age at which nodes are replaced within budgets, a duration, or empty.
	RotateAfter string `json:"rotateAfter,omitempty"`
	// Frozen lays the freeze over the budgets of every NodePool. The Objects are without it.
	Frozen bool `json:"frozen,omitempty"`
}

// Pooled returns the plan whose pools are in force: this one, or, until its pools are applied, the last one.
func (p *Plan) Pooled(applied map[string]string) *Plan {
	isPools := func(s Step) bool { return s.Name == "nodepools" }
	if p == nil || p.Last == nil || !slices.ContainsFunc(p.Due(applied), isPools) {
		return p
	}
	return p.Last
}

// Before returns what a plan keeps of this one, which it takes the place of. applied are the steps of this one that are applied.
func (p *Plan) Before(next Plan, applied map[string]string) *Plan {
	pooled := p.Pooled(applied)
	judges := slices.ContainsFunc(next.Steps, func(s Step) bool { return s.Name == FitStep })
	if p == nil || p.Goal != GoalKarpenter || !judges {
		return pooled.OfPools()
	}
	last := *p
	if last.Applied, last.Effects = applied, nil; pooled == p {
		last.Last = nil
	}
	return &last
}

// Refused returns the plan that is in force until turning Karpenter off, which this plan does, begins; nil if this one is. applied
// are the steps that are recorded now; the result has what of it was applied. What comes before the judgement counts as it is now.
func (p *Plan) Refused(applied map[string]string) *Plan {
	if p == nil || p.Last == nil || p.Last.Goal != GoalKarpenter || len(p.Last.Steps) == 0 || p.Pooled(applied) == p {
		return nil
	}
	last := *p.Last
	last.Applied, last.Steps = maps.Clone(last.Applied), slices.Clone(last.Steps)
	last.Freeze(p.NodePools.Frozen)
	for _, s := range p.Steps {
		if s.Name == FitStep {
			break
		}
		if delete(last.Applied, s.Name); applied[s.Name] != "" {
			last.Applied[s.Name] = applied[s.Name]
		}
	}
	return &last
}

// OfPools returns what matters of a plan to its pools, and to what becomes of their nodes.
func (p *Plan) OfPools() *Plan {
	if p == nil {
		return nil
	}
	pools := &Plan{Goal: p.Goal, Params: p.Params, Digests: p.Digests, Network: p.Network, NodePools: p.NodePools}
	pools.Controller.CRDs.Version, pools.Controller.Release.Version = p.Controller.CRDs.Version, p.Controller.Release.Version
	return pools
}

func nodePools(objects []Object, config params.Config) NodePools {
	made := NodePools{Frozen: config.Freeze, RotateAfter: config.RotateAfter}
	for _, object := range objects {
		if object["kind"] == "NodeOverlay" {
			made.Overlays = append(made.Overlays, object)
		} else {
			made.Objects = append(made.Objects, object)
		}
	}
	return made
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
