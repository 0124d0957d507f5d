// Function rollout looks at the nodes of the racks with Karpenter, and tells how far they have followed the parameters.
package main

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/sawhorse-io/sawhorse/internal/handler"
	"github.com/sawhorse-io/sawhorse/internal/pass/report"
	"github.com/sawhorse-io/sawhorse/internal/pass/rollout"
	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/internal/wire/cluster"
)

func main() {
	handler.Start("rollout", func(env handler.Env) (func(context.Context, rollout.Event) (rollout.Answer, error), error) {
		writer, err := env.Metrics()
		if err != nil {
			return nil, err
		}
		bus := report.Bus{Events: eventbridge.NewFromConfig(env.AWS), Name: env.Bus, Metrics: writer}
		r := &rollout.Rollout{
			Store: env.Store, Outputs: store.Published{SSM: ssm.NewFromConfig(env.AWS), Paths: env.Paths},
			Dial: cluster.Dial(env), Send: bus.Send, Request: bus.Request, Metrics: writer, Log: env.Log, Now: env.Now,
		}
		return r.Run, nil
	})
}
