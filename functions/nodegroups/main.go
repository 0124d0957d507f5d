// Function nodegroups labels the system node groups, empties or restores the build node groups, and pins system Deployments.
package main

import (
	"github.com/aws/aws-sdk-go-v2/service/eks"

	"github.com/sawhorse-io/sawhorse/internal/handler"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/steps/nodegroups"
	"github.com/sawhorse-io/sawhorse/internal/steps/pins"
)

func main() {
	handler.StartStep("nodegroups", func(env handler.Env) (handler.StepFunc, error) {
		dial := k8s.Dial(env.AWS)
		step := &nodegroups.Nodegroups{
			EKS: eks.NewFromConfig(env.AWS), Dial: dial, Baselines: env.Store,
			Pins: pins.New(dial, env.Store, env.Now).Run,
		}
		return step.Run, nil
	})
}
