package main

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"

	"github.com/sawhorse-io/sawhorse/sandbox/ask"
)

// lag is how far the sandbox's replicas are behind. ministack/lag.py defines what lags, and for how long.
type lag struct {
	seed  uint64
	scale float64 // relative to AWS's own times; 0 means no lag
}

// readLag reads LAG (1: on, the default), LAG_SEED and LAG_SCALE. Without LAG_SEED, each start has another seed.
func readLag() (lag, error) {
	seed, err := strconv.ParseUint(cmp.Or(os.Getenv("LAG_SEED"), fmt.Sprint(rand.Uint32())), 10, 64)
	if err != nil {
		return lag{}, fmt.Errorf("LAG_SEED is %q, not a number from 0", os.Getenv("LAG_SEED"))
	}
	scale, err := strconv.ParseFloat(cmp.Or(os.Getenv("LAG_SCALE"), "1"), 64)
	if err != nil || scale <= 0 || scale > 4 {
		return lag{}, fmt.Errorf("LAG_SCALE is %q, not a number above 0 and up to 4; LAG=0 is no lag", os.Getenv("LAG_SCALE"))
	}
	switch on := cmp.Or(os.Getenv("LAG"), "1"); on {
	case "0":
		scale = 0
	case "1":
	default:
		return lag{}, fmt.Errorf("LAG is %q, neither 0 nor 1", on)
	}
	return lag{seed, scale}, nil
}

func (l lag) String() string {
	if l.scale == 0 {
		return "nothing lags (LAG=0)"
	}
	return fmt.Sprintf("replicas lag (LAG_SEED=%d LAG_SCALE=%g)", l.seed, l.scale)
}

// exports returns the line that gives a shell the same settings.
func (l lag) exports() string {
	if l.scale == 0 {
		return "export LAG=0"
	}
	return fmt.Sprintf("export LAG=1 LAG_SEED=%d LAG_SCALE=%g", l.seed, l.scale)
}

// environment returns the settings for MiniStack.
func (l lag) environment() []string {
	return []string{fmt.Sprintf("SANDBOX_LAG_SEED=%d", l.seed), fmt.Sprintf("SANDBOX_LAG_SCALE=%g", l.scale)}
}

// seedMoto makes moto derive its resource ids from the seed, because lags depend on the ids.
func (s *sandbox) seedMoto(ctx context.Context) error {
	target := local(s.moto).JoinPath("/moto-api/seed")
	target.RawQuery = fmt.Sprintf("a=%d", s.lag.seed)
	if err := ask.JSON(ctx, http.MethodPost, target.String(), nil, nil); err != nil {
		return fmt.Errorf("moto: seed: %w", err)
	}
	return nil
}
