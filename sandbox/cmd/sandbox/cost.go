package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/sawhorse-io/sawhorse/sandbox/cost"
	"github.com/sawhorse-io/sawhorse/sandbox/heartbeat"
	"github.com/sawhorse-io/sawhorse/sandbox/user"
)

// costs counts what each kind of pass takes, on a sandbox of its own.
func costs(o options) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	out := heartbeat.New(os.Stdout, "the sandbox starts")
	defer out.Stop()
	return o.withSandbox(ctx, func(environment user.Environment) error {
		defer out.At("the sandbox ends")
		return cost.Run(ctx, environment, out)
	})
}
