package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/sawhorse-io/sawhorse/sandbox/chaos"
	"github.com/sawhorse-io/sawhorse/sandbox/heartbeat"
	"github.com/sawhorse-io/sawhorse/sandbox/user"
)

// havoc runs the chaos test with the settings in the variables CHAOS_….
func havoc(o options) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	var numbers [5]int
	for i, setting := range [...][2]string{
		{"CHAOS_SEED", "1"}, {"CHAOS_SAMPLE", "0"}, {"CHAOS_TOGETHER", "1"}, {"CHAOS_PAIRS", "200"}, {"CHAOS_SANDBOXES", "1"},
	} {
		n, err := strconv.Atoi(cmp.Or(os.Getenv(setting[0]), setting[1]))
		if err != nil || n < 0 {
			return fmt.Errorf("%s is %q, not a number from 0", setting[0], os.Getenv(setting[0]))
		}
		numbers[i] = n
	}
	sandbox := func(ctx context.Context, n int, play func(context.Context, user.Environment) error) error {
		place := o
		place.state = fmt.Sprintf("%s-%d", o.state, n)
		return place.withSandbox(ctx, func(environment user.Environment) error { return play(ctx, environment) })
	}
	out := heartbeat.New(os.Stdout, "the first sandbox starts")
	defer out.Stop()
	return chaos.Run(ctx, sandbox, chaos.Options{
		Seed: uint64(numbers[0]), Function: os.Getenv("CHAOS_FUNCTION"), Sample: numbers[1], Together: numbers[2], Pairs: numbers[3],
		Sandboxes: numbers[4], Out: out,
	})
}
