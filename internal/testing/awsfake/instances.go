package awsfake

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// Instance is an EC2 instance. A terminated one shuts down until it has been described EC2's Delay times. It still
// exists afterwards, as it does for an hour on AWS.
type Instance struct {
	Tags  map[string]string
	State types.InstanceStateName
	// Protected makes its termination fail.
	Protected bool

	looks int
}

// Launch adds running instances with these tags.
func (e *EC2) Launch(tags map[string]string, ids ...string) {
	for _, id := range ids {
		e.Instances[id] = &Instance{Tags: maps.Clone(tags), State: types.InstanceStateNameRunning}
	}
}

// States returns the states of all instances: "i-1=running i-2=terminated".
func (e *EC2) States() string {
	var all []string
	for _, id := range slices.Sorted(maps.Keys(e.Instances)) {
		all = append(all, id+"="+string(e.Instances[id].State))
	}
	return strings.Join(all, " ")
}

// DescribeInstances returns one instance per page. It supports the filters instance-id, instance-state-name, tag-key
// and tag:….
func (e *EC2) DescribeInstances(_ context.Context, in *ec2.DescribeInstancesInput,
	_ ...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error) {
	if err := e.call("EC2.DescribeInstances", strings.Join(in.InstanceIds, ",")); err != nil {
		return nil, err
	}
	if value(in.NextToken) == "" {
		e.shutDown()
	}
	var all []types.Reservation
	for _, id := range slices.Sorted(maps.Keys(e.Instances)) {
		if !e.Instances[id].fits(id, in.Filters) {
			continue
		}
		all = append(all, types.Reservation{Instances: []types.Instance{
			{InstanceId: new(id), Tags: tagList(e.Instances[id].Tags), State: &types.InstanceState{Name: e.Instances[id].State}},
		}})
	}
	page, next := pageOf(all, in.NextToken, 1)
	return &ec2.DescribeInstancesOutput{Reservations: page, NextToken: next}, nil
}

func (e *EC2) shutDown() {
	for _, i := range e.Instances {
		if i.State != types.InstanceStateNameShuttingDown {
			continue
		}
		if i.looks++; i.looks > e.Delay {
			i.State = types.InstanceStateNameTerminated
		}
	}
}

func (i *Instance) fits(id string, filters []types.Filter) bool {
	return fit(filters, func(name string) []string {
		if name == "instance-state-name" {
			return []string{string(i.State)}
		}
		return filterable(name, id, i.Tags)
	})
}

// TerminateInstances terminates all instances or none, as EC2 does.
func (e *EC2) TerminateInstances(_ context.Context, in *ec2.TerminateInstancesInput,
	_ ...func(*ec2.Options)) (*ec2.TerminateInstancesOutput, error) {
	if err := e.call("EC2.TerminateInstances", strings.Join(in.InstanceIds, ",")); err != nil {
		return nil, err
	}
	for _, id := range in.InstanceIds {
		switch i := e.Instances[id]; {
		case i == nil:
			return nil, refuse("InvalidInstanceID.NotFound", "The instance ID '%s' does not exist", id)
		case i.Protected:
			return nil, refuse("OperationNotPermitted",
				"The instance '%s' may not be terminated. Modify its 'disableApiTermination' instance attribute and try again.", id)
		}
	}
	for _, id := range in.InstanceIds {
		if i := e.Instances[id]; i.State != types.InstanceStateNameTerminated {
			i.State = types.InstanceStateNameShuttingDown
		}
	}
	return &ec2.TerminateInstancesOutput{}, nil
}
