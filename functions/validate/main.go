// Function validate begins an iteration: it reads the rack's parameters and makes the plan, or says why it cannot.
package main

import (
	"context"

	"github.com/sawhorse-io/sawhorse/internal/handler"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/pass/audit"
	"github.com/sawhorse-io/sawhorse/internal/pass/validate"
	"github.com/sawhorse-io/sawhorse/internal/wire/queue"
	wire "github.com/sawhorse-io/sawhorse/internal/wire/validate"
)

func main() {
	handler.Start("validate", func(env handler.Env) (func(context.Context, validate.Event) (validate.Answer, error), error) {
		look, err := queue.New(env.ReadOnly())
		if err != nil {
			return nil, err
		}
		auditor := audit.NewSteps(func() map[string]outcome.StepFunc { return map[string]outcome.StepFunc{"queue": look} })
		bus, err := wire.Bus(env)
		return wire.New(env, auditor, bus).Run, err
	})
}
