// Package autoscaler makes the step autoscaler from the environment of a function.
package autoscaler

import (
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"

	"github.com/sawhorse-io/sawhorse/internal/handler"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/steps/autoscaler"
)

// New returns the step. dial opens the plan's cluster.
func New(env handler.Env, dial k8s.Connector) (outcome.StepFunc, error) {
	step := &autoscaler.Step{
		Connect: dial, AutoScaling: autoscaling.NewFromConfig(env.AWS), Baselines: env.Store.Baselines(),
		Checkpoints: env.Store.Checkpoints(), Contests: env.Store.Contests(), Now: env.Now,
	}
	return step.Run, nil
}
