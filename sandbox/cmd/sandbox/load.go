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

// strain runs the load test on a sandbox of its own, with LOAD_RACKS racks that are turned on, and LOAD_LISTED in the table.
func strain(o options) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	racks, err := countOf("LOAD_RACKS", "100")
	if err != nil {
		return err
	}
	listed, err := countOf("LOAD_LISTED", "1000")
	if err != nil {
		return err
	}
	out := heartbeat.New(os.Stdout, "the sandbox starts")
	defer out.Stop()
	return o.withSandbox(ctx, func(environment user.Environment) error {
		defer out.At("the sandbox ends")
		return load.Run(ctx, environment, racks, listed, out)
	})
}

// countOf returns the number of racks in a variable, or the default.
func countOf(variable, otherwise string) (int, error) {
	text := cmp.Or(os.Getenv(variable), otherwise)
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 1000 {
		return 0, fmt.Errorf("%s is %q, not a number from 1 to 1000", variable, text)
	}
	return n, nil
}
