// Command measure measures Sawhorse on sandboxes of its own. It runs in the checkout, after `make parts`.
//
//	measure chaos      inject a fault at each call, then pairs of faults (CHAOS_…)
//	measure cost       count what each kind of pass takes, and what AWS charges for it
//	measure latency    measure how long LATENCY_ROUNDS writes to a parameter take until the NodePool has them
//	measure load       write to LOAD_RACKS racks, and many times to one, with LOAD_LISTED racks in the table
//
// The sandbox of a command has its data in .cache, in a folder of the command's name.
package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/sawhorse-io/sawhorse/sandbox/attached"
	"github.com/sawhorse-io/sawhorse/sandbox/heartbeat"
	"github.com/sawhorse-io/sawhorse/sandbox/measure/cost"
	"github.com/sawhorse-io/sawhorse/sandbox/measure/latency"
	"github.com/sawhorse-io/sawhorse/sandbox/measure/load"
	"github.com/sawhorse-io/sawhorse/sandbox/user"
)

var commands = map[string]func(context.Context, *heartbeat.Writer) error{
	"chaos": campaign, "cost": costs, "latency": latencies, "load": strain,
}

func main() {
	if len(os.Args) != 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: measure chaos | cost | latency | load")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	out := heartbeat.New(os.Stdout, "the sandbox starts")
	err := commands[os.Args[1]](ctx, out)
	out.Stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}

func costs(ctx context.Context, out *heartbeat.Writer) error {
	return onSandbox(ctx, "cost", func(environment user.Environment) error {
		defer out.At("the sandbox ends")
		return cost.Run(ctx, environment, out)
	})
}

func latencies(ctx context.Context, out *heartbeat.Writer) error {
	rounds, err := number("LATENCY_ROUNDS", 12, 1, math.MaxInt)
	if err != nil {
		return err
	}
	return onSandbox(ctx, "latency", func(environment user.Environment) error {
		defer out.At("the sandbox ends")
		return latency.Run(ctx, environment, rounds, out)
	})
}

func strain(ctx context.Context, out *heartbeat.Writer) error {
	racks, err := number("LOAD_RACKS", 100, 1, 1000)
	if err != nil {
		return err
	}
	listed, err := number("LOAD_LISTED", 1000, 1, 1000)
	if err != nil {
		return err
	}
	return onSandbox(ctx, "load", func(environment user.Environment) error {
		defer out.At("the sandbox ends")
		return load.Run(ctx, environment, racks, listed, out)
	})
}

// onSandbox starts a sandbox with its data in the folder name, calls measure with the environment of its users, and ends it.
func onSandbox(ctx context.Context, name string, measure func(user.Environment) error) error {
	environment, end, err := attached.Start(ctx, ".", filepath.Join(".cache", name))
	if err != nil {
		return err
	}
	err = measure(environment)
	if endErr := end(); err == nil {
		err = endErr
	}
	return err
}

// number returns the number in an environment variable, or the default.
func number(variable string, otherwise, least, most int) (int, error) {
	text := cmp.Or(os.Getenv(variable), strconv.Itoa(otherwise))
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%s is %q, not a number from %d to %d", variable, text, least, most)
	}
	return n, nil
}
