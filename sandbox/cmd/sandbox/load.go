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
	"github.com/sawhorse-io/sawhorse/sandbox/load"
	"github.com/sawhorse-io/sawhorse/sandbox/user"
)

// strain runs the load test with LOAD_RACKS racks on a sandbox of its own.
func strain(o options) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	racks, err := strconv.Atoi(cmp.Or(os.Getenv("LOAD_RACKS"), "100"))
	if err != nil || racks < 1 || racks > 1000 {
		return fmt.Errorf("LOAD_RACKS is %q, not a number from 1 to 1000", os.Getenv("LOAD_RACKS"))
	}
	out := heartbeat.New(os.Stdout, "the sandbox starts")
	defer out.Stop()
	return o.withSandbox(ctx, func(environment user.Environment) error {
		defer out.At("the sandbox ends")
		return load.Run(ctx, environment, racks, out)
	})
}
