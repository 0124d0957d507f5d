package nodepools

import (
	"context"
	"testing"
	"time"

	"github.com/sawhorse-io/sawhorse/internal/k8s/k8stest"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// It has to run before any test installs the CRDs, hence a file that sorts first.
func TestAClusterWithoutTheCRDsHasNothingToRemove(t *testing.T) {
	cluster := k8stest.New(t)
	step := New(cluster.Connector("nodepools"), time.Minute, time.Now)
	progress, err := step.Run(context.Background(), &plan.Plan{Rack: "demo"}, "")
	if err != nil || progress.Wait != 0 || len(progress.Changes) != 0 {
		t.Errorf("%+v, %v", progress, err)
	}
}
