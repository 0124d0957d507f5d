// Function change writes accepted change requests to Parameter Store.
package main

import (
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/sawhorse-io/sawhorse/internal/handler"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/pass/change"
)

func main() {
	handler.StartStep("change", func(env handler.Env) (outcome.StepFunc, error) {
		step := &change.Step{SSM: ssm.NewFromConfig(env.AWS), Store: env.Store, Paths: env.Paths, Now: env.Now}
		return step.Run, nil
	})
}
