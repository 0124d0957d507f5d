package plan

import "testing"

func TestEffectSentences(t *testing.T) {
	none, one, some := 0, 1, 7
	for want, e := range map[string]Effect{
		"pool a is created":                   {Pool: "a", Change: PoolCreated},
		"pool a is changed: its nodes stay":   {Pool: "a", Change: PoolChanged},
		"pool a is changed: its 7 nodes stay": {Pool: "a", Change: PoolChanged, Nodes: &some},
		"pool a is changed: Karpenter replaces its 1 node, as its disruption budget allows": {Pool: "a", Change: PoolChanged, Replaces: true, Nodes: &one},
		"pool a is changed: it has no nodes":                                                {Pool: "a", Change: PoolChanged, Replaces: true, Nodes: &none},
		"pool a went with its cluster: Sawhorse ends through EC2 what is left of its nodes": {Pool: "a", Change: PoolRemoved},
		"pool a is removed: Karpenter drains and ends its 7 nodes":                          {Pool: "a", Change: PoolRemoved, Replaces: true, Nodes: &some},
	} {
		if got := e.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
