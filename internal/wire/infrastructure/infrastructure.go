// Package infrastructure makes the step infrastructure from the environment of a function.
package infrastructure

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"github.com/sawhorse-io/sawhorse/internal/handler"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/steps/infrastructure"
)

// New returns the step.
func New(env handler.Env) (outcome.StepFunc, error) {
	controller, err := env.Setting("SAWHORSE_CONTROLLER_BOUNDARY")
	if err != nil {
		return nil, err
	}
	nodes, err := env.Setting("SAWHORSE_NODE_BOUNDARY")
	if err != nil {
		return nil, err
	}
	delay, err := env.Number("SAWHORSE_POD_IDENTITY_DELAY_SECONDS")
	if err != nil {
		return nil, err
	}
	step := &infrastructure.Step{
		IAM: iam.NewFromConfig(env.AWS), EKS: eks.NewFromConfig(env.AWS), ControllerBoundary: controller, NodeBoundary: nodes,
		Delay: time.Duration(delay) * time.Second, Written: env.Store, Now: env.Now,
	}
	return step.Run, nil
}
