package main

import (
	"context"
	"fmt"
	"math"
	"os"

	"github.com/sawhorse-io/sawhorse/sandbox/chaos"
	"github.com/sawhorse-io/sawhorse/sandbox/heartbeat"
	"github.com/sawhorse-io/sawhorse/sandbox/user"
)

// campaign runs the chaos test with the settings in the variables CHAOS_….
func campaign(ctx context.Context, out *heartbeat.Writer) error {
	var numbers [5]int
	for i, setting := range [...]struct {
		variable  string
		otherwise int
	}{{"CHAOS_SEED", 1}, {"CHAOS_SAMPLE", 0}, {"CHAOS_TOGETHER", 1}, {"CHAOS_PAIRS", 200}, {"CHAOS_SANDBOXES", 1}} {
		var err error
		if numbers[i], err = number(setting.variable, setting.otherwise, 0, math.MaxInt); err != nil {
			return err
		}
	}
	sandbox := func(ctx context.Context, n int, play func(context.Context, user.Environment) error) error {
		return onSandbox(ctx, fmt.Sprintf("chaos-%d", n), func(environment user.Environment) error { return play(ctx, environment) })
	}
	return chaos.Run(ctx, sandbox, chaos.Options{
		Seed: uint64(numbers[0]), Function: os.Getenv("CHAOS_FUNCTION"), Sample: numbers[1], Together: numbers[2], Pairs: numbers[3],
		Sandboxes: numbers[4], Out: out,
	})
}
