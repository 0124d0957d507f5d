// Package seed creates the initial account and cluster of a sandbox: an EKS cluster "demo" with Cluster
// Autoscaler whose access is still in aws-auth. It can create further clusters like it. It uses only AWS's
// and Kubernetes' own APIs.
package seed

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
)

const (
	// ClusterName is the name of the cluster that every sandbox has.
	ClusterName = "demo"
	// Version is the clusters' Kubernetes version.
	Version = "1.35"
	// rackTag is the tag with which a cluster's owner allows a rack in.
	rackTag = "sawhorse.dev/rack"
)

// account creates the AWS side of one cluster step by step. Each step uses the results of the earlier ones.
type account struct {
	cluster string // its name
	ec2     *ec2.Client
	eks     *eks.Client
	iam     *iam.Client

	private, public      []string // subnet ids, one per zone
	vpc, nodeGroup       string   // nodeGroup is the nodes' security group
	clusterRole, nodeARN string
	clusterGroup         string // the cluster security group
	template             string // launch template id
}

// AWS creates a cluster's VPC, its roles, the EKS cluster, its node groups and its add-on.
func AWS(ctx context.Context, cfg aws.Config, cluster string) error {
	a := &account{cluster: cluster, ec2: ec2.NewFromConfig(cfg), eks: eks.NewFromConfig(cfg), iam: iam.NewFromConfig(cfg)}
	steps := []struct {
		name string
		do   func(context.Context) error
	}{
		{"network", a.makeNetwork},
		{"roles", a.makeRoles},
		{"cluster", a.makeCluster},
		{"launch template", a.makeTemplate},
		{"node groups", a.makeNodeGroups},
		{"add-on", a.makeAddOn},
	}
	for _, step := range steps {
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("seed: %s: %s: %w", cluster, step.name, err)
		}
	}
	return nil
}

func (a *account) makeCluster(ctx context.Context) error {
	_, err := a.eks.CreateCluster(ctx, &eks.CreateClusterInput{
		Name: &a.cluster, Version: aws.String(Version), RoleArn: &a.clusterRole,
		ResourcesVpcConfig: &types.VpcConfigRequest{SubnetIds: append(a.private, a.public...)},
		AccessConfig:       &types.CreateAccessConfigRequest{AuthenticationMode: types.AuthenticationModeConfigMap},
		Tags:               map[string]string{rackTag: a.cluster}, // its owner allows the rack of the same name in
	})
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	waiter := eks.NewClusterActiveWaiter(a.eks, func(o *eks.ClusterActiveWaiterOptions) { o.MinDelay = 50 * time.Millisecond })
	out, err := waiter.WaitForOutput(ctx, &eks.DescribeClusterInput{Name: &a.cluster}, time.Minute)
	if err != nil {
		return fmt.Errorf("wait until active: %w", err)
	}
	a.clusterGroup = aws.ToString(out.Cluster.ResourcesVpcConfig.ClusterSecurityGroupId)
	return nil
}

func (a *account) makeAddOn(ctx context.Context) error {
	_, err := a.eks.CreateAddon(ctx, &eks.CreateAddonInput{
		ClusterName: &a.cluster, AddonName: aws.String("eks-pod-identity-agent"),
		AddonVersion: aws.String("v1.3.10-eksbuild.2"),
	})
	return err
}
