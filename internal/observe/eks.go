// Package observe turns what AWS answers into the facts that plans and examinations are made of: a pass and doctor see a cluster alike.
package observe

import (
	"cmp"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// Cluster is what DescribeCluster says. A cluster of which EKS names no access mode is older than access entries.
func Cluster(c *types.Cluster) (plan.ClusterFacts, error) {
	name := aws.ToString(c.Name)
	parsed, err := arn.Parse(aws.ToString(c.Arn))
	if err != nil {
		return plan.ClusterFacts{}, fmt.Errorf("cluster %s: ARN %q: %w", name, aws.ToString(c.Arn), err)
	}
	facts := plan.ClusterFacts{
		Cluster: plan.Cluster{
			Name: name, ARN: parsed.String(), Account: parsed.AccountID, Region: parsed.Region, Partition: parsed.Partition,
		},
		Status: string(c.Status), Version: aws.ToString(c.Version), AuthMode: string(types.AuthenticationModeConfigMap), Tags: c.Tags,
		AutoMode: c.ComputeConfig != nil && aws.ToBool(c.ComputeConfig.Enabled),
	}
	if c.Identity != nil && c.Identity.Oidc != nil {
		facts.OIDCIssuer = aws.ToString(c.Identity.Oidc.Issuer)
	}
	if c.ResourcesVpcConfig != nil {
		facts.SecurityGroup = aws.ToString(c.ResourcesVpcConfig.ClusterSecurityGroupId)
	}
	if c.AccessConfig != nil {
		facts.AuthMode = cmp.Or(string(c.AccessConfig.AuthenticationMode), facts.AuthMode)
	}
	return facts, nil
}

// NodeGroup is what DescribeNodegroup says.
func NodeGroup(g *types.Nodegroup) plan.NodeGroup {
	group := plan.NodeGroup{
		Name: aws.ToString(g.NodegroupName), Status: string(g.Status), CapacityType: string(g.CapacityType), InstanceTypes: g.InstanceTypes,
		AMIType: string(g.AmiType), Labels: g.Labels, Subnets: g.Subnets, NodeRole: aws.ToString(g.NodeRole), Tags: g.Tags,
	}
	for _, t := range g.Taints {
		group.Taints = append(group.Taints, plan.NodeGroupTaint{
			Key: aws.ToString(t.Key), Value: aws.ToString(t.Value), Effect: string(t.Effect),
		})
	}
	if g.Health != nil {
		for _, issue := range g.Health.Issues {
			group.Health.Issues = append(group.Health.Issues, plan.HealthIssue{
				Code: string(issue.Code), Message: aws.ToString(issue.Message),
			})
		}
	}
	if s := g.ScalingConfig; s != nil {
		group.Scaling = plan.Scaling{
			Min: int(aws.ToInt32(s.MinSize)), Max: int(aws.ToInt32(s.MaxSize)), Desired: int(aws.ToInt32(s.DesiredSize)),
		}
	}
	if g.Resources != nil {
		for _, asg := range g.Resources.AutoScalingGroups {
			group.Resources.AutoScalingGroups = append(group.Resources.AutoScalingGroups,
				plan.AutoScalingGroup{Name: aws.ToString(asg.Name)})
		}
	}
	return group
}
