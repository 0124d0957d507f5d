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
)

// havoc has everything go wrong that CHAOS_SEED, CHAOS_SAMPLE, CHAOS_TOGETHER and CHAOS_PAIRS choose.
func havoc(o options) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	var numbers [4]int
	for i, setting := range [...][2]string{{"CHAOS_SEED", "1"}, {"CHAOS_SAMPLE", "0"}, {"CHAOS_TOGETHER", "1"}, {"CHAOS_PAIRS", "200"}} {
		n, err := strconv.Atoi(cmp.Or(os.Getenv(setting[0]), setting[1]))
		if err != nil || n < 0 {
			return fmt.Errorf("%s is %q, not a number from 0", setting[0], os.Getenv(setting[0]))
		}
		numbers[i] = n
	}
	sandbox := func(play func([]string) error) error { return o.withSandbox(ctx, play) }
	return chaos.Run(ctx, sandbox, chaos.Options{
		Seed: uint64(numbers[0]), Sample: numbers[1], Together: numbers[2], Pairs: numbers[3], Out: os.Stdout,
	})
}
