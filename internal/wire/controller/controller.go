// Package controller makes the step controller from the environment of a function.
package controller

import (
	"github.com/aws/aws-sdk-go-v2/service/eks"

	"github.com/sawhorse-io/sawhorse/internal/handler"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/steps/admin"
	"github.com/sawhorse-io/sawhorse/internal/steps/controller"
)

// New returns the step. dial opens the plan's cluster.
func New(env handler.Env, dial k8s.Connector) (outcome.StepFunc, error) {
	principal, err := env.Setting("SAWHORSE_PRINCIPAL")
	self := admin.Function{Name: "controller", Principal: principal, EKS: eks.NewFromConfig(env.AWS), Now: env.Now}
	step := &controller.Step{
		Connect: dial, Checkpoints: env.Store.Checkpoints(), Contests: env.Store.Contests(), Versions: env.Store, Self: self, Now: env.Now,
	}
	return step.Run, err
}
