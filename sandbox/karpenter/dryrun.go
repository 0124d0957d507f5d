package main

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	kwokec2 "github.com/aws/karpenter-provider-aws/kwok/ec2"
)

// judged is the simulated EC2 whose dry runs are AWS's: Karpenter tries dry, for each EC2NodeClass, the launches that it would make, and
// AWS says whether the policies of its role allow them. The simulation allows each.
type judged struct {
	*kwokec2.Client
	aws *ec2.Client
}

// CreateFleet lets AWS judge a dry run.
func (j judged) CreateFleet(ctx context.Context, in *ec2.CreateFleetInput, options ...func(*ec2.Options)) (*ec2.CreateFleetOutput, error) {
	if aws.ToBool(in.DryRun) {
		return j.aws.CreateFleet(ctx, in, options...)
	}
	return j.Client.CreateFleet(ctx, in, options...)
}

// RunInstances lets AWS judge a dry run.
func (j judged) RunInstances(ctx context.Context, in *ec2.RunInstancesInput, options ...func(*ec2.Options)) (*ec2.RunInstancesOutput, error) {
	if aws.ToBool(in.DryRun) {
		return j.aws.RunInstances(ctx, in, options...)
	}
	return j.Client.RunInstances(ctx, in, options...)
}
