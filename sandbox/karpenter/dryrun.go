package main

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	kwokec2 "github.com/aws/karpenter-provider-aws/kwok/ec2"
)

// judged is the simulated EC2 with AWS's answers to dry runs. For each EC2NodeClass, Karpenter makes the launches as
// dry runs, and AWS answers whether the policies of its role allow them. The simulation would allow every launch.
type judged struct {
	*kwokec2.Client
	aws *ec2.Client
}

// CreateFleet sends a dry run to AWS.
func (j judged) CreateFleet(ctx context.Context, in *ec2.CreateFleetInput, options ...func(*ec2.Options)) (*ec2.CreateFleetOutput, error) {
	if aws.ToBool(in.DryRun) {
		return j.aws.CreateFleet(ctx, in, options...)
	}
	return j.Client.CreateFleet(ctx, in, options...)
}

// RunInstances sends a dry run to AWS.
func (j judged) RunInstances(ctx context.Context, in *ec2.RunInstancesInput,
	options ...func(*ec2.Options)) (*ec2.RunInstancesOutput, error) {
	if aws.ToBool(in.DryRun) {
		return j.aws.RunInstances(ctx, in, options...)
	}
	return j.Client.RunInstances(ctx, in, options...)
}
