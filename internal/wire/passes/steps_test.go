package passes

import (
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/handler"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

// Without one of them, each full pass would take all steps, because it cannot know which are due.
func TestTheAuditHasAllStepsOfPlans(t *testing.T) {
	for variable, value := range map[string]string{
		"SAWHORSE_CONTROLLER_BOUNDARY": "boundary", "SAWHORSE_NODE_BOUNDARY": "boundary", "SAWHORSE_POD_IDENTITY_DELAY_SECONDS": "10",
		"SAWHORSE_PRINCIPALS": "{}", "SAWHORSE_PRINCIPAL": "principal", "SAWHORSE_DRAIN_SECONDS": "900", "SAWHORSE_PROOF_SECONDS": "900",
	} {
		t.Setenv(variable, value)
	}
	all, err := steps(handler.Env{Function: "audit", Store: &store.Store{}})
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, enabled := range []bool{true, false} {
		config := params.Config{Rack: "demo", ClusterName: "demo", AuthMode: true, Enabled: enabled}
		facts := plan.Facts{
			Cluster: &plan.ClusterFacts{Cluster: plan.Cluster{Name: "demo"}, Status: "ACTIVE"}, PodIdentity: true,
			Subnets: []plan.Tagged{{ID: "subnet-a"}}, NodeGroups: []plan.NodeGroup{{Name: "system"}}, Records: plan.Records{WasOn: true},
		}
		made := plan.Build(config, facts, nil)
		if len(made.Problems) > 0 || len(made.Plan.Steps) == 0 {
			t.Fatalf("%+v", made)
		}
		for _, step := range made.Plan.Steps {
			if used[step.Function] = true; all[step.Function] == nil {
				t.Errorf("step %s: the audit has no %s", step.Name, step.Function)
			}
		}
	}
	for function := range all {
		if !used[function] {
			t.Errorf("the audit has %s, which no plan names", function)
		}
	}
}
