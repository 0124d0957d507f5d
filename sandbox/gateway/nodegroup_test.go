package gateway_test

import (
	"context"
	"maps"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
)

func scaling(least, desired, most int32) *types.NodegroupScalingConfig {
	return &types.NodegroupScalingConfig{MinSize: &least, DesiredSize: &desired, MaxSize: &most}
}

func nodegroup(t *testing.T, client *eks.Client, cluster string) *types.Nodegroup {
	t.Helper()
	return need[*eks.DescribeNodegroupOutput](t)(client.DescribeNodegroup(context.Background(),
		&eks.DescribeNodegroupInput{ClusterName: &cluster, NodegroupName: aws.String("g")})).Nodegroup
}

func groups(t *testing.T, name string) *eks.Client {
	t.Helper()
	client, _ := cluster(t, name)
	need[*eks.CreateNodegroupOutput](t)(client.CreateNodegroup(context.Background(), &eks.CreateNodegroupInput{
		ClusterName: &name, NodegroupName: aws.String("g"), NodeRole: aws.String(role(t, name+"-node")),
		Subnets: []string{"subnet-1"}, ScalingConfig: scaling(1, 2, 4), Labels: map[string]string{"old": "1", "kept": "1"},
		Taints:         []types.Taint{{Key: aws.String("dedicated"), Value: aws.String("x"), Effect: types.TaintEffectNoSchedule}},
		LaunchTemplate: &types.LaunchTemplateSpecification{Id: aws.String("lt-1"), Version: aws.String("1")},
	}))
	active(t, client, name, "g")
	return client
}

// active waits until a node group can be changed.
func active(t *testing.T, client *eks.Client, cluster, group string) {
	t.Helper()
	eventually(t, "node group active", func() bool {
		out, err := client.DescribeNodegroup(context.Background(), &eks.DescribeNodegroupInput{
			ClusterName: &cluster, NodegroupName: &group,
		})
		return err == nil && out.Nodegroup.Status == types.NodegroupStatusActive
	})
}

func TestNodeGroupUpdateChangesTheGroup(t *testing.T) {
	client := groups(t, "groups")
	update := need[*eks.UpdateNodegroupConfigOutput](t)(client.UpdateNodegroupConfig(context.Background(), &eks.UpdateNodegroupConfigInput{
		ClusterName: aws.String("groups"), NodegroupName: aws.String("g"), ScalingConfig: scaling(0, 0, 4),
		Labels: &types.UpdateLabelsPayload{
			AddOrUpdateLabels: map[string]string{"convox.io/system-node": "true"}, RemoveLabels: []string{"old"},
		},
		Taints: &types.UpdateTaintsPayload{
			AddOrUpdateTaints: []types.Taint{{Key: aws.String("dedicated"), Value: aws.String("y"), Effect: types.TaintEffectNoSchedule}},
		},
	})).Update
	if group := nodegroup(t, client, "groups"); group.Status != types.NodegroupStatusUpdating || *group.ScalingConfig.DesiredSize != 2 {
		t.Errorf("at once: %s, %d nodes", group.Status, *group.ScalingConfig.DesiredSize)
	}
	_, err := client.UpdateNodegroupConfig(context.Background(), &eks.UpdateNodegroupConfigInput{
		ClusterName: aws.String("groups"), NodegroupName: aws.String("g"), ScalingConfig: scaling(1, 1, 4)})
	want(t, "second update", err, "ResourceInUseException")
	successful(t, client, "groups", aws.String("g"), update.Id)

	group := nodegroup(t, client, "groups")
	if group.Status != types.NodegroupStatusActive || *group.ScalingConfig.DesiredSize != 0 || *group.ScalingConfig.MaxSize != 4 {
		t.Errorf("after: %s, %+v", group.Status, group.ScalingConfig)
	}
	if wanted := map[string]string{"kept": "1", "convox.io/system-node": "true"}; !maps.Equal(group.Labels, wanted) {
		t.Errorf("labels %v, want %v", group.Labels, wanted)
	}
	if len(group.Taints) != 1 || *group.Taints[0].Value != "y" {
		t.Errorf("taints %v", group.Taints)
	}
	if *group.LaunchTemplate.Id != "lt-1" || len(group.Resources.AutoScalingGroups) != 1 {
		t.Errorf("template %v, resources %v", group.LaunchTemplate, group.Resources)
	}
}

func TestNodeGroupRefusals(t *testing.T) {
	client := groups(t, "refusals")
	for what, in := range map[string]eks.UpdateNodegroupConfigInput{
		"max 0": {
			ScalingConfig: &types.NodegroupScalingConfig{MinSize: aws.Int32(0), DesiredSize: aws.Int32(0), MaxSize: aws.Int32(0)},
		},
		"desired > max":  {ScalingConfig: scaling(1, 5, 4)},
		"desired < min":  {ScalingConfig: scaling(2, 1, 4)},
		"min of old > 2": {ScalingConfig: &types.NodegroupScalingConfig{MinSize: aws.Int32(3)}},
		"reserved label": {Labels: &types.UpdateLabelsPayload{AddOrUpdateLabels: map[string]string{"node.kubernetes.io/x": "1"}}},
		"both":           {Labels: &types.UpdateLabelsPayload{AddOrUpdateLabels: map[string]string{"a": "1"}, RemoveLabels: []string{"a"}}},
	} {
		in.ClusterName, in.NodegroupName = aws.String("refusals"), aws.String("g")
		_, err := client.UpdateNodegroupConfig(context.Background(), &in)
		want(t, what, err, "InvalidParameterException")
	}
	_, err := client.UpdateNodegroupConfig(context.Background(), &eks.UpdateNodegroupConfigInput{
		ClusterName: aws.String("refusals"), NodegroupName: aws.String("none"), ScalingConfig: scaling(1, 1, 1)})
	want(t, "no such group", err, "ResourceNotFoundException")
}
