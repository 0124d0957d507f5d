// Package network makes the step network from the environment of a function.
package network

import (
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/sawhorse-io/sawhorse/internal/handler"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/steps/network"
)

// New returns the step.
func New(env handler.Env) (outcome.StepFunc, error) {
	return (&network.Step{EC2: ec2.NewFromConfig(env.AWS), Baselines: env.Store.Baselines(), Written: env.Store, Now: env.Now}).Run, nil
}
