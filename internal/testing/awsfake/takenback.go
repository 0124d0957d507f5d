package awsfake

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

const (
	seeds = 10
	tries = 20
	// oldest is how old the states are at most that reads show. What was created is found within a minute (Lag.Roles).
	oldest = 40 * time.Second
	// settled is when every read shows every write.
	settled = 3 * time.Minute
)

// TakenBack shows that what is set and unset within seconds is never left behind, and neither is what is unset and set
// again. begin returns a new account and the step, which brings the account to one of two states and returns what it waits
// for. The reads are older than the writes, calls of the step fail anywhere, and each try ends in one of the states. state
// returns what must be as it is without lags.
func TakenBack(t *testing.T, begin func() (*Cloud, func(set bool) (time.Duration, error)), state func(*Cloud) any) {
	t.Helper()
	want := map[bool]any{}
	for _, set := range []bool{false, true} {
		cloud, step := begin()
		reach(t, cloud, step, false)
		cloud.Pass(time.Hour)
		reach(t, cloud, step, set)
		want[set] = state(cloud)
	}
	if reflect.DeepEqual(want[false], want[true]) {
		t.Fatalf("both states are %+v", want[true])
	}
	for seed := range uint64(seeds) {
		random := rand.New(rand.NewPCG(seed, 1))
		left, wrote := 0, 0
		for range tries {
			cloud, step := begin()
			reach(t, cloud, step, false)
			cloud.Pass(time.Hour)
			cloud.Lag = Lag{Replicas: time.Second + time.Duration(random.Int64N(int64(oldest))), Seed: random.Uint64()}
			set := false
			for range 1 + random.IntN(4) {
				set = !set
				disturbed(t, random, cloud, step, set)
				cloud.Pass(time.Duration(random.Int64N(int64(5 * time.Second))))
			}
			reach(t, cloud, step, set)
			if got := state(cloud); !reflect.DeepEqual(got, want[set]) {
				left++
				t.Logf("seed %d, set %v: left\n%+v\nnot\n%+v", seed, set, got, want[set])
			}
			cloud.Lag = Lag{}
			cloud.Pass(settled)
			cloud.Forget()
			if wait, err := step(set); err != nil || wait > 0 || len(cloud.Writes()) > 0 {
				wrote++
				t.Logf("seed %d, set %v: when every read shows every write: %v, %v, %v", seed, set, cloud.Writes(), wait, err)
			}
		}
		if left+wrote > 0 {
			t.Errorf("seed %d: of %d tries, %d left something behind, and after the lag %d had something to do", seed, tries, left, wrote)
		}
	}
}

// disturbed calls the step some times, as a pass does that a write ends while it waits. One of the calls may fail.
func disturbed(t *testing.T, random *rand.Rand, cloud *Cloud, step func(bool) (time.Duration, error), set bool) {
	t.Helper()
	for range 1 + random.IntN(5) {
		cloud.FailAt(random.IntN(2)*random.IntN(30), Throttling)
		wait, err := step(set)
		if err != nil && !errors.Is(err, Throttling) {
			t.Fatalf("set %v: %v", set, err)
		}
		if cloud.FailAt(0, nil); err == nil && wait == 0 {
			return
		}
		cloud.Pass(wait)
	}
}

// reach calls the step until it is done.
func reach(t *testing.T, cloud *Cloud, step func(bool) (time.Duration, error), set bool) {
	t.Helper()
	for range 100 {
		wait, err := step(set)
		if err != nil {
			t.Fatalf("set %v: %v", set, err)
		}
		if wait == 0 {
			return
		}
		cloud.Pass(wait)
	}
	t.Fatal("the step is not done after 100 calls")
}
