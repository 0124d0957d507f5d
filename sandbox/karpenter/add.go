//go:build !karpenter1.12 && !karpenter1.15

package main

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/karpenter-provider-aws/kwok/cloudprovider"
	"github.com/aws/karpenter-provider-aws/kwok/operator"
	v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	awscache "github.com/aws/karpenter-provider-aws/pkg/cache"
	"github.com/aws/karpenter-provider-aws/pkg/controllers"
	"github.com/aws/karpenter-provider-aws/pkg/providers/instance"
	"github.com/patrickmn/go-cache"
	"sigs.k8s.io/karpenter/pkg/cloudprovider/metrics"
	"sigs.k8s.io/karpenter/pkg/cloudprovider/overlay"
	corecontrollers "sigs.k8s.io/karpenter/pkg/controllers"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	coreoptions "sigs.k8s.io/karpenter/pkg/operator/options"
)

// addControllers adds all controllers of Karpenter 1.8 to 1.10.
func addControllers(ctx context.Context, op *operator.Operator) {
	api := judged{op.EC2API, ec2.NewFromConfig(op.Config), op.GetAPIReader()}
	op.InstanceProvider = instance.NewDefaultProvider(ctx, op.Config.Region, op.EventRecorder, api, op.UnavailableOfferingsCache,
		op.SubnetProvider, op.LaunchTemplateProvider, op.CapacityReservationProvider,
		cache.New(awscache.DefaultTTL, awscache.DefaultCleanupInterval))
	undecorated := metrics.Decorate(cloudprovider.New(op.InstanceTypesProvider, op.InstanceProvider, op.EventRecorder, op.GetClient(),
		op.AMIProvider, op.SecurityGroupProvider, op.CapacityReservationProvider, op.InstanceTypeStore))
	provider := overlay.Decorate(undecorated, op.GetClient(), op.InstanceTypeStore)
	if coreoptions.FromContext(ctx).FeatureGates.ReservedCapacity {
		v1.CapacityReservationsEnabled = true
	}
	op.WithControllers(ctx, corecontrollers.NewControllers(ctx, op.Manager, op.Clock, op.GetClient(), op.EventRecorder,
		provider, undecorated, state.NewCluster(op.Clock, op.GetClient(), provider), op.InstanceTypeStore)...)
	op.WithControllers(ctx,
		controllers.NewControllers(ctx, op.Manager, op.Config, op.Clock, api, op.GetClient(), op.EventRecorder,
			op.UnavailableOfferingsCache, op.SSMCache, op.ValidationCache, op.RecreationCache, provider, op.SubnetProvider,
			op.SecurityGroupProvider, op.InstanceProfileProvider, op.InstanceProvider, op.PricingProvider, op.AMIProvider,
			op.LaunchTemplateProvider, op.VersionProvider, op.InstanceTypesProvider, op.CapacityReservationProvider, op.AMIResolver)...)
}
