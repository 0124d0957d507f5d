package observe

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// EC2 has the calls of EC2 that an observation makes.
type EC2 interface {
	DescribeSubnets(context.Context, *ec2.DescribeSubnetsInput, ...func(*ec2.Options)) (*ec2.DescribeSubnetsOutput, error)
	DescribeSecurityGroups(context.Context, *ec2.DescribeSecurityGroupsInput, ...func(*ec2.Options)) (*ec2.DescribeSecurityGroupsOutput, error)
	DescribeImages(context.Context, *ec2.DescribeImagesInput, ...func(*ec2.Options)) (*ec2.DescribeImagesOutput, error)
	DescribeInstanceTypes(context.Context, *ec2.DescribeInstanceTypesInput, ...func(*ec2.Options)) (*ec2.DescribeInstanceTypesOutput, error)
	DescribeInstanceTypeOfferings(context.Context, *ec2.DescribeInstanceTypeOfferingsInput, ...func(*ec2.Options)) (
		*ec2.DescribeInstanceTypeOfferingsOutput, error)
	DescribeCapacityReservations(context.Context, *ec2.DescribeCapacityReservationsInput, ...func(*ec2.Options)) (
		*ec2.DescribeCapacityReservationsOutput, error)
	DescribePlacementGroups(context.Context, *ec2.DescribePlacementGroupsInput, ...func(*ec2.Options)) (
		*ec2.DescribePlacementGroupsOutput, error)
	DescribeLaunchTemplateVersions(context.Context, *ec2.DescribeLaunchTemplateVersionsInput, ...func(*ec2.Options)) (
		*ec2.DescribeLaunchTemplateVersionsOutput, error)
}

// Subnets returns the chosen subnets, sorted by ID: those that the parameters name, or those of the node groups. It
// filters by ID, because EC2 refuses a call that names an ID which does not exist.
func (o *Observer) Subnets(ctx context.Context, config params.Config, facts plan.Facts) (found []ec2types.Subnet, err error) {
	ids := slices.Clone(config.SubnetIDs)
	if len(ids) == 0 {
		for _, g := range facts.Present() {
			ids = append(ids, g.Subnets...)
		}
	}
	if ids = unique(ids); len(ids) == 0 {
		return nil, nil
	}
	pages := ec2.NewDescribeSubnetsPaginator(o.EC2, &ec2.DescribeSubnetsInput{
		Filters: []ec2types.Filter{{Name: new("subnet-id"), Values: ids}},
	})
	if err := EachPage(ctx, pages, func(page *ec2.DescribeSubnetsOutput) { found = append(found, page.Subnets...) }); err != nil {
		return nil, fmt.Errorf("subnets %s: describe: %w", strings.Join(ids, ", "), err)
	}
	slices.SortFunc(found, func(a, b ec2types.Subnet) int { return cmp.Compare(aws.ToString(a.SubnetId), aws.ToString(b.SubnetId)) })
	return found, nil
}

// Subnet converts a subnet.
func Subnet(s ec2types.Subnet) plan.Tagged {
	return plan.Tagged{
		ID: aws.ToString(s.SubnetId), Zone: aws.ToString(s.AvailabilityZone), Owner: aws.ToString(s.OwnerId), VPC: aws.ToString(s.VpcId),
		Tags: Tags(s.Tags),
	}
}

// SecurityGroups returns the chosen security groups, sorted by ID: those that the parameter names, else those of the node
// groups and the cluster's own.
func (o *Observer) SecurityGroups(ctx context.Context, config params.Config, facts plan.Facts) (found []plan.Tagged, err error) {
	ids, lost := slices.Clone(config.SecurityGroupIDs), false
	if len(ids) == 0 {
		for _, g := range facts.Present() {
			ids = append(ids, g.SecurityGroups...)
			lost = lost || g.LostTemplate != ""
		}
		if id := facts.Cluster.SecurityGroup; id != "" {
			ids = append(ids, id)
		}
	}
	if ids = unique(ids); len(ids) > 0 {
		if found, err = o.securityGroups(ctx, "group-id", ids...); err != nil {
			return nil, err
		}
	}
	if lost {
		// The groups of these nodes can no longer be read, so those that have the tag keep it.
		tagged, err := o.securityGroups(ctx, "tag:"+ownership.TagDiscovery, config.ClusterName)
		if err != nil {
			return nil, err
		}
		found = append(found, tagged...)
	}
	slices.SortFunc(found, func(a, b plan.Tagged) int { return cmp.Compare(a.ID, b.ID) })
	return slices.CompactFunc(found, func(a, b plan.Tagged) bool { return a.ID == b.ID }), nil
}

// securityGroups returns the security groups that a filter selects.
func (o *Observer) securityGroups(ctx context.Context, filter string, values ...string) (found []plan.Tagged, err error) {
	pages := ec2.NewDescribeSecurityGroupsPaginator(o.EC2, &ec2.DescribeSecurityGroupsInput{
		Filters: []ec2types.Filter{{Name: &filter, Values: values}},
	})
	if err := EachPage(ctx, pages, func(page *ec2.DescribeSecurityGroupsOutput) {
		for _, g := range page.SecurityGroups {
			found = append(found, plan.Tagged{
				ID: aws.ToString(g.GroupId), Owner: aws.ToString(g.OwnerId), VPC: aws.ToString(g.VpcId), Tags: Tags(g.Tags),
			})
		}
	}); err != nil {
		return nil, fmt.Errorf("security groups %s: describe: %w", strings.Join(values, ", "), err)
	}
	return found, nil
}

// architectures returns the architectures of instance types that Karpenter's tables do not have. A type that EC2 does not
// know either is left out, and its name decides.
func (o *Observer) architectures(ctx context.Context, config params.Config) (map[string]string, error) {
	var found map[string]string
	for _, t := range slices.Concat(config.NodeTypes, config.BuildNodeTypes) {
		if params.KnownType(t) {
			continue
		}
		out, err := o.EC2.DescribeInstanceTypes(ctx, &ec2.DescribeInstanceTypesInput{
			Filters: []ec2types.Filter{{Name: new("instance-type"), Values: []string{t}}},
		})
		if err != nil {
			return nil, fmt.Errorf("instance type %s: describe: %w", t, err)
		}
		for _, described := range out.InstanceTypes {
			if found == nil {
				found = map[string]string{}
			}
			if p := described.ProcessorInfo; p != nil && slices.Contains(p.SupportedArchitectures, ec2types.ArchitectureTypeArm64) {
				found[t] = "arm64"
			} else {
				found[t] = "amd64"
			}
		}
	}
	return found, nil
}

// filterValues is how many values a filter of EC2 has at most.
const filterValues = 200

// offered returns the zones in which EC2 offers the instance families that pools name. Where none is named, nothing is read.
func (o *Observer) offered(ctx context.Context, config params.Config) (map[string][]string, error) {
	families := config.NamedFamilies()
	if len(families) == 0 {
		return nil, nil
	}
	found := map[string][]string{}
	for some := range slices.Chunk(families, filterValues) {
		var types []string
		for _, family := range some {
			types, found[family] = append(types, family+".*"), []string{}
		}
		pages := ec2.NewDescribeInstanceTypeOfferingsPaginator(o.EC2, &ec2.DescribeInstanceTypeOfferingsInput{
			LocationType: ec2types.LocationTypeAvailabilityZone, Filters: []ec2types.Filter{{Name: new("instance-type"), Values: types}},
		})
		err := EachPage(ctx, pages, func(page *ec2.DescribeInstanceTypeOfferingsOutput) {
			for _, offering := range page.InstanceTypeOfferings {
				family, _, _ := strings.Cut(string(offering.InstanceType), ".")
				if zone := aws.ToString(offering.Location); !slices.Contains(found[family], zone) {
					found[family] = append(found[family], zone)
				}
			}
		})
		if err != nil {
			return nil, fmt.Errorf("instance families %s: describe where EC2 offers them: %w", strings.Join(some, ", "), err)
		}
	}
	return found, nil
}

// Tags returns the tags of a resource of EC2.
func Tags(list []ec2types.Tag) map[string]string {
	found := map[string]string{}
	for _, t := range list {
		found[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	return found
}
