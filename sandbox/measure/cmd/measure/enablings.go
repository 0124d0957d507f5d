package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sawhorse-io/sawhorse/sandbox/heartbeat"
	"github.com/sawhorse-io/sawhorse/sandbox/story"
	"github.com/sawhorse-io/sawhorse/sandbox/user"
)

// enablings turns Karpenter on in ENABLINGS new sandboxes, one after the other, and prints how long each took. Each has
// its own seed of lags, starting with LAG_SEED. It fails if one of them fails.
func enablings(ctx context.Context, out *heartbeat.Writer) error {
	n, err := number("ENABLINGS", 10, 1, math.MaxInt)
	if err != nil {
		return err
	}
	first, err := strconv.ParseUint(cmp.Or(os.Getenv("LAG_SEED"), fmt.Sprint(rand.Uint32())), 10, 64)
	if err != nil {
		return fmt.Errorf("LAG_SEED is %q, not a number from 0", os.Getenv("LAG_SEED"))
	}
	var took []time.Duration
	failed := 0
	for i := range n {
		seed := fmt.Sprint(first + uint64(i))
		if err := os.Setenv("LAG_SEED", seed); err != nil { // the sandbox reads it
			return err
		}
		seconds, failures, err := enabling(ctx)
		if err != nil {
			return fmt.Errorf("enabling with LAG_SEED=%s: %w", seed, err)
		}
		took = append(took, seconds)
		fmt.Fprintf(out, "LAG_SEED=%-12s %6.1f s  %s\n", seed, seconds.Seconds(), cmp.Or(strings.Join(failures, "; "), "Reconciled"))
		if len(failures) > 0 {
			failed++
		}
	}
	slices.Sort(took)
	fmt.Fprintf(out, "%d enablings: median %.1f s, slowest %.1f s, %d failed\n", n, took[n/2].Seconds(), took[n-1].Seconds(), failed)
	if failed > 0 {
		return fmt.Errorf("%d of %d enablings failed", failed, n)
	}
	return nil
}

// enabling is one of them. It returns how long it took and which checks failed.
func enabling(ctx context.Context) (took time.Duration, failures []string, err error) {
	err = onSandbox(ctx, "enablings", func(env user.Environment) error {
		var output strings.Builder
		script := story.Run(ctx, env, &output, false, func(s *story.Script) { took = story.FirstEnabling(s) })
		if failures = script.Failures(); len(failures) > 0 {
			fmt.Fprintln(os.Stderr, output.String())
		}
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		return nil
	})
	return took, failures, err
}
