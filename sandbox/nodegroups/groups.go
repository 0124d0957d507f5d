package nodegroups

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	corev1 "k8s.io/api/core/v1"
)

// EKS has the calls of EKS that the controller makes.
type EKS interface {
	ListNodegroups(context.Context, *eks.ListNodegroupsInput, ...func(*eks.Options)) (*eks.ListNodegroupsOutput, error)
	DescribeNodegroup(context.Context, *eks.DescribeNodegroupInput, ...func(*eks.Options)) (*eks.DescribeNodegroupOutput, error)
}

// EC2 has the calls of EC2 that the controller makes: for the zones of subnets and the size of instances.
type EC2 interface {
	DescribeSubnets(context.Context, *ec2.DescribeSubnetsInput, ...func(*ec2.Options)) (*ec2.DescribeSubnetsOutput, error)
	DescribeInstanceTypes(context.Context, *ec2.DescribeInstanceTypesInput, ...func(*ec2.Options)) (*ec2.DescribeInstanceTypesOutput, error)
}

// group is the desired state of a managed node group.
type group struct {
	name, capacityType string
	desired            int
	zones              []string
	machine            machine
	labels             map[string]string
	taints             []corev1.Taint
}

// groups reads the cluster's node groups. There are none while the cluster does not exist.
func (c *Controller) groups(ctx context.Context) ([]group, error) {
	listed, err := c.config.EKS.ListNodegroups(ctx, &eks.ListNodegroupsInput{ClusterName: &c.config.Cluster})
	if missing := (*ekstypes.ResourceNotFoundException)(nil); errors.As(err, &missing) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("node groups: list: %w", err)
	}
	var groups []group
	for _, name := range listed.Nodegroups {
		described, err := c.config.EKS.DescribeNodegroup(ctx, &eks.DescribeNodegroupInput{
			ClusterName: &c.config.Cluster, NodegroupName: &name,
		})
		if missing := (*ekstypes.ResourceNotFoundException)(nil); errors.As(err, &missing) {
			continue // deleted in between
		}
		if err != nil {
			return nil, fmt.Errorf("node group %s: describe: %w", name, err)
		}
		g, err := c.group(ctx, described.Nodegroup)
		if err != nil {
			return nil, fmt.Errorf("node group %s: %w", name, err)
		}
		groups = append(groups, g)
	}
	return groups, nil
}

func (c *Controller) group(ctx context.Context, n *ekstypes.Nodegroup) (group, error) {
	g := group{name: aws.ToString(n.NodegroupName), capacityType: string(n.CapacityType), labels: n.Labels}
	if n.ScalingConfig != nil && n.Status != ekstypes.NodegroupStatusDeleting {
		g.desired = int(aws.ToInt32(n.ScalingConfig.DesiredSize))
	}
	for _, taint := range n.Taints {
		g.taints = append(g.taints, corev1.Taint{
			Key: aws.ToString(taint.Key), Value: aws.ToString(taint.Value), Effect: effects[taint.Effect],
		})
	}
	var err error
	if g.zones, err = c.zones(ctx, n.Subnets); err != nil {
		return g, err
	}
	kind := "t3.medium" // EKS's default
	if len(n.InstanceTypes) > 0 {
		kind = n.InstanceTypes[0]
	}
	g.machine, err = c.machine(ctx, kind)
	return g, err
}

// effects maps EKS's taint effects to those of Kubernetes.
var effects = map[ekstypes.TaintEffect]corev1.TaintEffect{
	ekstypes.TaintEffectNoSchedule:       corev1.TaintEffectNoSchedule,
	ekstypes.TaintEffectNoExecute:        corev1.TaintEffectNoExecute,
	ekstypes.TaintEffectPreferNoSchedule: corev1.TaintEffectPreferNoSchedule,
}

// zones returns the zones of subnets, in the subnets' order. A subnet's zone does not change, so it is read once.
func (c *Controller) zones(ctx context.Context, subnets []string) ([]string, error) {
	var zones, unknown []string
	for _, id := range subnets {
		if c.subnets[id] == "" {
			unknown = append(unknown, id)
		}
	}
	if len(unknown) > 0 {
		answer, err := c.config.EC2.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{SubnetIds: unknown})
		if err != nil {
			return nil, fmt.Errorf("subnets: describe: %w", err)
		}
		for _, subnet := range answer.Subnets {
			c.subnets[aws.ToString(subnet.SubnetId)] = aws.ToString(subnet.AvailabilityZone)
		}
	}
	seen := map[string]bool{}
	for _, id := range subnets {
		if zone := c.subnets[id]; zone != "" && !seen[zone] {
			seen[zone] = true
			zones = append(zones, zone)
		}
	}
	if len(zones) == 0 {
		return nil, fmt.Errorf("subnets %v: %w", subnets, errors.New("EC2 knows none of them"))
	}
	return zones, nil
}

// machine returns the size of an instance type. It does not change, so it is read once.
func (c *Controller) machine(ctx context.Context, kind string) (machine, error) {
	if m, ok := c.machines[kind]; ok {
		return m, nil
	}
	answer, err := c.config.EC2.DescribeInstanceTypes(ctx, &ec2.DescribeInstanceTypesInput{
		InstanceTypes: []ec2types.InstanceType{ec2types.InstanceType(kind)},
	})
	if err != nil {
		return machine{}, fmt.Errorf("instance type %s: describe: %w", kind, err)
	}
	if len(answer.InstanceTypes) != 1 {
		return machine{}, fmt.Errorf("instance type %s: %w", kind, errors.New("EC2 does not know it"))
	}
	c.machines[kind] = newMachine(answer.InstanceTypes[0])
	return c.machines[kind], nil
}
