package main

import (
	"context"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	kwokec2 "github.com/aws/karpenter-provider-aws/kwok/ec2"
	"github.com/aws/smithy-go"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// judged is the simulated EC2 with AWS's answers to dry runs. For each EC2NodeClass, Karpenter makes the launches as
// dry runs, and AWS answers whether the policies of its role allow them. The simulation would allow every launch, so each
// launch is a dry run first.
type judged struct {
	*kwokec2.Client
	aws *ec2.Client
	// cluster reads from the API server.
	cluster client.Reader
}

// CreateFleet sends a dry run to AWS, and launches only if that would succeed.
func (j judged) CreateFleet(ctx context.Context, in *ec2.CreateFleetInput, options ...func(*ec2.Options)) (*ec2.CreateFleetOutput, error) {
	dry := *in
	dry.DryRun = aws.Bool(true)
	out, err := j.aws.CreateFleet(ctx, &dry, options...)
	var refused smithy.APIError
	if aws.ToBool(in.DryRun) || !errors.As(err, &refused) {
		return out, err
	}
	switch code := refused.ErrorCode(); {
	case code == "DryRunOperation":
		if out, err = j.Client.CreateFleet(ctx, in, options...); err != nil {
			return nil, err
		}
		return out, j.kept(ctx, out)
	case slices.Contains(fleetErrors, code):
		return &ec2.CreateFleetOutput{Errors: everywhere(in, refused)}, nil
	}
	return nil, err
}

// fleetErrors are the codes that a fleet of type instant has in its answer, for each pool of capacity, instead of failing
// (EC2's API reference, CreateFleetError).
var fleetErrors = []string{
	"InsufficientInstanceCapacity", "VcpuLimitExceeded", "MaxSpotInstanceCountExceeded", "UnfulfillableCapacity",
	"InsufficientFreeAddressesInSubnet", "AuthFailure.ServiceLinkedRoleCreationNotPermitted",
}

// everywhere returns the refusal for every instance type and subnet of the fleet.
func everywhere(in *ec2.CreateFleetInput, refused smithy.APIError) (all []types.CreateFleetError) {
	for _, config := range in.LaunchTemplateConfigs {
		for _, o := range config.Overrides {
			all = append(all, types.CreateFleetError{
				ErrorCode: aws.String(refused.ErrorCode()), ErrorMessage: aws.String(refused.ErrorMessage()),
				LaunchTemplateAndOverrides: &types.LaunchTemplateAndOverridesResponse{Overrides: &types.FleetLaunchTemplateOverrides{
					InstanceType: o.InstanceType, SubnetId: o.SubnetId, AvailabilityZone: o.AvailabilityZone,
				}},
			})
		}
	}
	return all
}

// RunInstances sends a dry run to AWS.
func (j judged) RunInstances(ctx context.Context, in *ec2.RunInstancesInput,
	options ...func(*ec2.Options)) (*ec2.RunInstancesOutput, error) {
	if aws.ToBool(in.DryRun) {
		return j.aws.RunInstances(ctx, in, options...)
	}
	return j.Client.RunInstances(ctx, in, options...)
}
