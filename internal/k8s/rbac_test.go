package k8s_test

import (
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/testing/k8stest"
)

func TestGrantsGiveAFunctionItsRightsAndNoOthers(t *testing.T) {
	cluster := k8stest.New(t)
	admin := client(t, cluster.Config)
	_, err := admin.Create(ctx, map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{
		"name": ownership.ProofNamespace}})
	if err != nil {
		t.Fatal(err)
	}
	functions := map[string]int{"nodepools": 2, "autoscaler": 2, "nodegroups": 2, "audit": 6, "proof": 6}
	for function, want := range functions {
		objects, err := k8s.Grants("demo", function, plan.Rights()[function])
		if err != nil || len(objects) != want {
			t.Fatalf("%s: %d grants, %v", function, len(objects), err)
		}
		for _, want := range []string{k8s.Created, k8s.Unchanged} {
			for _, object := range objects {
				if applied, err := admin.Apply(ctx, "demo", object); err != nil || applied.Action != want {
					t.Fatalf("%s: %+v, want %s, %v", function, applied, want, err)
				}
			}
		}
		for _, object := range objects {
			t.Cleanup(func() { cluster.Remove(object) })
		}
	}
	object := cluster.Create(account("rights", "demo", nil))
	for function := range functions {
		c := client(t, cluster.As(ownership.Group(function)))
		if _, err := c.List(ctx, k8s.Secret, "", ""); !k8s.IsForbidden(err) {
			t.Errorf("%s reads Secrets: %v", function, err)
		}
		if err := c.Delete(ctx, k8s.ServiceAccount, object); !k8s.IsForbidden(err) {
			t.Errorf("%s deletes ServiceAccounts: %v", function, err)
		}
		_, err := c.List(ctx, k8s.Deployment, "", "")
		if denied := k8s.IsForbidden(err); denied != (function == "nodepools") {
			t.Errorf("%s lists Deployments: %v", function, err)
		}
		for namespace, may := range map[string]bool{ownership.ProofNamespace: function == "proof", "default": false} {
			_, err := c.Create(ctx, map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{
				"name": "rights", "namespace": namespace}})
			if !k8s.IsForbidden(err) == !may {
				t.Errorf("%s creates pods in %s: %v", function, namespace, err)
			}
		}
	}
	for _, rule := range plan.Rights()["audit"] {
		for _, verb := range rule.Verbs {
			if verb != "get" && verb != "list" {
				t.Errorf("audit may %s %s", verb, rule.Resource)
			}
		}
	}
}
