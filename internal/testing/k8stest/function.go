package k8stest

import (
	"context"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// Connector connects like a function, with the rights of its grants and no others. A test that passes shows that these
// rights are sufficient.
func (c *Cluster) Connector(function string) k8s.Connector {
	c.t.Helper()
	admin, err := k8s.New("test", c.Config)
	if err != nil {
		c.t.Fatal(err)
	}
	grants, err := k8s.Grants("test", function, plan.Rights()[function])
	if err != nil || len(grants) == 0 {
		c.t.Fatalf("function %s: %d grants, %v", function, len(grants), err)
	}
	for _, right := range plan.Rights()[function] {
		if right.Namespace == ownership.ProofNamespace {
			_, err := admin.Create(context.Background(), Object{
				"apiVersion": "v1", "kind": "Namespace", "metadata": Object{"name": right.Namespace},
			})
			if err != nil {
				c.t.Fatal(err)
			}
		}
	}
	for _, grant := range grants {
		if _, err := admin.Apply(context.Background(), "test", grant); err != nil {
			c.t.Fatal(err)
		}
	}
	config := c.As(ownership.Group(function))
	connector := func(context.Context, plan.Cluster) (*k8s.Client, error) { return k8s.New("test", config) }
	// New rights take effect a moment after they are written.
	Eventually(c.t, func() bool {
		client, _ := connector(context.Background(), plan.Cluster{})
		kind := k8s.Deployment
		if function == "nodepools" || function == "rollout" {
			kind = k8s.NodePool
		}
		_, err := client.List(context.Background(), kind, "", "")
		return err == nil
	})
	return connector
}
