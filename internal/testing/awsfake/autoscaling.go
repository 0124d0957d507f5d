package awsfake

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
)

// AutoScaling holds Auto Scaling groups, and returns them one per page.
type AutoScaling struct {
	Groups []types.AutoScalingGroup
	// Asked counts the calls.
	Asked int
}

// Group adds a group with tags, key=value.
func (a *AutoScaling) Group(name string, least, most int32, tags ...string) {
	group := types.AutoScalingGroup{AutoScalingGroupName: &name, MinSize: &least, MaxSize: &most}
	for _, tag := range tags {
		key, value, _ := strings.Cut(tag, "=")
		group.Tags = append(group.Tags, types.TagDescription{Key: &key, Value: &value})
	}
	a.Groups = append(a.Groups, group)
}

// DescribeAutoScalingGroups accepts at most 50 names, and filters that must all match, as AWS does.
func (a *AutoScaling) DescribeAutoScalingGroups(
	_ context.Context, in *autoscaling.DescribeAutoScalingGroupsInput, _ ...func(*autoscaling.Options),
) (*autoscaling.DescribeAutoScalingGroupsOutput, error) {
	if a.Asked++; len(in.AutoScalingGroupNames) > 50 {
		return nil, refuse("ValidationError", "more than 50 names")
	}
	var found []types.AutoScalingGroup
	for _, group := range a.Groups {
		named := len(in.AutoScalingGroupNames) == 0 || slices.Contains(in.AutoScalingGroupNames, *group.AutoScalingGroupName)
		if named && !slices.ContainsFunc(in.Filters, func(f types.Filter) bool { return !tagged(group, f) }) {
			found = append(found, group)
		}
	}
	page, next := pageOf(found, in.NextToken, 1)
	return &autoscaling.DescribeAutoScalingGroupsOutput{AutoScalingGroups: page, NextToken: next}, nil
}

func tagged(group types.AutoScalingGroup, filter types.Filter) bool {
	key, valued := strings.CutPrefix(*filter.Name, "tag:")
	return slices.ContainsFunc(group.Tags, func(tag types.TagDescription) bool {
		if valued {
			return *tag.Key == key && slices.Contains(filter.Values, *tag.Value)
		}
		return *filter.Name == "tag-key" && slices.Contains(filter.Values, *tag.Key)
	})
}
