// Package proof makes the step proof from the environment of a function.
package proof

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eks"

	"github.com/sawhorse-io/sawhorse/internal/handler"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/steps/proof"
)

// New returns the step. dial opens the plan's cluster.
func New(env handler.Env, dial k8s.Connector) (outcome.StepFunc, error) {
	limit, err := env.Number("SAWHORSE_PROOF_SECONDS")
	if err != nil {
		return nil, err
	}
	step := &proof.Step{
		Connect: dial, EKS: eks.NewFromConfig(env.AWS), Baselines: env.Store.Baselines(), Checkpoints: env.Store.Checkpoints(),
		Limit: time.Duration(limit) * time.Second, Now: env.Now,
	}
	return step.Run, nil
}
