// Function audit compares a rack with its parameters, without changing anything: for the schedule, which passes over a rack
// in order, and at the beginning of a full pass.
package main

import (
	"context"

	"github.com/sawhorse-io/sawhorse/internal/handler"
	"github.com/sawhorse-io/sawhorse/internal/pass/validate"
	"github.com/sawhorse-io/sawhorse/internal/wire/audit"
)

func main() {
	handler.Start("audit", func(env handler.Env) (func(context.Context, validate.Event) (validate.Answer, error), error) {
		audit, err := audit.New(env)
		if err != nil {
			return nil, err
		}
		return audit.Run, nil
	})
}
