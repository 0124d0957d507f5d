package seed

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// makeNetwork creates a VPC with a private and a public subnet in each of three zones, and the nodes' security group.
func (a *account) makeNetwork(ctx context.Context) error {
	vpc, err := a.ec2.CreateVpc(ctx, &ec2.CreateVpcInput{
		CidrBlock: aws.String("10.0.0.0/16"), TagSpecifications: tags(types.ResourceTypeVpc, "Name", a.cluster),
	})
	if err != nil {
		return fmt.Errorf("vpc: create: %w", err)
	}
	a.vpc = aws.ToString(vpc.Vpc.VpcId)
	for i, zone := range []string{"us-east-1a", "us-east-1b", "us-east-1c"} {
		private, err := a.makeSubnet(ctx, zone, fmt.Sprintf("10.0.%d.0/19", i*32), "private", "internal-elb")
		if err != nil {
			return err
		}
		public, err := a.makeSubnet(ctx, zone, fmt.Sprintf("10.0.%d.0/22", 96+i*4), "public", "elb")
		if err != nil {
			return err
		}
		a.private, a.public = append(a.private, private), append(a.public, public)
	}
	group, err := a.ec2.CreateSecurityGroup(ctx, &ec2.CreateSecurityGroupInput{
		GroupName: aws.String(a.cluster + "-node"), Description: aws.String("Nodes of " + a.cluster), VpcId: &a.vpc,
		TagSpecifications: tags(types.ResourceTypeSecurityGroup, "Name", a.cluster+"-node"),
	})
	if err != nil {
		return fmt.Errorf("node security group: create: %w", err)
	}
	a.nodeGroup = aws.ToString(group.GroupId)
	return nil
}

func (a *account) makeSubnet(ctx context.Context, zone, cidr, kind, role string) (string, error) {
	out, err := a.ec2.CreateSubnet(ctx, &ec2.CreateSubnetInput{
		VpcId: &a.vpc, AvailabilityZone: &zone, CidrBlock: &cidr,
		TagSpecifications: tags(types.ResourceTypeSubnet, "Name", a.cluster+"-"+kind+"-"+zone,
			"kubernetes.io/role/"+role, "1", "kubernetes.io/cluster/"+a.cluster, "shared"),
	})
	if err != nil {
		return "", fmt.Errorf("subnet %s: create: %w", cidr, err)
	}
	return aws.ToString(out.Subnet.SubnetId), nil
}

// makeTemplate creates the node groups' launch template, in which an operator finds the nodes' security groups.
func (a *account) makeTemplate(ctx context.Context) error {
	out, err := a.ec2.CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: aws.String(a.cluster + "-node"),
		LaunchTemplateData: &types.RequestLaunchTemplateData{SecurityGroupIds: []string{a.clusterGroup, a.nodeGroup}},
	})
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	a.template = aws.ToString(out.LaunchTemplate.LaunchTemplateId)
	return nil
}

// tags returns a tag specification. pairs are alternating keys and values.
func tags(kind types.ResourceType, pairs ...string) []types.TagSpecification {
	spec := types.TagSpecification{ResourceType: kind}
	for i := 0; i < len(pairs); i += 2 {
		spec.Tags = append(spec.Tags, types.Tag{Key: &pairs[i], Value: &pairs[i+1]})
	}
	return []types.TagSpecification{spec}
}
