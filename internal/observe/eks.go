package observe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// EKS has the calls of EKS that an observation makes.
type EKS interface {
	DescribeCluster(context.Context, *eks.DescribeClusterInput, ...func(*eks.Options)) (*eks.DescribeClusterOutput, error)
	ListNodegroups(context.Context, *eks.ListNodegroupsInput, ...func(*eks.Options)) (*eks.ListNodegroupsOutput, error)
	DescribeNodegroup(context.Context, *eks.DescribeNodegroupInput, ...func(*eks.Options)) (*eks.DescribeNodegroupOutput, error)
	DescribeAddon(context.Context, *eks.DescribeAddonInput, ...func(*eks.Options)) (*eks.DescribeAddonOutput, error)
}

// Cluster returns a cluster, or nil if there is none of that name.
func (o *Observer) Cluster(ctx context.Context, name string) (*types.Cluster, error) {
	out, err := o.EKS.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: &name})
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cluster %s: describe: %w", name, err)
	}
	return out.Cluster, nil
}

// NodeGroups returns the managed node groups of a cluster, sorted by name.
func (o *Observer) NodeGroups(ctx context.Context, cluster string) ([]plan.NodeGroup, error) {
	var all []string
	pages := eks.NewListNodegroupsPaginator(o.EKS, &eks.ListNodegroupsInput{ClusterName: &cluster})
	if err := EachPage(ctx, pages, func(page *eks.ListNodegroupsOutput) { all = append(all, page.Nodegroups...) }); err != nil {
		return nil, fmt.Errorf("cluster %s: list node groups: %w", cluster, err)
	}
	slices.Sort(all)
	described, reads := make([]*plan.NodeGroup, len(all)), make([]func(context.Context) error, len(all))
	for i, name := range all {
		reads[i] = func(ctx context.Context) (err error) {
			described[i], err = o.nodegroup(ctx, cluster, name)
			return err
		}
	}
	if err := together(ctx, reads...); err != nil {
		return nil, err
	}
	var groups []plan.NodeGroup
	for _, group := range described {
		if group != nil {
			groups = append(groups, *group)
		}
	}
	return groups, nil
}

// nodegroup returns a group, or nil if it was deleted after it was listed.
func (o *Observer) nodegroup(ctx context.Context, cluster, name string) (*plan.NodeGroup, error) {
	out, err := o.EKS.DescribeNodegroup(ctx, &eks.DescribeNodegroupInput{ClusterName: &cluster, NodegroupName: &name})
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("node group %s: describe: %w", name, err)
	}
	group := nodeGroup(out.Nodegroup)
	if group.Gone() {
		return &group, nil // its launch template may be gone too
	}
	err = o.template(ctx, out.Nodegroup.LaunchTemplate, &group)
	return &group, err
}

// template reads the security groups of a node group's launch template, and its instance type if the group names none. If the template
// or the version that the group uses was deleted, the group still exists.
func (o *Observer) template(ctx context.Context, used *types.LaunchTemplateSpecification, group *plan.NodeGroup) error {
	if used == nil || used.Id == nil {
		return nil
	}
	out, err := o.EC2.DescribeLaunchTemplateVersions(ctx, &ec2.DescribeLaunchTemplateVersionsInput{
		LaunchTemplateId: used.Id, Versions: []string{aws.ToString(used.Version)},
	})
	if code := outcome.Code(err); code == "InvalidLaunchTemplateId.NotFound" || code == "InvalidLaunchTemplateId.VersionNotFound" {
		group.LostTemplate = strings.TrimSuffix(aws.ToString(used.Id)+" version "+aws.ToString(used.Version), " version ")
		return nil
	}
	if err != nil {
		return fmt.Errorf("node group %s: describe launch template: %w", group.Name, err)
	}
	for _, version := range out.LaunchTemplateVersions {
		if data := version.LaunchTemplateData; data != nil {
			if data.InstanceType != "" && len(group.InstanceTypes) == 0 {
				group.InstanceTypes = []string{string(data.InstanceType)}
			}
			group.SecurityGroups = append(group.SecurityGroups, data.SecurityGroupIds...)
			for _, ni := range data.NetworkInterfaces {
				group.SecurityGroups = append(group.SecurityGroups, ni.Groups...)
			}
		}
	}
	return nil
}

// AddOn returns an add-on of a cluster, or nil if the cluster does not have it.
func (o *Observer) AddOn(ctx context.Context, cluster, name string) (*types.Addon, error) {
	out, err := o.EKS.DescribeAddon(ctx, &eks.DescribeAddonInput{ClusterName: &cluster, AddonName: &name})
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cluster %s: describe add-on %s: %w", cluster, name, err)
	}
	return out.Addon, nil
}

// ClusterFacts converts the answer of DescribeCluster. A cluster without an access mode is older than access entries.
func ClusterFacts(c *types.Cluster) (plan.ClusterFacts, error) {
	name := aws.ToString(c.Name)
	parsed, err := arn.Parse(aws.ToString(c.Arn))
	if err != nil {
		return plan.ClusterFacts{}, fmt.Errorf("cluster %s: ARN %q: %w", name, aws.ToString(c.Arn), err)
	}
	facts := plan.ClusterFacts{
		Cluster: plan.Cluster{
			Name: name, ARN: parsed.String(), Account: parsed.AccountID, Region: parsed.Region, Partition: parsed.Partition,
			Endpoint: aws.ToString(c.Endpoint),
		},
		Status: string(c.Status), Version: aws.ToString(c.Version), AuthMode: string(types.AuthenticationModeConfigMap), Tags: c.Tags,
		AutoMode: c.ComputeConfig != nil && aws.ToBool(c.ComputeConfig.Enabled),
	}
	if c.CertificateAuthority != nil {
		facts.CA = aws.ToString(c.CertificateAuthority.Data)
	}
	if c.Identity != nil && c.Identity.Oidc != nil {
		facts.OIDCIssuer = aws.ToString(c.Identity.Oidc.Issuer)
	}
	if c.ResourcesVpcConfig != nil {
		facts.SecurityGroup = aws.ToString(c.ResourcesVpcConfig.ClusterSecurityGroupId)
		facts.VPC = aws.ToString(c.ResourcesVpcConfig.VpcId)
	}
	if c.KubernetesNetworkConfig != nil {
		facts.IPv6 = c.KubernetesNetworkConfig.IpFamily == types.IpFamilyIpv6
	}
	if c.AccessConfig != nil {
		facts.AuthMode = cmp.Or(string(c.AccessConfig.AuthenticationMode), facts.AuthMode)
	}
	return facts, nil
}

// nodeGroup converts the answer of DescribeNodegroup.
func nodeGroup(g *types.Nodegroup) plan.NodeGroup {
	group := plan.NodeGroup{
		Name: aws.ToString(g.NodegroupName), Status: string(g.Status), CapacityType: string(g.CapacityType), InstanceTypes: g.InstanceTypes,
		AMIType: string(g.AmiType), Labels: g.Labels, Subnets: g.Subnets, NodeRole: aws.ToString(g.NodeRole), Tags: g.Tags,
		Created: aws.ToTime(g.CreatedAt),
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

func missing(err error) bool {
	return errors.As(err, new(*types.ResourceNotFoundException))
}
