// Command karpenter is the real Karpenter controller with simulated instances. It is the kwok main of
// karpenter-provider-aws, except that a simulated instance joins after one second instead of thirty. It is configured
// by the environment that the chart gives its pod. `karpenter prices` prints the on-demand prices that Karpenter was
// built with.
package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/karpenter-provider-aws/kwok/cloudprovider"
	"github.com/aws/karpenter-provider-aws/kwok/operator"
	v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/aws/karpenter-provider-aws/pkg/controllers"
	"k8s.io/utils/clock"
	"sigs.k8s.io/karpenter/pkg/cloudprovider/metrics"
	"sigs.k8s.io/karpenter/pkg/cloudprovider/overlay"
	corecontrollers "sigs.k8s.io/karpenter/pkg/controllers"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	coreoperator "sigs.k8s.io/karpenter/pkg/operator"
	coreoptions "sigs.k8s.io/karpenter/pkg/operator/options"
)

// version is the version that the module's own release build would set.
const version = "1.10.0"

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

func addControllers(ctx context.Context, op *operator.Operator) {
	undecorated := metrics.Decorate(cloudprovider.New(op.InstanceTypesProvider, op.InstanceProvider, op.EventRecorder, op.GetClient(),
		op.AMIProvider, op.SecurityGroupProvider, op.CapacityReservationProvider, op.InstanceTypeStore))
	provider := overlay.Decorate(undecorated, op.GetClient(), op.InstanceTypeStore)
	if coreoptions.FromContext(ctx).FeatureGates.ReservedCapacity {
		v1.CapacityReservationsEnabled = true
	}
	op.WithControllers(ctx, corecontrollers.NewControllers(ctx, op.Manager, op.Clock, op.GetClient(), op.EventRecorder,
		provider, undecorated, state.NewCluster(op.Clock, op.GetClient(), provider), op.InstanceTypeStore)...)
	op.WithControllers(ctx,
		controllers.NewControllers(ctx, op.Manager, op.Config, op.Clock, judged{op.EC2API, ec2.NewFromConfig(op.Config)},
			op.GetClient(), op.EventRecorder,
			op.UnavailableOfferingsCache, op.SSMCache, op.ValidationCache, op.RecreationCache, provider, op.SubnetProvider,
			op.SecurityGroupProvider, op.InstanceProfileProvider, op.InstanceProvider, op.PricingProvider, op.AMIProvider,
			op.LaunchTemplateProvider, op.VersionProvider, op.InstanceTypesProvider, op.CapacityReservationProvider, op.AMIResolver)...)
}
