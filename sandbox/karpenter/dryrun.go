package main

import (
	"context"

	kwokec2 "github.com/aws/karpenter-provider-aws/kwok/ec2"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
)

// judged is the simulated EC2 whose dry runs AWS judges first. The simulation allows each of them. AWS is asked whether EC2 knows the
// role's policies at all, by a call that they allow; what they say of launches is not tried.
type judged struct {
	*kwokec2.Client
	aws *ec2.Client
}

func (j judged) authorized(ctx context.Context, dry *bool) error {
	if dry == nil || !*dry {
		return nil
	}
	_, err := j.aws.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{})
	return err
}

// CreateFleet asks AWS before a dry run.
func (j judged) CreateFleet(ctx context.Context, in *ec2.CreateFleetInput, options ...func(*ec2.Options)) (*ec2.CreateFleetOutput, error) {
	if err := j.authorized(ctx, in.DryRun); err != nil {
		return nil, err
	}
	return j.Client.CreateFleet(ctx, in, options...)
}

// RunInstances asks AWS before a dry run.
func (j judged) RunInstances(ctx context.Context, in *ec2.RunInstancesInput, options ...func(*ec2.Options)) (*ec2.RunInstancesOutput, error) {
	if err := j.authorized(ctx, in.DryRun); err != nil {
		return nil, err
	}
	return j.Client.RunInstances(ctx, in, options...)
}

// CreateLaunchTemplate asks AWS before a dry run.
func (j judged) CreateLaunchTemplate(ctx context.Context, in *ec2.CreateLaunchTemplateInput, options ...func(*ec2.Options)) (*ec2.CreateLaunchTemplateOutput, error) {
	if err := j.authorized(ctx, in.DryRun); err != nil {
		return nil, err
	}
	return j.Client.CreateLaunchTemplate(ctx, in, options...)
}
