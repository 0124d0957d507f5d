package nodes

import (
	"maps"
	"slices"

	ec2 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	karpenter "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/canonical"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// Effects returns what changes for each pool when a plan replaces the one in force. Unchanged pools are left out. A
// pool that is in the plan in force but not in the cluster, because no pass got as far, is created, or left out if the
// new plan does not have it. On the command line, facts that leave it out say nothing of it, and a pool that has nodes is not created
// because the plan in force is not known. The plan must have passed all checks.
func Effects(before, after plan.Plan, facts plan.Facts) []plan.Effect {
	was, is := byPool(before.NodePools.Manifests()), byPool(after.NodePools.Manifests())
	moved, age := reselected(before.Network, after.Network), Rotates(before, after)
	claims := claimsByPool(facts.NodeClaims)
	both := maps.Clone(was)
	maps.Copy(both, is)
	var effects []plan.Effect
	for _, name := range slices.Sorted(maps.Keys(both)) {
		old, existed := was[name]
		new, exists := is[name]
		live, there := facts.Pools[name]
		if facts.Pools != nil && !there && len(claims[name]) == 0 && !facts.Offline {
			existed = false
		}
		retiring := !existed && there && len(claims[name]) > 0
		effect := plan.Effect{Pool: name, Change: events.PoolChanged}
		if facts.NodeClaims != nil {
			count := len(claims[name])
			effect.Nodes = &count
		} else if there {
			effect.Nodes = &live.Nodes
		}
		switch {
		case !existed && !exists:
			continue
		case !existed && !retiring && !(facts.Offline && effect.Nodes != nil && *effect.Nodes > 0):
			effect.Change = events.PoolCreated
		case !exists:
			effect.Change, effect.Replaces, effect.Pods = events.PoolRemoved, true, live.Pods
			if retires(effect, after, facts) {
				effect.Change = events.PoolRetired
			}
		case old.text == new.text && len(moved) == 0 && age == 0:
			continue
		default:
			hashing := []*api{apiOf(before.Controller.Release.Version), apiOf(after.Controller.Release.Version)}
			change := change{is: new.decode(after, hashing), moved: moved, age: age, now: facts.Now}
			switch {
			case retiring: // its nodes stay if they are as the pool is to be
				change.was = change.is
				change.was.poolHash, change.was.classHash = "", ""
			case old.good(before):
				change.was = old.decode(before, hashing)
			}
			change.describe(&effect, facts.NodeClaims != nil, claims[name])
		}
		if effect.Change == events.PoolChanged && old.text == new.text && !slices.ContainsFunc(effect.Reasons, func(reason string) bool {
			return reason == rotated || slices.Contains(moved, reason)
		}) {
			continue // no node can be in another subnet or group, or is too old
		}
		effects = append(effects, effect)
	}
	return effects
}

// retires reports whether a pool that the plan does not have any more is retired. Without nodes, by force, and where Karpenter goes
// too, it is deleted.
func retires(effect plan.Effect, after plan.Plan, facts plan.Facts) bool {
	populated := effect.Nodes == nil || *effect.Nodes > 0
	return after.Goal == plan.GoalKarpenter && populated && !facts.Force.Retires(effect.Pool)
}

// manifests holds the NodePool and EC2NodeClass of one name, and their text.
type manifests struct {
	pool, class plan.Object
	text        string
}

func byPool(objects []plan.Object) map[string]manifests {
	all := map[string]manifests{}
	for _, object := range objects {
		if object["kind"] == kindOverlay {
			continue
		}
		name, _ := inner(object, "metadata")["name"].(string)
		m := all[name]
		m.text += string(canonical.JSON(object))
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

// decoded holds a pool's manifests as Karpenter reads them from the API server.
type decoded struct {
	pool  karpenter.NodePool
	class ec2.EC2NodeClass
	// The hashes are those of the Go types, followed by the values of the fields that only another version hashes.
	poolHash, classHash string
	// good means that Karpenter's code can process them.
	good bool
}

// good reports whether a pool's manifests of a plan pass the checks. Those of the plan in force may not: the command does not
// check previous parameters, and earlier versions checked less.
func (m manifests) good(p plan.Plan) bool {
	stored := apiOf(p.Controller.CRDs.Version)
	good := func(object plan.Object, kind string) bool {
		d, read := stored.draft(object, kind)
		return read && len(d.check().problems) == 0
	}
	return good(m.pool, "NodePool") && good(m.class, "EC2NodeClass")
}

// decode reads a pool's manifests of a plan, which pass the checks: Karpenter's code ends the process on some that do not.
// Their hashes have what the versions hash.
func (m manifests) decode(p plan.Plan, hashing []*api) decoded {
	var d decoded
	stored := apiOf(p.Controller.CRDs.Version)
	pool, good := stored.decode(m.pool, "NodePool", &d.pool)
	class, alsoGood := stored.decode(m.class, "EC2NodeClass", &d.class)
	if d.good = good && alsoGood; d.good {
		d.poolHash, d.classHash = d.pool.Hash(), d.class.Hash()
		for _, version := range hashing {
			d.poolHash += newer(version.NodePool, builtin().NodePool, pool)
			d.classHash += newer(version.EC2NodeClass, builtin().EC2NodeClass, class)
		}
	}
	return d
}

// draft reads a manifest of a plan.
func (a *api) draft(object plan.Object, kind string) (d *draft, read bool) {
	d = &draft{kind: kind, api: a}
	err := utiljson.Unmarshal(canonical.JSON(object), &d.object)
	return d, err == nil && inner(d.object, "spec") != nil
}

// decode reads a valid manifest with the defaults of its CRD, as the API server stores it, because Karpenter's hashes
// include the defaults.
func (a *api) decode(object plan.Object, kind string, into any) (plan.Object, bool) {
	stored, read := a.draft(object, kind)
	if !read {
		return nil, false
	}
	structural := a.schemas[kind]().structural
	defaulting.PruneNonNullableNullsWithoutDefaults(stored.object, structural)
	defaulting.Default(stored.object, structural)
	return stored.object, utiljson.Unmarshal(canonical.JSON(stored.readable()), into) == nil
}
