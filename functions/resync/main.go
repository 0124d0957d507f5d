// Function resync has racks audited as scheduled, and starts the pass after an execution that ended early.
package main

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/sawhorse-io/sawhorse/internal/handler"
	"github.com/sawhorse-io/sawhorse/internal/pass/report"
	"github.com/sawhorse-io/sawhorse/internal/pass/resync"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

func main() {
	handler.Start("resync", func(env handler.Env) (func(context.Context, resync.Event) (resync.Answer, error), error) {
		writer, err := env.Metrics()
		if err != nil {
			return nil, err
		}
		parameters, bus := ssm.NewFromConfig(env.AWS), report.Bus{Events: eventbridge.NewFromConfig(env.AWS), Name: env.Bus, Metrics: writer}
		outputs := store.Published{SSM: parameters, Paths: env.Paths}
		reports := &report.Report{Store: env.Store, Now: env.Now, Send: bus.Send, Metrics: writer, Outputs: outputs}
		r := &resync.Resync{Machine: sfn.NewFromConfig(env.AWS), Functions: lambda.NewFromConfig(env.AWS), Store: env.Store,
			Parameters: parameters, Paths: env.Paths, Now: env.Now, Report: reports.Run, Metrics: writer}
		minutes, err := env.Number("SAWHORSE_RESYNC_MINUTES")
		if err != nil {
			return nil, err
		}
		r.Interval = time.Duration(minutes) * time.Minute
		if r.Slots, err = env.Number("SAWHORSE_RESYNC_SLOTS"); err != nil {
			return nil, err
		}
		if r.Audit, err = env.Setting("SAWHORSE_AUDIT"); err != nil {
			return nil, err
		}
		r.MachineARN, err = env.Setting("SAWHORSE_STATE_MACHINE")
		return r.Run, err
	})
}
