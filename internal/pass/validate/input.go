package validate

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

// input is what Parameter Store and the table have of a rack: its parameters, records and change requests, and whether the
// schedule visits it.
type input struct {
	tree    store.Tree
	records plan.Records
	changes []store.ChangeRequest
	listed  bool
	// force means that a version of Karpenter that failed is tried again.
	force bool
}

// read reads what is kept of a rack, side by side. Only a pass of the rack changes the records, and what others write
// meanwhile belongs to the next iteration.
func (v *Validate) read(ctx context.Context, rack string) (in input, err error) {
	reads, ctx := errgroup.WithContext(ctx)
	reads.Go(func() (err error) {
		in.tree, err = store.ReadTree(ctx, v.Parameters, v.Paths.Params(rack))
		return err
	})
	reads.Go(func() (err error) {
		in.records, err = v.Store.Records(ctx, rack)
		return err
	})
	reads.Go(func() (err error) {
		in.changes, err = v.Store.Changes(ctx, rack)
		return err
	})
	reads.Go(func() (err error) {
		in.listed, err = v.Store.Listed(ctx, rack)
		return err
	})
	return in, reads.Wait()
}

// running adds the status of the NodePools and the NodeClaims to the facts. The plan uses them only for advice, so an
// API server that does not answer is not an error: the plan then has no numbers.
func (v *Validate) running(ctx context.Context, facts *plan.Facts) {
	if facts.Cluster == nil || !facts.Records.WasOn {
		return
	}
	client, err := v.Dial(ctx, facts.Cluster.Cluster)
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
