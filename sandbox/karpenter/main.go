// Command karpenter is the real Karpenter controller with simulated instances. It is the kwok main of
// karpenter-provider-aws, except that a simulated instance joins after one second instead of thirty. It is configured
// by the environment that the chart gives its pod. `karpenter prices` prints the on-demand prices that Karpenter was
// built with.
//
// go.mod selects the version of Karpenter that Sawhorse installs by default. VERSION.mod selects another one for the
// same sources (go build -modfile=VERSION.mod); a file addVERSION.go has what that version calls differently.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/aws/karpenter-provider-aws/kwok/operator"
	"k8s.io/utils/clock"
	coreoperator "sigs.k8s.io/karpenter/pkg/operator"
)

// version is Karpenter's version, which Karpenter's own release build sets too. The build of another version sets it.
var version = "1.10.0"

// launchTime is the time from a simulated instance's launch to its Node object.
const launchTime = time.Second

func main() {
	if len(os.Args) == 2 && os.Args[1] == "prices" {
		if err := printPrices(os.Stdout); err != nil {
			fmt.Fprintf(os.Stderr, "prices: %v\n", err)
			os.Exit(1)
		}
		return
	}
	ctx, op := newOperator()
	var simulation sync.WaitGroup
	for _, run := range []func(context.Context){op.EC2API.StartBackupThread, op.EC2API.StartKillNodeThread, op.EC2API.ReadBackup} {
		simulation.Go(func() {
			<-op.Elected()
			run(ctx)
		})
	}
	addControllers(ctx, op)
	if err := op.AddMetricsServerExtraHandler("/metrics/registered", http.HandlerFunc(registered)); err != nil {
		fmt.Fprintf(os.Stderr, "metrics: %v\n", err)
		os.Exit(1)
	}
	op.Start(ctx)
	simulation.Wait()
}

// newOperator creates the operator. Its EC2 simulation uses a faster clock; everything else uses the real one.
func newOperator() (context.Context, *operator.Operator) {
	coreoperator.Version = version
	ctx, core := coreoperator.NewOperator()
	core.Clock = hurriedClock{}
	ctx, op := operator.NewOperator(ctx, core)
	core.Clock = clock.RealClock{}
	return ctx, op
}

// hurriedClock limits every wait to launchTime. The simulation waits only for launches.
type hurriedClock struct{ clock.RealClock }

// After is time.After with a wait of at most launchTime.
func (c hurriedClock) After(d time.Duration) <-chan time.Time {
	return c.RealClock.After(min(d, launchTime))
}
