package events

import (
	"fmt"
	"strings"
)

// PoolEffect describes what changes for one pool and its nodes.
type PoolEffect struct {
	// Pool is the NodePool's name, or that of a node group that is emptied.
	Pool   string     `json:"pool"`
	Change PoolChange `json:"change"`
	// Replaces means that Karpenter replaces nodes of the pool or, if the pool is removed or retired, drains all of them. It
	// is false if the cluster is gone, because Karpenter is gone with it.
	Replaces bool `json:"replaces,omitempty"`
	// MayReplace means that Karpenter may replace further nodes, depending on facts that were not observed.
	MayReplace bool `json:"mayReplace,omitempty"`
	// Reasons are Karpenter's reasons for replacing nodes, such as NodePoolDrifted or RequirementsDrifted: those of the
	// condition Drifted that it sets on the NodeClaims, and Rotated for nodes that are older than karpenter_rotate_after.
	Reasons []string `json:"reasons,omitempty"`
	// Nodes is the number of nodes in the pool. It is absent if they were not counted.
	Nodes *int `json:"nodes,omitempty"`
	// Replaced is how many of them Karpenter certainly replaces. It is absent if the NodeClaims were not observed.
	Replaced *int `json:"replaced,omitempty"`
	// Pods is the number of pods on the nodes of a retired pool or of a node group, without those of DaemonSets. It is absent if they were not
	// counted.
	Pods *int `json:"pods,omitempty"`
}

// PoolChange says what is done to a pool.
type PoolChange string

// Values of PoolChange.
const (
	PoolCreated PoolChange = "created"
	PoolChanged PoolChange = "changed"
	PoolRemoved PoolChange = "removed"
	// PoolRetired means that no parameter names the pool any more. It is removed with its last node.
	PoolRetired PoolChange = "retired"
	// GroupEmptied means that the nodes of a node group are emptied and ended, one after the other.
	GroupEmptied PoolChange = "emptied"
)

// String describes the effect in a sentence.
func (e PoolEffect) String() string {
	count := "its nodes"
	if e.Nodes != nil {
		count = fmt.Sprintf("its %d nodes", *e.Nodes)
		if *e.Nodes == 1 {
			count = "its 1 node"
		}
	}
	switch {
	case e.Change == GroupEmptied:
		return fmt.Sprintf("node group %s is emptied: %s%s are cordoned, emptied and ended one after the other, but those that the system "+
			"Deployments need, as PodDisruptionBudgets and karpenter.sh/do-not-disrupt allow", e.Pool, count, e.running())
	case e.Change != PoolCreated && e.Nodes != nil && *e.Nodes == 0:
		return fmt.Sprintf("pool %s is %s: it has no nodes", e.Pool, e.Change)
	case e.Change == PoolRetired:
		return fmt.Sprintf("pool %s is retired: it launches no more nodes, Karpenter empties %s%s, as its disruption budget allows, and it goes "+
			"with the last one", e.Pool, count, e.running())
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

// running says how many pods run on the nodes of a retired pool.
func (e PoolEffect) running() string {
	switch {
	case e.Pods == nil:
		return ""
	case *e.Pods == 1:
		return " (1 pod)"
	}
	return fmt.Sprintf(" (%d pods)", *e.Pods)
}

// replaces says what Karpenter does with the pool's nodes. count is the text for their number.
func (e PoolEffect) replaces(count string) string {
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
