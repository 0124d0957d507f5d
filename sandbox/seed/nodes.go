package seed

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
)

const trust = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"%s.amazonaws.com"},` +
	`"Action":"sts:AssumeRole"}]}`

func (a *account) makeRoles(ctx context.Context) error {
	var err error
	if a.clusterRole, err = a.makeRole(ctx, a.cluster+"-cluster", "eks", "AmazonEKSClusterPolicy"); err != nil {
		return err
	}
	a.nodeARN, err = a.makeRole(ctx, a.cluster+"-node", "ec2", "AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy",
		"AmazonEC2ContainerRegistryPullOnly", "AmazonSSMManagedInstanceCore")
	if err != nil {
		return err
	}
	return a.makeSpotRole(ctx)
}

// makeSpotRole creates EC2's service-linked role for spot instances, once for the account. MiniStack's own call gives it
// another name.
func (a *account) makeSpotRole(ctx context.Context) error {
	_, err := a.iam.CreateRole(ctx, &iam.CreateRoleInput{
		RoleName: aws.String("AWSServiceRoleForEC2Spot"), Path: aws.String("/aws-service-role/spot.amazonaws.com/"),
		AssumeRolePolicyDocument: aws.String(fmt.Sprintf(trust, "spot")),
	})
	if errors.As(err, new(*iamtypes.EntityAlreadyExistsException)) {
		return nil
	}
	return err
}

func (a *account) makeRole(ctx context.Context, name, service string, policies ...string) (string, error) {
	out, err := a.iam.CreateRole(ctx, &iam.CreateRoleInput{
		RoleName: &name, AssumeRolePolicyDocument: aws.String(fmt.Sprintf(trust, service)),
	})
	if err != nil {
		return "", fmt.Errorf("role %s: create: %w", name, err)
	}
	for _, policy := range policies {
		arn := "arn:aws:iam::aws:policy/" + policy
		_, err := a.iam.AttachRolePolicy(ctx, &iam.AttachRolePolicyInput{RoleName: &name, PolicyArn: &arn})
		if err != nil {
			return "", fmt.Errorf("role %s: attach %s: %w", name, policy, err)
		}
	}
	return aws.ToString(out.Role.Arn), nil
}

// makeNodeGroups creates the system group with two nodes and the build group with one, each in two zones.
func (a *account) makeNodeGroups(ctx context.Context) error {
	system := a.group("system", 2, 1, 4)
	build := a.group("build", 1, 1, 3)
	build.Labels = map[string]string{"convox-build": "true"}
	build.Taints = []types.Taint{{
		Key: aws.String("dedicated"), Value: aws.String("build"), Effect: types.TaintEffectNoSchedule,
	}}
	for _, group := range []*eks.CreateNodegroupInput{system, build} {
		if _, err := a.eks.CreateNodegroup(ctx, group); err != nil {
			return fmt.Errorf("%s: create: %w", aws.ToString(group.NodegroupName), err)
		}
	}
	return nil
}

func (a *account) group(name string, desired, least, most int32) *eks.CreateNodegroupInput {
	return &eks.CreateNodegroupInput{
		ClusterName: &a.cluster, NodegroupName: &name, NodeRole: &a.nodeARN, Version: aws.String(Version),
		Subnets: a.private[:2], InstanceTypes: []string{"m5.large"},
		AmiType: types.AMITypesAl2023X8664Standard, CapacityType: types.CapacityTypesOnDemand,
		ScalingConfig:  &types.NodegroupScalingConfig{DesiredSize: &desired, MinSize: &least, MaxSize: &most},
		LaunchTemplate: &types.LaunchTemplateSpecification{Id: &a.template, Version: aws.String("1")},
	}
}
