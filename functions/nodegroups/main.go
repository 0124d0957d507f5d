// Function nodegroups labels the system node groups, replaces those with SPOT capacity, scales the build node groups to
// zero and back, provides capacity for the pods of Karpenter's nodes, and pins system Deployments.
package main

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eks"

	"github.com/sawhorse-io/sawhorse/internal/handler"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/steps/nodegroups"
	"github.com/sawhorse-io/sawhorse/internal/steps/pins"
	"github.com/sawhorse-io/sawhorse/internal/steps/room"
)

func main() {
	handler.StartStep("nodegroups", func(env handler.Env) (handler.StepFunc, error) {
		drain, err := env.Number("SAWHORSE_DRAIN_SECONDS")
		if err != nil {
			return nil, err
		}
		client := eks.NewFromConfig(env.AWS)
		dial := k8s.Dial(env.AWS, client)
		step := &nodegroups.Nodegroups{
			EKS: client, Dial: dial, Baselines: env.Store, Contests: env.Store, Drain: time.Duration(drain) * time.Second, Now: env.Now,
			Pins: pins.New(dial, env.Store, env.Now).Run,
			Room: (&room.Room{EKS: client, Dial: dial, Baselines: env.Store, Now: env.Now}).Run,
		}
		return step.Run, nil
	})
}
