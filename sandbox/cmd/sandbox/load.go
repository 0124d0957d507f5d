package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/sawhorse-io/sawhorse/sandbox/load"
	"github.com/sawhorse-io/sawhorse/sandbox/user"
)

// strain writes to LOAD_RACKS racks on a sandbox of its own.
func strain(o options) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	racks, err := strconv.Atoi(cmp.Or(os.Getenv("LOAD_RACKS"), "100"))
	if err != nil || racks < 1 || racks > 999 {
		return fmt.Errorf("LOAD_RACKS is %q, not a number from 1 to 999", os.Getenv("LOAD_RACKS"))
	}
	return o.withSandbox(ctx, func(environment user.Environment) error { return load.Run(ctx, environment, racks, os.Stdout) })
}
