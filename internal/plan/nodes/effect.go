package nodes

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	ec2 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	karpenter "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// Effects are what becomes of each pool when a plan takes the place of the one in force, pools that stay as they are left out.
// The plan has been judged good.
func Effects(before, after plan.Plan, facts plan.Facts) []plan.Effect {
	was, is := byPool(before.NodePools.Objects), byPool(after.NodePools.Objects)
	moved := reselected(before.Network, after.Network)
	claims := claimsByPool(facts.NodeClaims)
	both := maps.Clone(was)
	maps.Copy(both, is)
	var effects []plan.Effect
	for _, name := range slices.Sorted(maps.Keys(both)) {
		old, existed := was[name]
		new, exists := is[name]
		effect := plan.Effect{Pool: name, Change: plan.PoolChanged}
		if facts.NodeClaims != nil {
			count := len(claims[name])
			effect.Nodes = &count
		} else if pool, known := facts.Pools[name]; known {
			effect.Nodes = &pool.Nodes
		}
		switch {
		case !existed:
			effect.Change = plan.PoolCreated
		case !exists:
			effect.Change, effect.Replaces = plan.PoolRemoved, true
		case old.text == new.text && len(moved) == 0:
			continue
		default:
			change := change{old.decode(), new.decode(), moved}
			change.tell(&effect, facts.NodeClaims != nil, claims[name])
		}
		if len(moved) > 0 && old.text == new.text && !effect.Replaces && !effect.MayReplace {
			continue // nodes elsewhere have moved
		}
		effects = append(effects, effect)
	}
	return effects
}

// manifests are the NodePool and EC2NodeClass of one name, and their text.
type manifests struct {
	pool, class plan.Object
	text        string
}

func byPool(objects []plan.Object) map[string]manifests {
	all := map[string]manifests{}
	for _, object := range objects {
		metadata, _ := object["metadata"].(map[string]any)
		name, _ := metadata["name"].(string)
		m := all[name]
		m.text += string(encode(object))
		switch object["kind"] {
		case "NodePool":
			m.pool = object
		case "EC2NodeClass":
			m.class = object
		}
		all[name] = m
	}
	return all
}

func encode(object plan.Object) []byte {
	text, err := json.Marshal(object)
	if err != nil {
		panic("nodes: encode: " + err.Error()) // plain data always marshals
	}
	return text
}

// decoded are a pool's manifests as Karpenter reads them from the API server.
type decoded struct {
	pool  karpenter.NodePool
	class ec2.EC2NodeClass
	// usable tells that Karpenter's code may be called with them. Those of the plan in force need not be: the command takes previous
	// parameters as they are given, and what is checked today was not always.
	usable bool
}

func (m manifests) decode() decoded {
	var d decoded
	d.usable = decode(m.pool, "NodePool", &d.pool) && d.pool.RuntimeValidate(context.Background()) == nil &&
		decode(m.class, "EC2NodeClass", &d.class) && !slices.ContainsFunc(d.class.Spec.AMISelectorTerms, func(t ec2.AMISelectorTerm) bool {
		return t.Alias != "" && !readableAlias(t.Alias)
	})
	return d
}

// decode reads a manifest as the API server stores it, with the defaults of its definition: Karpenter's hashes have them.
func decode(object plan.Object, kind string, into any) bool {
	stored := plan.Object{}
	if json.Unmarshal(encode(object), &stored) != nil {
		return false
	}
	structural := crds[kind]().structural
	defaulting.PruneNonNullableNullsWithoutDefaults(stored, structural)
	defaulting.Default(stored, structural)
	return json.Unmarshal(encode(stored), into) == nil
}
