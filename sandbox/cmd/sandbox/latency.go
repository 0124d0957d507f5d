package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/sawhorse-io/sawhorse/sandbox/heartbeat"
	"github.com/sawhorse-io/sawhorse/sandbox/latency"
	"github.com/sawhorse-io/sawhorse/sandbox/user"
)

// latencies measures LATENCY_ROUNDS writes on a sandbox of its own.
func latencies(o options) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	rounds, err := strconv.Atoi(cmp.Or(os.Getenv("LATENCY_ROUNDS"), "12"))
	if err != nil || rounds < 1 {
		return fmt.Errorf("LATENCY_ROUNDS is %q, not a number from 1", os.Getenv("LATENCY_ROUNDS"))
	}
	out := heartbeat.New(os.Stdout, "the sandbox starts")
	defer out.Stop()
	return o.withSandbox(ctx, func(environment user.Environment) error {
		defer out.At("the sandbox ends")
		return latency.Run(ctx, environment, rounds, out)
	})
}
