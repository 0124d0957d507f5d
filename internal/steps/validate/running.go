package validate

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// running reads from the NodePools' status what runs now. It serves advice, so an API server that does not answer is no
// failure: the plan then has no numbers.
func (v *Validate) running(ctx context.Context, cluster *plan.ClusterFacts, records plan.Records) map[string]plan.PoolFacts {
	if cluster == nil || !records.WasOn {
		return nil
	}
	client, err := v.dial(ctx, cluster.Cluster)
	if err != nil {
		return nil
	}
	pools, err := client.List(ctx, k8s.NodePool, "", "")
	if err != nil {
		return nil
	}
	found := map[string]plan.PoolFacts{}
	for _, pool := range pools {
		nodes, _, _ := unstructured.NestedInt64(pool.Object, "status", "nodes")
		resources, _, _ := unstructured.NestedStringMap(pool.Object, "status", "resources")
		found[pool.GetName()] = plan.PoolFacts{Nodes: int(nodes), CPU: resources["cpu"], Memory: resources["memory"]}
	}
	return found
}
