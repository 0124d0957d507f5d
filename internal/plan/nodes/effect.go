package nodes

import (
	"encoding/json"
	"maps"
	"slices"

	ec2 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	karpenter "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// Effects are what becomes of each pool when the objects replace those that are in force. Karpenter replaces a pool's nodes
// where the hash of its NodePool or EC2NodeClass changes, and drains them where the pool goes.
func Effects(before, after []plan.Object, running map[string]plan.PoolFacts) []plan.Effect {
	was, is := byPool(before), byPool(after)
	var effects []plan.Effect
	names := slices.Sorted(maps.Keys(was))
	for name := range is {
		if _, old := was[name]; !old {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		effect := plan.Effect{Pool: name, Nodes: nodesOf(running, name)}
		old, existed := was[name]
		new, exists := is[name]
		switch {
		case !existed:
			effect.Change = plan.PoolCreated
		case !exists:
			effect.Change, effect.Replaces = plan.PoolRemoved, true
		case old.text == new.text:
			continue
		default:
			effect.Change, effect.Replaces = plan.PoolChanged, old.hash != new.hash
		}
		effects = append(effects, effect)
	}
	return effects
}

func nodesOf(running map[string]plan.PoolFacts, pool string) *int {
	if facts, known := running[pool]; known {
		return &facts.Nodes
	}
	return nil
}

// pair is the NodePool and EC2NodeClass of one name.
type pair struct{ text, hash string }

func byPool(objects []plan.Object) map[string]pair {
	all := map[string]pair{}
	for _, object := range objects {
		metadata, _ := object["metadata"].(map[string]any)
		name, _ := metadata["name"].(string)
		text, hash := fingerprint(object)
		p := all[name]
		all[name] = pair{p.text + text, p.hash + hash}
	}
	return all
}

// fingerprint is an object's text, and the hash by which Karpenter tells whether nodes have drifted from it.
func fingerprint(object plan.Object) (text, hash string) {
	encoded, err := json.Marshal(object)
	if err != nil {
		panic("nodes: fingerprint: " + err.Error()) // plain data always marshals
	}
	switch object["kind"] {
	case "NodePool":
		var pool karpenter.NodePool
		if json.Unmarshal(encoded, &pool) == nil {
			hash = pool.Hash()
		}
	case "EC2NodeClass":
		var class ec2.EC2NodeClass
		if json.Unmarshal(encoded, &class) == nil {
			hash = class.Hash()
		}
	}
	return string(encoded), hash
}
