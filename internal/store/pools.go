package store

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
)

// Pool says what runs in one pool.
type Pool struct {
	Pool string `json:"pool"`
	// Nodes is the number of the pool's NodeClaims: its nodes, with those that start or drain.
	Nodes int `json:"nodes"`
	// Ready is true if the NodePool and its EC2NodeClass are Ready.
	Ready bool `json:"ready"`
	// Outdated is how many of the Nodes Karpenter is to replace: those that are drifted or carry an older hash.
	Outdated int `json:"outdated"`
	// Retiring is how many of the Nodes Karpenter is to end because no parameter names the pool any more: all of them. They do
	// not count as outdated.
	Retiring int `json:"retiring,omitempty"`
	// Rotating is how many of the Nodes Karpenter is to replace because of their age alone. They do not count as outdated.
	Rotating int `json:"rotating,omitempty"`
	// Held says why the oldest outdated, retiring or rotating node is still there: in Karpenter's words, by the freeze, window or
	// budget that keeps it, or why launches of the pool fail.
	Held string `json:"held,omitempty"`
	// Since is the time (RFC 3339) since which the pool is not Ready, has outdated or retiring nodes or ones that do not register, or
	// its launches have been Failing; not that of rotating ones.
	Since string `json:"since,omitempty"`
	// Failing is the time (RFC 3339) since which launches fail for which no pod waits: of nodes that a static pool lacks, or in place of
	// the node that Held is about.
	Failing string `json:"failing,omitempty"`
	// Unregistered is how many of the Nodes were launched and do not register.
	Unregistered int `json:"unregistered,omitempty"`
	// Reason says in Karpenter's words why the pool is degraded. It is empty if the pool is not.
	Reason string `json:"reason,omitempty"`
}

// quiet reports whether there is nothing to tell of a pool but the number of its nodes.
func (p Pool) quiet() bool { return p.Ready && p.Outdated+p.Retiring+p.Rotating == 0 && p.Reason == "" }

// Pools are the pools of a rack.
type Pools []Pool

// Degraded reports whether a pool is not Ready, or has nodes that do not register.
func (p Pools) Degraded() bool {
	return slices.ContainsFunc(p, func(one Pool) bool { return one.Reason != "" })
}

// AllReady returns the pools as they are after a pass that has waited until all of them were Ready. What else is wrong with one is not
// better for that.
func (p Pools) AllReady() Pools {
	all := slices.Clone(p)
	for i := range all {
		one := &all[i]
		if one.Ready || one.Unregistered > 0 {
			one.Ready = true
			continue
		}
		one.Ready = true
		if one.Reason = ""; one.Outdated+one.Retiring == 0 {
			one.Since = ""
		}
	}
	return all
}

// Outdated returns the number of outdated nodes in all pools.
func (p Pools) Outdated() (n int) {
	for _, one := range p {
		n += one.Outdated
	}
	return n
}

// inOrder returns the pools with something to tell first: the degraded ones, then those that are not Ready, then those
// with outdated, retiring or rotating nodes.
func (p Pools) inOrder() Pools {
	rank := func(one Pool) int {
		switch {
		case one.Reason != "":
			return 0
		case !one.Ready:
			return 1
		case one.Outdated+one.Retiring+one.Rotating > 0:
			return 2
		}
		return 3
	}
	return slices.SortedFunc(slices.Values(p), func(a, b Pool) int { return cmp.Or(rank(a)-rank(b), strings.Compare(a.Pool, b.Pool)) })
}

// LatestImage says which image an alias @latest is, of pools whose AMI nothing pins.
type LatestImage struct {
	Alias string `json:"alias"`
	// Image is the release, such as v20260828, or the name of an image that names none, and Since the time (RFC 3339) at which the node
	// check found it first.
	Image string `json:"image"`
	Since string `json:"since"`
	// Older is how many nodes run another image of it.
	Older int `json:"older"`
}

// Progress says in the status which generation the nodes follow.
type Progress struct {
	Generation int64 `json:"generation"`
	// Started is when the pass started that applied the generation, Ended when no node was outdated any more and all
	// pools were Ready; both RFC 3339, UTC. Ended is empty until then.
	Started string `json:"started"`
	Ended   string `json:"ended,omitempty"`
}

// With returns the status of a pass with what is known of the nodes: so the status parameter has it. A rack that is
// Reconciled is Degraded if Karpenter does not do for it what it is for. rollout is nil while Karpenter is off.
func (s Status) With(rollout *Rollout) Status {
	if rollout == nil {
		return s
	}
	s.Rollout = &Progress{Generation: rollout.Generation, Started: rollout.Started.UTC().Format(time.RFC3339)}
	if !rollout.Ended.IsZero() {
		s.Rollout.Ended = rollout.Ended.UTC().Format(time.RFC3339)
	}
	s.Pools, s.Migrating, s.Waiting, s.Latest = rollout.Pools.inOrder(), rollout.Migrating, rollout.Waiting, rollout.Latest
	s.Warnings = slices.Concat(s.Warnings, rollout.Waiting.warnings())
	if s.State == outcome.StateReconciled && rollout.Degrades() {
		s.State = outcome.StateDegraded
	}
	return s
}
