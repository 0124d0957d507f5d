// Package nodepools makes the step nodepools from the environment of a function.
package nodepools

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/sawhorse-io/sawhorse/internal/handler"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/steps/nodepools"
)

// New returns the step. dial opens the plan's cluster.
func New(env handler.Env, dial k8s.Connector) (outcome.StepFunc, error) {
	drain, err := env.Number("SAWHORSE_DRAIN_SECONDS")
	if err != nil {
		return nil, err
	}
	step := &nodepools.Step{
		Connect: dial, EC2: ec2.NewFromConfig(env.AWS), Checkpoints: env.Store.Checkpoints(), Contests: env.Store.Contests(),
		Drain: time.Duration(drain) * time.Second, Now: env.Now,
	}
	return step.Run, nil
}
