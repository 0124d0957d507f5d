package nodepools

import (
	"context"
	"testing"
	"time"

	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
	"github.com/sawhorse-io/sawhorse/internal/testing/k8stest"
)

// This test must run before any test installs the CRDs, so its file sorts first.
func TestAClusterWithoutTheCRDsHasNothingToRemove(t *testing.T) {
	cluster, cloud := k8stest.New(t), awsfake.New()
	step := &Step{
		Connect: cluster.Connector("nodepools"), EC2: cloud.EC2, Checkpoints: awsfake.NewCheckpoints(cloud), Drain: time.Minute, Now: time.Now,
	}
	progress, err := step.Run(context.Background(), &plan.Plan{Rack: "demo"}, "")
	if err != nil || progress.Wait != 0 || len(progress.Changes) != 0 || len(cloud.Writes()) != 0 {
		t.Errorf("%+v, %v, %v", progress, err, cloud.Writes())
	}
}
