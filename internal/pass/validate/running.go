package validate

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// running adds the status of the NodePools and the NodeClaims to the facts. The plan uses them only for advice, so an
// API server that does not answer is not an error: the plan then has no numbers.
func (v *Validate) running(ctx context.Context, facts *plan.Facts) {
	if facts.Cluster == nil || !facts.Records.WasOn {
		return
	}
	client, err := v.dial(ctx, facts.Cluster.Cluster)
	if err != nil {
		return
	}
	var pools, claims []unstructured.Unstructured
	var poolsErr, claimsErr error
	var lists sync.WaitGroup
	lists.Go(func() { pools, poolsErr = client.List(ctx, k8s.NodePool, "", "") })
	claims, claimsErr = client.List(ctx, k8s.NodeClaim, "", "")
	if lists.Wait(); poolsErr == nil {
		facts.Pools = map[string]plan.PoolFacts{}
		for _, pool := range pools {
			nodes, _, _ := unstructured.NestedInt64(pool.Object, "status", "nodes")
			resources, _, _ := unstructured.NestedStringMap(pool.Object, "status", "resources")
			facts.Pools[pool.GetName()] = plan.PoolFacts{Nodes: int(nodes), CPU: resources["cpu"], Memory: resources["memory"]}
		}
	}
	if claimsErr == nil {
		facts.NodeClaims = make([]plan.Object, 0, len(claims))
		for _, claim := range claims {
			facts.NodeClaims = append(facts.NodeClaims, claim.Object)
		}
	}
}
