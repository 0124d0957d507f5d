package autoscaler

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// unmanaged returns the Auto Scaling groups that Cluster Autoscaler scaled before the hand-over and that belong to no
// managed node group of the cluster. Nothing else scales them, so they stay its targets. Its arguments of that time
// name them: --nodes, with the size given there, or the tags of its auto-discovery, with the size that the group has
// now.
func (r *run) unmanaged(ctx context.Context, live deployment) ([]plan.AutoscaledGroup, error) {
	before, err := r.before(ctx, live)
	if err != nil {
		return nil, err
	}
	all, err := r.named(ctx, before.values("nodes"))
	if err != nil {
		return nil, err
	}
	for _, value := range before.values("node-group-auto-discovery") {
		discovered, err := r.discovered(ctx, value)
		if err != nil {
			return nil, err
		}
		for _, group := range discovered {
			if !slices.ContainsFunc(all, func(known plan.AutoscaledGroup) bool { return known.ASG == group.ASG }) {
				all = append(all, group)
			}
		}
	}
	slices.SortFunc(all, func(a, b plan.AutoscaledGroup) int { return strings.Compare(a.ASG, b.ASG) })
	if len(all) > 0 {
		var names []string
		for _, group := range all {
			names = append(names, group.ASG)
		}
		r.progress.Warn("cluster_autoscaler", "Cluster Autoscaler goes on scaling Auto Scaling groups that belong to no managed node group: %s; "+
			"give their nodes a NoSchedule taint, so that it and Karpenter do not scale for the same pods", strings.Join(names, ", "))
	}
	return all, nil
}

// before returns Cluster Autoscaler's command line before the hand-over, or the present one if no baseline was
// recorded.
func (r *run) before(ctx context.Context, live deployment) (line, error) {
	if !live.marked(r.plan.Rack) {
		return live.line(), nil
	}
	before, err := r.recorded(ctx)
	if err != nil || before == nil || before.Deployment != live.key() {
		return live.line(), err
	}
	return before.line, nil
}

// named returns the groups of --nodes=min:max:name that exist and belong to no managed node group.
func (r *run) named(ctx context.Context, values []string) ([]plan.AutoscaledGroup, error) {
	var wanted []plan.AutoscaledGroup
	for _, value := range values {
		parts := strings.SplitN(value, ":", 3)
		if len(parts) != 3 || slices.Contains(r.plan.Autoscaler.Managed, parts[2]) {
			continue
		}
		least, errMin := strconv.Atoi(parts[0])
		most, errMax := strconv.Atoi(parts[1])
		if errMin == nil && errMax == nil {
			wanted = append(wanted, plan.AutoscaledGroup{Min: least, Max: most, ASG: parts[2]})
		}
	}
	var existing []types.AutoScalingGroup
	const page = 50 // AWS accepts 50 names at a time
	for some := range slices.Chunk(wanted, page) {
		var names []string
		for _, group := range some {
			names = append(names, group.ASG)
		}
		found, err := r.describe(ctx, &autoscaling.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: names})
		if err != nil {
			return nil, err
		}
		existing = append(existing, found...)
	}
	return slices.DeleteFunc(wanted, func(group plan.AutoscaledGroup) bool {
		return !slices.ContainsFunc(existing, func(known types.AutoScalingGroup) bool {
			return aws.ToString(known.AutoScalingGroupName) == group.ASG
		})
	}), nil
}

// discovered returns the groups that carry all tags of an auto-discovery (asg:tag=key,key=value) and belong to no
// managed node group.
func (r *run) discovered(ctx context.Context, value string) ([]plan.AutoscaledGroup, error) {
	list, ofTags := strings.CutPrefix(value, "asg:tag=")
	if !ofTags {
		return nil, nil
	}
	var filters []types.Filter
	for tag := range strings.SplitSeq(list, ",") {
		key, wanted, valued := strings.Cut(tag, "=")
		if valued {
			filters = append(filters, types.Filter{Name: aws.String("tag:" + key), Values: []string{wanted}})
		} else {
			filters = append(filters, types.Filter{Name: aws.String("tag-key"), Values: []string{key}})
		}
	}
	found, err := r.describe(ctx, &autoscaling.DescribeAutoScalingGroupsInput{Filters: filters})
	var groups []plan.AutoscaledGroup
	for _, group := range found {
		groups = append(groups, plan.AutoscaledGroup{
			Min: int(aws.ToInt32(group.MinSize)), Max: int(aws.ToInt32(group.MaxSize)), ASG: aws.ToString(group.AutoScalingGroupName),
		})
	}
	return groups, err
}

// describe returns the groups of all pages, except those of the cluster's managed node groups and those that are being
// deleted. EKS tags its own groups, so a managed group newer than the plan is recognized too.
func (r *run) describe(ctx context.Context, input *autoscaling.DescribeAutoScalingGroupsInput) ([]types.AutoScalingGroup, error) {
	var all []types.AutoScalingGroup
	for pages := autoscaling.NewDescribeAutoScalingGroupsPaginator(r.AutoScaling, input); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("the Auto Scaling groups: describe: %w", err)
		}
		all = append(all, page.AutoScalingGroups...)
	}
	return slices.DeleteFunc(all, func(group types.AutoScalingGroup) bool {
		return aws.ToString(group.Status) != "" || slices.Contains(r.plan.Autoscaler.Managed, aws.ToString(group.AutoScalingGroupName)) ||
			slices.ContainsFunc(group.Tags, func(tag types.TagDescription) bool {
				return aws.ToString(tag.Key) == "eks:cluster-name" && aws.ToString(tag.Value) == r.plan.Cluster.Name
			})
	}), nil
}
