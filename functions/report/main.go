// Function report ends an iteration: it writes the rack's status and outputs and puts events on the bus.
package main

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/sawhorse-io/sawhorse/internal/handler"
	"github.com/sawhorse-io/sawhorse/internal/pass/report"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

func main() {
	handler.Start("report", func(env handler.Env) (func(context.Context, report.Event) (report.Answer, error), error) {
		writer, err := env.Metrics()
		if err != nil {
			return nil, err
		}
		bus := report.Bus{Events: eventbridge.NewFromConfig(env.AWS), Name: env.Bus, Metrics: writer}
		r := &report.Report{
			Store: env.Store, Now: env.Now, Send: bus.Send, Metrics: writer,
			Outputs: store.Published{SSM: ssm.NewFromConfig(env.AWS), Paths: env.Paths},
		}
		return r.Run, nil
	})
}
