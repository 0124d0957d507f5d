// Package access makes the step access from the environment of a function.
package access

import (
	"encoding/json"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/eks"

	"github.com/sawhorse-io/sawhorse/internal/handler"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/steps/access"
)

// New returns the step. dial opens the plan's cluster.
func New(env handler.Env, dial k8s.Connector) (outcome.StepFunc, error) {
	text, err := env.Setting("SAWHORSE_PRINCIPALS")
	if err != nil {
		return nil, err
	}
	principals := map[string]access.Principal{}
	if err := json.Unmarshal([]byte(text), &principals); err != nil {
		return nil, fmt.Errorf("function %s: SAWHORSE_PRINCIPALS: %w", env.Function, err)
	}
	step := &access.Step{
		EKS: eks.NewFromConfig(env.AWS), Connect: dial, Principals: principals, Written: env.Store, Now: env.Now,
	}
	return step.Run, nil
}
