package gateway_test

import (
	"context"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
)

// another returns a request for one more node group.
func another(t *testing.T, cluster, name string, edit func(*eks.CreateNodegroupInput)) *eks.CreateNodegroupInput {
	t.Helper()
	in := &eks.CreateNodegroupInput{
		ClusterName: &cluster, NodegroupName: &name, NodeRole: aws.String("arn:aws:iam::000000000000:role/sawhorse/" + cluster + "-node"),
		Subnets: []string{"subnet-1"}, ScalingConfig: scaling(1, 1, 1), CapacityType: types.CapacityTypesSpot,
	}
	edit(in)
	return in
}

func TestNodeGroupsComeAndGo(t *testing.T) {
	ctx, client := context.Background(), groups(t, "life")
	spot := another(t, "life", "spot", func(in *eks.CreateNodegroupInput) { in.Tags = map[string]string{"a": "b"} })
	made := need[*eks.CreateNodegroupOutput](t)(client.CreateNodegroup(ctx, spot)).Nodegroup
	if made.Status != types.NodegroupStatusCreating || made.CapacityType != types.CapacityTypesSpot || made.Tags["a"] != "b" {
		t.Errorf("%+v", made)
	}
	_, err := client.CreateNodegroup(ctx, spot)
	want(t, "again", err, "ResourceInUseException")
	remove := &eks.DeleteNodegroupInput{ClusterName: aws.String("life"), NodegroupName: aws.String("spot")}
	_, err = client.DeleteNodegroup(ctx, remove)
	want(t, "delete what is being made", err, "ResourceInUseException")
	active(t, client, "life", "spot")

	gone := need[*eks.DeleteNodegroupOutput](t)(client.DeleteNodegroup(ctx, remove)).Nodegroup
	if gone.Status != types.NodegroupStatusDeleting {
		t.Errorf("status %s", gone.Status)
	}
	list := need[*eks.ListNodegroupsOutput](t)(client.ListNodegroups(ctx, &eks.ListNodegroupsInput{ClusterName: aws.String("life")}))
	if len(list.Nodegroups) != 2 {
		t.Errorf("at once: %v", list.Nodegroups)
	}
	eventually(t, "node group gone", func() bool {
		_, err := client.DescribeNodegroup(ctx, &eks.DescribeNodegroupInput{
			ClusterName: aws.String("life"), NodegroupName: aws.String("spot"),
		})
		return errors.As(err, new(*types.ResourceNotFoundException))
	})
	_, err = client.DeleteNodegroup(ctx, remove)
	want(t, "delete what has gone", err, "ResourceNotFoundException")
}

func TestNewNodeGroupRefusals(t *testing.T) {
	client := groups(t, "new")
	template := &types.LaunchTemplateSpecification{Id: aws.String("lt-1"), Version: aws.String("1")}
	for what, edit := range map[string]func(*eks.CreateNodegroupInput){
		"max 0": func(in *eks.CreateNodegroupInput) { in.ScalingConfig = scaling(0, 0, 0) },
		"id and name": func(in *eks.CreateNodegroupInput) {
			in.LaunchTemplate = &types.LaunchTemplateSpecification{Id: template.Id, Name: aws.String("lt")}
		},
		"disk size twice":  func(in *eks.CreateNodegroupInput) { in.LaunchTemplate, in.DiskSize = template, aws.Int32(20) },
		"older Kubernetes": func(in *eks.CreateNodegroupInput) { in.Version = aws.String("1.34") },
		"older AMI":        func(in *eks.CreateNodegroupInput) { in.ReleaseVersion = aws.String("1.34.1-20250101") },
		"AWS's own tag":    func(in *eks.CreateNodegroupInput) { in.Tags = map[string]string{"aws:cloudformation:stack-name": "s"} },
		"reserved label":   func(in *eks.CreateNodegroupInput) { in.Labels = map[string]string{"kubernetes.io/x": "1"} },
	} {
		_, err := client.CreateNodegroup(context.Background(), another(t, "new", "bad", edit))
		want(t, what, err, "InvalidParameterException")
	}
}

// A node group whose instances EC2 refuses: EKS accepts it, and its health then has the reason.
func TestANodeGroupFails(t *testing.T) {
	_ = groups(t, "failing")
	client := eks.NewFromConfig(function(t, "nodegroups"))
	faults(t, `[{"function":"nodegroups","service":"eks","action":"CreateNodegroup","nth":1,
		"kind":"fail","code":"AsgInstanceLaunchFailures"}]`)
	t.Cleanup(func() { faults(t, "[]") })
	_, err := client.CreateNodegroup(context.Background(), another(t, "failing", "spot", func(*eks.CreateNodegroupInput) {}))
	want(t, "create", err, "")
	eventually(t, "it has failed, and says why", func() bool {
		group := need[*eks.DescribeNodegroupOutput](t)(client.DescribeNodegroup(context.Background(), &eks.DescribeNodegroupInput{
			ClusterName: aws.String("failing"), NodegroupName: aws.String("spot"),
		})).Nodegroup
		return group.Status == types.NodegroupStatusCreateFailed && len(group.Health.Issues) == 1 &&
			group.Health.Issues[0].Code == types.NodegroupIssueCodeAsgInstanceLaunchFailures
	})
}

// Policies can decide by tags who may create a node group (the requested tags) and who may delete it (its own tags).
func TestPoliciesKnowTheTagsOfNodeGroups(t *testing.T) {
	ctx, root := context.Background(), groups(t, "marked")
	client := eks.NewFromConfig(as(t, "replacer", `{"Version":"2012-10-17","Statement":[
		{"Effect":"Allow","Action":"eks:CreateNodegroup","Resource":"arn:aws:eks:us-east-1:000000000000:cluster/*",
		 "Condition":{"Null":{"aws:RequestTag/sawhorse.dev/replaces":"false"}}},
		{"Effect":"Allow","Action":"eks:DeleteNodegroup","Resource":"arn:aws:eks:us-east-1:000000000000:nodegroup/*",
		 "Condition":{"Null":{"aws:ResourceTag/sawhorse.dev/replaces":"true"}}},
		{"Effect":"Allow","Action":["eks:TagResource","iam:PassRole","iam:GetRole","iam:ListAttachedRolePolicies","ec2:DescribeSubnets"],
			"Resource":"*"}]}`))
	_, err := client.CreateNodegroup(ctx, another(t, "marked", "copy", func(*eks.CreateNodegroupInput) {}))
	want(t, "no copy", err, "AccessDeniedException")
	_, err = client.CreateNodegroup(ctx, another(t, "marked", "copy", func(in *eks.CreateNodegroupInput) {
		in.Tags = map[string]string{"sawhorse.dev/replaces": "g"}
	}))
	want(t, "a copy", err, "")
	active(t, root, "marked", "copy")
	for name, wanted := range map[string]string{"copy": "AccessDeniedException", "g": ""} {
		_, err = client.DeleteNodegroup(ctx, &eks.DeleteNodegroupInput{ClusterName: aws.String("marked"), NodegroupName: &name})
		want(t, "delete "+name, err, wanted)
	}
}
