// Package nodegroups makes the step nodegroups from the environment of a function.
package nodegroups

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/eks"

	"github.com/sawhorse-io/sawhorse/internal/handler"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/steps/capacity"
	"github.com/sawhorse-io/sawhorse/internal/steps/nodegroups"
	"github.com/sawhorse-io/sawhorse/internal/steps/placement"
)

// New returns the step. dial opens the plan's cluster.
func New(env handler.Env, dial k8s.Connector) (outcome.StepFunc, error) {
	drain, err := env.Number("SAWHORSE_DRAIN_SECONDS")
	if err != nil {
		return nil, err
	}
	client, baselines, checkpoints := eks.NewFromConfig(env.AWS), env.Store.Baselines(), env.Store.Checkpoints()
	step := &nodegroups.Step{
		EKS: client, AutoScaling: autoscaling.NewFromConfig(env.AWS), Connect: dial, Baselines: baselines, Checkpoints: checkpoints,
		Contests: env.Store.Contests(), Written: env.Store,
		Drain: time.Duration(drain) * time.Second, Now: env.Now,
		Placement: (&placement.Step{Connect: dial, Baselines: baselines, Contests: env.Store.Contests(), Now: env.Now}).Run,
		Capacity: (&capacity.Step{
			EKS: client, Connect: dial, Baselines: baselines, Checkpoints: checkpoints, Written: env.Store, Now: env.Now,
		}).Run,
	}
	return step.Run, nil
}
