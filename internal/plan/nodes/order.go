package nodes

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	karpenter "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/sawhorse-io/sawhorse/internal/canonical"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
)

// candidate is a pool as Karpenter's scheduler sees it.
type candidate struct {
	pool         *draft
	weight       int64
	labels       map[string]any
	taints       []any
	requirements []requirement
	// types reports for each known instance type whether it meets the requirements.
	types []bool
	// keeps are the taints and asks the requirements as texts, because each pool is compared with each; texts are those of
	// requirements, in order.
	keeps, asks map[string]bool
	texts       []string
}

// Unused returns warnings about pools that are valid but never used. For a pod that fits on no node, Karpenter uses the
// first NodePool that accepts the pod. Pools with a larger weight come first and, with equal weight, those with a name
// later in the alphabet (Karpenter's OrderByWeight in pkg/utils/nodepool, addToNewNodeClaim in
// pkg/controllers/provisioning/scheduling).
func (c Compiled) Unused() []params.Problem {
	if len(c.config.Additional) == 0 {
		return nil // workload and build never accept each other's pods
	}
	var a findings
	all := candidates(c.drafts)
	for i, later := range all {
		if first := slices.IndexFunc(all[:i], func(earlier candidate) bool { return earlier.takesAll(later) }); first >= 0 {
			a.unused(all[first], later)
		}
	}
	return a
}

// candidates returns the pools in the order in which Karpenter tries them.
func candidates(drafts []*draft) []candidate {
	var all []candidate
	for _, d := range drafts {
		if d.kind != "NodePool" || d.idle {
			continue
		}
		template := inner(d.spec(), "template")
		c := candidate{pool: d, labels: inner(template, "metadata", "labels"), requirements: d.requirements()}
		c.weight, _ = d.spec()["weight"].(int64)
		c.taints, _ = inner(template, "spec")["taints"].([]any)
		c.types, c.keeps, c.asks = remaining(c.requirements), map[string]bool{}, map[string]bool{}
		for _, taint := range c.taints {
			c.keeps[string(canonical.JSON(taint))] = true
		}
		for _, r := range c.requirements {
			c.texts = append(c.texts, r.text())
			c.asks[r.text()] = true
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), strings.Compare(b.pool.name, a.pool.name))
	})
	return all
}

// unused adds a warning about a pool that is tried after one that accepts all its pods. If one of the two is the
// workload pool, the warning is reported under the other.
func (a *findings) unused(first, later candidate) {
	why := "among pools of equal weight, the name that is later in the alphabet comes first"
	if first.weight != later.weight {
		why = fmt.Sprintf("its weight is %d and not %d", first.weight, later.weight)
	}
	from, where, orDisk := later.pool.blame("weight"), "", ""
	if later.pool.name == ownership.WorkloadPool {
		from, where = first.pool.blame("weight"), " (nodePool.weight in karpenter_config)"
	}
	if !first.sameDisks(later) {
		orDisk = ", or for more disk,"
	}
	name, other := later.pool.name, first.pool.name
	a.warn(from, "Karpenter tries NodePool %s before NodePool %s (%s), and it takes every pod that %s could get, as long as its limits last: "+
		"only pods that ask for %s=%s%s come to %s; give %s a larger weight%s than %s has", other, name, why, name, ownership.LabelNodePool,
		name, orDisk, name, name, where, other)
}

// takesAll reports whether every pod that the later pool accepts gets a node of this one, unless the pod asks for the
// later pool by name. If that is not certain, it returns false. A pool without taints after one with a larger weight is
// a fallback, and is meant to come last.
func (c candidate) takesAll(later candidate) bool {
	switch {
	case c.pool.guessed || later.pool.guessed: // the architecture is unknown
	case c.weight > later.weight && len(later.taints) == 0:
	case !c.admits(later): // this, the cheapest comparison, is false for most pairs of pools
	case !c.offers(later):
	default:
		return c.launches() && c.likeNodes(later)
	}
	return false
}

// launches reports whether the pool's limits allow nodes of every kind. A limit of 0 GPUs, for example, excludes nodes
// with GPUs.
func (c candidate) launches() bool {
	for _, value := range inner(c.pool.spec(), "limits") {
		if limit, err := resource.ParseQuantity(fmt.Sprint(value)); err != nil || limit.Sign() <= 0 {
			return false
		}
	}
	return true
}

// likeNodes reports whether the pool's nodes have the same capacity as the later pool's with the same instance type.
// The disk may differ if the later pool has taints, because then its purpose is to run the pods that tolerate them.
func (c candidate) likeNodes(later candidate) bool {
	a, b := c.pool.class.spec(), later.pool.class.spec()
	for _, field := range []string{"kubelet", "instanceStorePolicy", "ipPrefixCount", "capacityReservationSelectorTerms"} {
		if !reflect.DeepEqual(a[field], b[field]) {
			return false
		}
	}
	return bootFamily(a) == bootFamily(b) && (c.sameDisks(later) || len(later.taints) > 0)
}

func (c candidate) sameDisks(later candidate) bool {
	return reflect.DeepEqual(c.pool.class.spec()["blockDeviceMappings"], later.pool.class.spec()["blockDeviceMappings"])
}

// admits reports whether pods that tolerate the later pool's taints and select any of its labels can run in this pool.
func (c candidate) admits(later candidate) bool {
	for taint := range c.keeps {
		if !later.keeps[taint] {
			return false
		}
	}
	for key, value := range later.labels {
		if key != ownership.LabelNodePool && c.labels[key] != value {
			return false
		}
	}
	for i, r := range later.requirements {
		if !karpenter.WellKnownLabels.Has(r.Key) && !c.asks[later.texts[i]] {
			return false // a custom key is a label too
		}
	}
	return true
}

// offers reports whether the pool may launch everything that the later one may.
func (c candidate) offers(later candidate) bool {
	for i := range later.types {
		if later.types[i] && !c.types[i] {
			return false
		}
	}
	if !slices.Contains(later.types, true) || slices.ContainsFunc(later.requirements, requirement.unknown) {
		return false
	}
	for i, r := range c.requirements {
		switch {
		case r.MinValues != nil:
			return false
		case slices.Contains(typeKeys, r.Key): // compared by the types above
		case r.Key == keyCapacity:
			for _, way := range []string{karpenter.CapacityTypeOnDemand, karpenter.CapacityTypeSpot, karpenter.CapacityTypeReserved} {
				excluded := slices.ContainsFunc(later.requirements, func(l requirement) bool { return l.Key == keyCapacity && !l.allows.Has(way) })
				if !excluded && !r.allows.Has(way) {
					return false
				}
			}
		case !later.asks[c.texts[i]]:
			return false
		}
	}
	return true
}
