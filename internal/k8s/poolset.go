package k8s

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// PoolSet holds a cluster's NodePools and EC2NodeClasses.
type PoolSet struct {
	// Pools and Classes are the rack's, including those being deleted.
	Pools, Classes []unstructured.Unstructured
	// Unmanaged has the names of the NodePools that Sawhorse did not make for the rack.
	Unmanaged []string

	names map[string]bool
}

// PoolSet reads NodePools and EC2NodeClasses. known are names of the rack's pools that may be deleted already.
func (c *Client) PoolSet(ctx context.Context, rack string, known ...string) (PoolSet, error) {
	// The names of the built-in pools belong to the rack, unless another NodePool has one of them.
	set := PoolSet{names: map[string]bool{ownership.WorkloadPool: true, ownership.BuildPool: true}}
	for _, name := range known {
		set.names[name] = true
	}
	pools, err := c.List(ctx, NodePool, "", "")
	if err != nil {
		return set, err
	}
	if set.Classes, err = c.Ours(ctx, EC2NodeClass, rack); err != nil {
		return set, err
	}
	for i := range set.Classes {
		set.names[set.Classes[i].GetName()] = true // a pool and its class have the same name
	}
	for _, pool := range pools {
		if Owned(&pool, rack) == nil {
			set.Pools = append(set.Pools, pool)
			set.names[pool.GetName()] = true
		}
	}
	set.Unmanaged = unmanagedPools(pools, rack)
	for _, name := range set.Unmanaged {
		delete(set.names, name)
	}
	return set, nil
}

// Names returns the sorted names of the rack's pools.
func (f PoolSet) Names() []string { return slices.Sorted(maps.Keys(f.names)) }

// Has reports whether a pool belongs to the rack.
func (f PoolSet) Has(pool string) bool { return f.names[pool] }

// Claims lists the NodeClaims of the rack's pools, without what says who wrote which field: there may be thousands.
func (c *Client) Claims(ctx context.Context, set PoolSet) (claims []unstructured.Unstructured, err error) {
	err = c.Each(ctx, NodeClaim, "", "", func(claim *unstructured.Unstructured) error {
		if set.Owns(claim) {
			claim.SetManagedFields(nil)
			claims = append(claims, *claim)
		}
		return nil
	})
	return claims, err
}

// Owns reports whether a NodeClaim belongs to one of the rack's pools. If the NodePool is deleted, a NodeClaim is
// recognized by its EC2NodeClass, which outlives it. NodeClaims of a foreign NodePool do not belong to the rack, whatever
// their class.
func (f PoolSet) Owns(claim *unstructured.Unstructured) bool {
	pool := claim.GetLabels()[ownership.LabelPool]
	class, _, _ := unstructured.NestedString(claim.Object, "spec", "nodeClassRef", "name")
	ofClass := slices.ContainsFunc(f.Classes, func(o unstructured.Unstructured) bool { return o.GetName() == class })
	return !slices.Contains(f.Unmanaged, pool) && (f.names[pool] || ofClass)
}

// UnmanagedNodePools returns the names of the NodePools that Sawhorse did not make for the rack.
func (c *Client) UnmanagedNodePools(ctx context.Context, rack string) ([]string, error) {
	pools, err := c.List(ctx, NodePool, "", "")
	return unmanagedPools(pools, rack), err
}

func unmanagedPools(pools []unstructured.Unstructured, rack string) (foreign []string) {
	for i := range pools {
		if Owned(&pools[i], rack) != nil {
			foreign = append(foreign, pools[i].GetName())
		}
	}
	return foreign
}
