package gateway

import (
	"context"
	"fmt"
	"hash/fnv"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// network is the network of a cluster in moto.
type network struct{ vpc, securityGroup string }

// networks finds a cluster's network and creates its cluster security group, as EKS does.
type networks struct {
	mu    sync.Mutex
	known map[string]network
	ec2   *ec2.Client
}

func newNetworks(cfg Config) *networks {
	return &networks{known: map[string]network{}, ec2: ec2.New(ec2.Options{
		Region:       cfg.Region,
		BaseEndpoint: aws.String(cfg.Moto.String()),
		Credentials:  credentials.NewStaticCredentialsProvider("test", "test", ""),
	})}
}

func (n *networks) of(ctx context.Context, cluster, subnet string) (network, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	key := cluster + "/" + subnet
	if found, ok := n.known[key]; ok {
		return found, nil
	}
	subnets, err := n.ec2.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{SubnetIds: []string{subnet}})
	if err != nil {
		return network{}, fmt.Errorf("subnet %s: describe: %w", subnet, err)
	}
	vpc := aws.ToString(subnets.Subnets[0].VpcId)
	group, err := n.securityGroup(ctx, cluster, vpc)
	if err != nil {
		return network{}, fmt.Errorf("cluster security group in %s: %w", vpc, err)
	}
	n.known[key] = network{vpc: vpc, securityGroup: group}
	return n.known[key], nil
}

// securityGroup finds the group by the name that EKS gives it, or creates it.
func (n *networks) securityGroup(ctx context.Context, cluster, vpc string) (string, error) {
	hash := fnv.New32()
	_, _ = hash.Write([]byte(cluster + vpc)) // writing to a hash never fails
	name := fmt.Sprintf("eks-cluster-sg-%s-%d", cluster, hash.Sum32())
	found, err := n.ec2.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{Filters: []types.Filter{
		{Name: aws.String("group-name"), Values: []string{name}}, {Name: aws.String("vpc-id"), Values: []string{vpc}},
	}})
	if err != nil {
		return "", fmt.Errorf("find: %w", err)
	}
	if len(found.SecurityGroups) > 0 {
		return aws.ToString(found.SecurityGroups[0].GroupId), nil
	}
	made, err := n.ec2.CreateSecurityGroup(ctx, &ec2.CreateSecurityGroupInput{
		GroupName: aws.String(name), VpcId: aws.String(vpc),
		Description: aws.String("EKS created security group applied to ENI that is attached to EKS Control Plane " +
			"master nodes, as well as any managed workloads."),
		TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeSecurityGroup, Tags: []types.Tag{
			{Key: aws.String("Name"), Value: aws.String(name)},
			{Key: aws.String("aws:eks:cluster-name"), Value: aws.String(cluster)},
			{Key: aws.String("kubernetes.io/cluster/" + cluster), Value: aws.String("owned")},
		}}},
	})
	if err != nil {
		return "", fmt.Errorf("create: %w", err)
	}
	return aws.ToString(made.GroupId), nil
}
