package awsfake

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
)

// Scaling ends instances of EKS's node groups. Its calls count among the cloud's.
type Scaling struct {
	*EKS
	// Instances has the node group of each instance, States the state of those that do not serve any more.
	Instances map[string]string
	States    map[string]types.LifecycleState
}

// NewScaling returns Auto Scaling without instances.
func NewScaling(cloud *Cloud) *Scaling {
	return &Scaling{EKS: cloud.EKS, Instances: map[string]string{}, States: map[string]types.LifecycleState{}}
}

// DescribeAutoScalingInstances leaves out unknown instances, as AWS does.
func (s *Scaling) DescribeAutoScalingInstances(_ context.Context, in *autoscaling.DescribeAutoScalingInstancesInput,
	_ ...func(*autoscaling.Options)) (*autoscaling.DescribeAutoScalingInstancesOutput, error) {
	if err := s.call("AutoScaling.DescribeAutoScalingInstances", in.InstanceIds[0]); err != nil {
		return nil, err
	}
	out := &autoscaling.DescribeAutoScalingInstancesOutput{}
	if s.Instances[in.InstanceIds[0]] != "" {
		state := types.LifecycleStateInService
		if other := s.States[in.InstanceIds[0]]; other != "" {
			state = other
		}
		out.AutoScalingInstances = []types.AutoScalingInstanceDetails{{InstanceId: &in.InstanceIds[0], LifecycleState: new(string(state))}}
	}
	return out, nil
}

// TerminateInstanceInAutoScalingGroup ends an instance and takes one from the desired size, also if the instance is ending already,
// and refuses what would violate the minimum.
func (s *Scaling) TerminateInstanceInAutoScalingGroup(_ context.Context, in *autoscaling.TerminateInstanceInAutoScalingGroupInput,
	_ ...func(*autoscaling.Options)) (*autoscaling.TerminateInstanceInAutoScalingGroupOutput, error) {
	if err := s.call("AutoScaling.TerminateInstanceInAutoScalingGroup", *in.InstanceId); err != nil {
		return nil, err
	}
	group := s.Groups[s.Instances[*in.InstanceId]]
	if group == nil {
		return nil, refuse("ValidationError", "Instance Id not found - No managed instance found for instance ID: %s", *in.InstanceId)
	}
	size := *group.ScalingConfig
	if *in.ShouldDecrementDesiredCapacity {
		if *size.DesiredSize <= *size.MinSize {
			return nil, refuse("ValidationError", "Terminating instance without replacement will violate group's min size constraint")
		}
		size.DesiredSize = new(*size.DesiredSize - 1)
	}
	group.ScalingConfig, s.States[*in.InstanceId] = &size, types.LifecycleStateTerminatingWait
	return &autoscaling.TerminateInstanceInAutoScalingGroupOutput{}, nil
}
