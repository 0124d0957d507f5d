package events

import "testing"

func TestEffectSentences(t *testing.T) {
	none, one, some, fewer := 0, 1, 7, 3
	hash, two := []string{"NodePoolDrifted"}, []string{"AMIDrift", "RequirementsDrifted"}
	const changed, allows = "pool a is changed: ", ", as its disruption budget allows"
	for want, e := range map[string]PoolEffect{
		"pool a is created":          {Change: PoolCreated},
		changed + "its nodes stay":   {Change: PoolChanged},
		changed + "its 7 nodes stay": {Change: PoolChanged, Nodes: &some, Replaced: &none},
		changed + "its 1 node stays": {Change: PoolChanged, Nodes: &one},
		changed + "it has no nodes":  {Change: PoolChanged, Replaces: true, Nodes: &none},
		"pool a is retired: it launches no more nodes, Karpenter empties its 7 nodes (3 pods)" + allows + ", and it goes with the last one": {
			Change: PoolRetired, Replaces: true, Nodes: &some, Pods: &fewer,
		},
		"pool a is retired: it launches no more nodes, Karpenter empties its 1 node (1 pod)" + allows + ", and it goes with the last one": {
			Change: PoolRetired, Replaces: true, Nodes: &one, Pods: &one,
		},
		"pool a is retired: it launches no more nodes, Karpenter empties its nodes" + allows + ", and it goes with the last one": {
			Change: PoolRetired, Replaces: true,
		},
		"pool a is removed: Karpenter drains and ends its 7 nodes": {Change: PoolRemoved, Replaces: true, Nodes: &some},

		changed + "Karpenter replaces its nodes (NodePoolDrifted)" + allows: {Change: PoolChanged, Replaces: true, Reasons: hash},
		changed + "Karpenter replaces its 1 node (NodePoolDrifted)" + allows: {
			Change: PoolChanged, Replaces: true, Reasons: hash, Nodes: &one,
		},
		changed + "Karpenter replaces its 7 nodes (NodePoolDrifted)" + allows: {
			Change: PoolChanged, Replaces: true, Reasons: hash, Nodes: &some, Replaced: &some,
		},
		changed + "Karpenter replaces 3 of its 7 nodes (NodePoolDrifted)" + allows: {
			Change: PoolChanged, Replaces: true, Reasons: hash, Nodes: &some, Replaced: &fewer,
		},
		changed + "Karpenter replaces 3 of its 7 nodes, and may replace others (AMIDrift, RequirementsDrifted)" + allows: {
			Change: PoolChanged, Replaces: true, MayReplace: true, Reasons: two, Nodes: &some, Replaced: &fewer,
		},
		changed + "Karpenter may replace some or all of its nodes (NodePoolDrifted)" + allows: {
			Change: PoolChanged, MayReplace: true, Reasons: hash,
		},
		changed + "Karpenter may replace its 1 node (NodePoolDrifted)" + allows: {
			Change: PoolChanged, MayReplace: true, Reasons: hash, Nodes: &one, Replaced: &none,
		},
		"pool a went with its cluster: Sawhorse ends through EC2 what is left of its nodes": {Change: PoolRemoved},
	} {
		e.Pool = "a"
		if got := e.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
