package plan

import "testing"

func TestEffectSentences(t *testing.T) {
	none, one, some, fewer := 0, 1, 7, 3
	hash, two := []string{"NodePoolDrifted"}, []string{"AMIDrift", "RequirementsDrifted"}
	for want, e := range map[string]Effect{
		"pool a is created":                   {Pool: "a", Change: PoolCreated},
		"pool a is changed: its nodes stay":   {Pool: "a", Change: PoolChanged},
		"pool a is changed: its 7 nodes stay": {Pool: "a", Change: PoolChanged, Nodes: &some, Replaced: &none},
		"pool a is changed: Karpenter replaces its nodes (NodePoolDrifted), as its disruption budget allows":   {Pool: "a", Change: PoolChanged, Replaces: true, Reasons: hash},
		"pool a is changed: Karpenter replaces its 1 node (NodePoolDrifted), as its disruption budget allows":  {Pool: "a", Change: PoolChanged, Replaces: true, Reasons: hash, Nodes: &one},
		"pool a is changed: Karpenter replaces its 7 nodes (NodePoolDrifted), as its disruption budget allows": {Pool: "a", Change: PoolChanged, Replaces: true, Reasons: hash, Nodes: &some, Replaced: &some},
		"pool a is changed: Karpenter replaces 3 of its 7 nodes (NodePoolDrifted), as its disruption budget allows": {
			Pool: "a", Change: PoolChanged, Replaces: true, Reasons: hash, Nodes: &some, Replaced: &fewer},
		"pool a is changed: Karpenter replaces 3 of its 7 nodes, and may replace others (AMIDrift, RequirementsDrifted), as its disruption budget allows": {
			Pool: "a", Change: PoolChanged, Replaces: true, MayReplace: true, Reasons: two, Nodes: &some, Replaced: &fewer},
		"pool a is changed: Karpenter may replace some or all of its nodes (NodePoolDrifted), as its disruption budget allows": {
			Pool: "a", Change: PoolChanged, MayReplace: true, Reasons: hash},
		"pool a is changed: Karpenter may replace its 1 node (NodePoolDrifted), as its disruption budget allows": {
			Pool: "a", Change: PoolChanged, MayReplace: true, Reasons: hash, Nodes: &one, Replaced: &none},
		"pool a is changed: it has no nodes":                       {Pool: "a", Change: PoolChanged, Replaces: true, Nodes: &none},
		"pool a is removed: Karpenter drains and ends its 7 nodes": {Pool: "a", Change: PoolRemoved, Replaces: true, Nodes: &some},
	} {
		if got := e.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
