package nodepools

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

// A removal in which Karpenter takes no part reaches the same end, wherever it is interrupted.
func TestInterruptedRemoval(t *testing.T) {
	base := begin(t)
	awsfake.Interrupted(t, func() (*awsfake.Cloud, func() (bool, error)) {
		s := *base
		s.clock, s.cloud = time.Now(), awsfake.New()
		s.checkpoints = awsfake.NewCheckpoints(s.cloud)
		config := s.As(ownership.Group("nodepools"))
		config.Wrap(s.cloud.Calls.Writing)
		client, err := k8s.New("test", config)
		if err != nil {
			t.Fatal(err)
		}
		s.step = &Step{EC2: s.cloud.EC2, Checkpoints: s.checkpoints, Contests: s.contests, Drain: 5 * time.Minute,
			Now:     func() time.Time { return s.clock },
			Connect: func(context.Context, plan.Cluster) (*k8s.Client, error) { return client, nil }}
		for _, left := range []object{class("workload", ""), pool("workload", "", ""), claim("a", "", nil), node("node-a", "", "")} {
			s.Remove(left)
		}
		s.build("a")
		s.cloud.EC2.Launch(tagged("workload"), "i-orphan")
		return s.cloud, func() (bool, error) {
			progress, err := s.step.Run(context.Background(), s.plan, "")
			s.clock = s.clock.Add(7 * time.Minute)
			return progress.Wait == 0, err
		}
	}, func(cloud *awsfake.Cloud) any {
		var left []string
		for _, group := range [][3]string{
			{"karpenter.sh", "v1", "nodeclaims"}, {"karpenter.sh", "v1", "nodepools"}, {"karpenter.k8s.aws", "v1", "ec2nodeclasses"},
			{"", "v1", "nodes"},
		} {
			for _, o := range base.List(group[0], group[1], group[2]) {
				left = append(left, o.GetName())
			}
		}
		return fmt.Sprint(cloud.EC2.States(), left)
	})
}
