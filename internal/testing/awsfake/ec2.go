package awsfake

import (
	"cmp"
	"context"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// EC2 holds the tags of subnets (subnet-…) and security groups (sg-…) by id. An id without an entry does not exist.
type EC2 struct {
	*Calls
	Tags map[string]map[string]string
	// Elsewhere are the VPCs of the subnets and security groups that are not in VPC, by id.
	Elsewhere map[string]string
	// TemplateGroups are the security groups in launch templates, by id and version: "lt-1/3".
	TemplateGroups map[string][]string
	// TemplateTypes are the instance types in them, likewise.
	TemplateTypes map[string]types.InstanceType
	// Types are the instance types that EC2 knows, with their architectures.
	Types map[string]types.ArchitectureType
	// Offered has the zones in which EC2 offers a family; nil for a and b of each.
	Offered map[string][]string
	// Reservations and PlacementGroups are those of the account.
	Reservations    []types.CapacityReservation
	PlacementGroups []types.PlacementGroup
	// Images are the images that EC2 shows the account.
	Images []types.Image
	// Instances holds instances by id. Delay is how many descriptions show a terminated one as shutting down.
	Instances map[string]*Instance
	Delay     int

	past past[map[string]string]
}

// VPC is the VPC of the cluster.
const VPC = "vpc-cluster"

func (e *EC2) vpc(id string) *string { return new(cmp.Or(e.Elsewhere[id], VPC)) }

func newEC2(calls *Calls) *EC2 {
	return &EC2{
		Calls: calls, TemplateGroups: map[string][]string{}, Tags: map[string]map[string]string{
			"subnet-a": {}, "subnet-b": {}, "sg-cluster": {},
		},
		Instances: map[string]*Instance{}, Delay: 1, past: past[map[string]string]{},
	}
}

// DescribeTags returns one tag per page. It supports the filters key and resource-type.
func (e *EC2) DescribeTags(_ context.Context, in *ec2.DescribeTagsInput, _ ...func(*ec2.Options)) (*ec2.DescribeTagsOutput, error) {
	if err := e.call("EC2.DescribeTags", ""); err != nil {
		return nil, err
	}
	var all []types.TagDescription
	for _, id := range slices.Sorted(maps.Keys(e.Tags)) {
		kind := map[bool]string{true: "subnet", false: "security-group"}[strings.HasPrefix(id, "subnet-")]
		tags := e.Tags[id]
		for key, text := range *e.past.shown(e.Calls, id, &tags) {
			have := map[string][]string{"key": {key}, "resource-type": {kind}}
			if fit(in.Filters, func(name string) []string { return have[name] }) {
				all = append(all, types.TagDescription{ResourceId: new(id), Key: new(key), Value: new(text)})
			}
		}
	}
	page, next := pageOf(all, in.NextToken, 1)
	return &ec2.DescribeTagsOutput{Tags: page, NextToken: next}, nil
}

func (e *EC2) CreateTags(_ context.Context, in *ec2.CreateTagsInput, _ ...func(*ec2.Options)) (*ec2.CreateTagsOutput, error) {
	if err := e.call("EC2.CreateTags", strings.Join(in.Resources, ",")); err != nil {
		return nil, err
	}
	for _, id := range in.Resources {
		if e.Tags[id] == nil {
			return nil, missing(id)
		}
		e.past.wrote(e.Calls, id, new(maps.Clone(e.Tags[id])))
		for _, t := range in.Tags {
			e.Tags[id][*t.Key] = *t.Value
		}
	}
	return &ec2.CreateTagsOutput{}, nil
}

// DeleteTags deletes a tag only if it has the given value, as EC2 does.
func (e *EC2) DeleteTags(_ context.Context, in *ec2.DeleteTagsInput, _ ...func(*ec2.Options)) (*ec2.DeleteTagsOutput, error) {
	if err := e.call("EC2.DeleteTags", strings.Join(in.Resources, ",")); err != nil {
		return nil, err
	}
	for _, id := range in.Resources {
		e.past.wrote(e.Calls, id, new(maps.Clone(e.Tags[id])))
		for _, t := range in.Tags {
			if t.Value == nil || e.Tags[id][*t.Key] == *t.Value {
				delete(e.Tags[id], *t.Key)
			}
		}
	}
	return &ec2.DeleteTagsOutput{}, nil
}

func (e *EC2) DescribeSubnets(_ context.Context, in *ec2.DescribeSubnetsInput,
	_ ...func(*ec2.Options)) (*ec2.DescribeSubnetsOutput, error) {
	if err := e.call("EC2.DescribeSubnets", strings.Join(in.Filters[0].Values, ",")); err != nil {
		return nil, err
	}
	out := &ec2.DescribeSubnetsOutput{}
	for _, id := range e.filtered(in.Filters) {
		out.Subnets = append(out.Subnets, types.Subnet{
			SubnetId: new(id), VpcId: e.vpc(id), AvailabilityZone: new(Region + id[len(id)-1:]), Tags: tagList(e.Tags[id]),
		})
	}
	return out, nil
}

func (e *EC2) DescribeSecurityGroups(_ context.Context, in *ec2.DescribeSecurityGroupsInput,
	_ ...func(*ec2.Options)) (*ec2.DescribeSecurityGroupsOutput, error) {
	if err := e.call("EC2.DescribeSecurityGroups", strings.Join(in.Filters[0].Values, ",")); err != nil {
		return nil, err
	}
	out := &ec2.DescribeSecurityGroupsOutput{}
	for _, id := range e.filtered(in.Filters) {
		out.SecurityGroups = append(out.SecurityGroups, types.SecurityGroup{GroupId: new(id), VpcId: e.vpc(id), Tags: tagList(e.Tags[id])})
	}
	return out, nil
}

func (e *EC2) DescribeLaunchTemplateVersions(_ context.Context, in *ec2.DescribeLaunchTemplateVersionsInput,
	_ ...func(*ec2.Options)) (*ec2.DescribeLaunchTemplateVersionsOutput, error) {
	name := *in.LaunchTemplateId + "/" + strings.Join(in.Versions, ",")
	if err := e.call("EC2.DescribeLaunchTemplateVersions", name); err != nil {
		return nil, err
	}
	groups, ok := e.TemplateGroups[name]
	if !ok {
		for other := range e.TemplateGroups {
			if strings.HasPrefix(other, *in.LaunchTemplateId+"/") {
				return nil, refuse("InvalidLaunchTemplateId.VersionNotFound",
					"Could not find the specified version %s for the launch template with ID %s.", in.Versions[0], *in.LaunchTemplateId)
			}
		}
		return nil, refuse("InvalidLaunchTemplateId.NotFound", "The specified launch template, with template ID %s, does not exist.",
			*in.LaunchTemplateId)
	}
	return &ec2.DescribeLaunchTemplateVersionsOutput{LaunchTemplateVersions: []types.LaunchTemplateVersion{
		{LaunchTemplateData: &types.ResponseLaunchTemplateData{SecurityGroupIds: groups, InstanceType: e.TemplateTypes[name]}},
	}}, nil
}

// DescribeInstanceTypes returns the types in Types. It supports the filter instance-type.
func (e *EC2) DescribeInstanceTypes(_ context.Context, in *ec2.DescribeInstanceTypesInput,
	_ ...func(*ec2.Options)) (*ec2.DescribeInstanceTypesOutput, error) {
	if err := e.call("EC2.DescribeInstanceTypes", strings.Join(in.Filters[0].Values, ",")); err != nil {
		return nil, err
	}
	out := &ec2.DescribeInstanceTypesOutput{}
	for _, name := range in.Filters[0].Values {
		if arch := e.Types[name]; arch != "" {
			out.InstanceTypes = append(out.InstanceTypes, types.InstanceTypeInfo{
				InstanceType: types.InstanceType(name), ProcessorInfo: &types.ProcessorInfo{
					SupportedArchitectures: []types.ArchitectureType{arch},
				},
			})
		}
	}
	return out, nil
}

// DescribeInstanceTypeOfferings returns a type of each family that is asked for, for each zone, one a page.
func (e *EC2) DescribeInstanceTypeOfferings(_ context.Context, in *ec2.DescribeInstanceTypeOfferingsInput,
	_ ...func(*ec2.Options)) (*ec2.DescribeInstanceTypeOfferingsOutput, error) {
	if err := e.call("EC2.DescribeInstanceTypeOfferings", strings.Join(in.Filters[0].Values, ",")); err != nil {
		return nil, err
	}
	var all []types.InstanceTypeOffering
	for _, pattern := range in.Filters[0].Values {
		family := strings.TrimSuffix(pattern, ".*")
		zones := e.Offered[family]
		if e.Offered == nil {
			zones = []string{Region + "a", Region + "b"}
		}
		for _, zone := range zones {
			all = append(all, types.InstanceTypeOffering{
				InstanceType: types.InstanceType(family + ".large"), Location: &zone, LocationType: in.LocationType,
			})
		}
	}
	page, next := pageOf(all, in.NextToken, 1)
	return &ec2.DescribeInstanceTypeOfferingsOutput{InstanceTypeOfferings: page, NextToken: next}, nil
}

// DescribeImages returns one image per page. It supports the filters image-id and name, which may have wildcards; of a name, it is
// asked for the images of an owner.
func (e *EC2) DescribeImages(_ context.Context, in *ec2.DescribeImagesInput,
	_ ...func(*ec2.Options)) (*ec2.DescribeImagesOutput, error) {
	if err := e.call("EC2.DescribeImages", strings.Join(in.Filters[0].Values, ",")); err != nil {
		return nil, err
	}
	var found []types.Image
	for _, image := range e.Images {
		named, _ := path.Match(in.Filters[0].Values[0], aws.ToString(image.Name))
		switch owner := aws.ToString(image.ImageOwnerAlias); *in.Filters[0].Name {
		case "image-id":
			named = slices.Contains(in.Filters[0].Values, *image.ImageId)
		case "name":
			named = named && slices.Contains(in.Owners, owner)
		}
		if named {
			found = append(found, image)
		}
	}
	page, next := pageOf(found, in.NextToken, 1)
	return &ec2.DescribeImagesOutput{Images: page, NextToken: next}, nil
}

// DescribeCapacityReservations returns all, one a page.
func (e *EC2) DescribeCapacityReservations(_ context.Context, in *ec2.DescribeCapacityReservationsInput,
	_ ...func(*ec2.Options)) (*ec2.DescribeCapacityReservationsOutput, error) {
	if err := e.call("EC2.DescribeCapacityReservations", ""); err != nil {
		return nil, err
	}
	page, next := pageOf(e.Reservations, in.NextToken, 1)
	return &ec2.DescribeCapacityReservationsOutput{CapacityReservations: page, NextToken: next}, nil
}

// DescribePlacementGroups returns all.
func (e *EC2) DescribePlacementGroups(context.Context, *ec2.DescribePlacementGroupsInput,
	...func(*ec2.Options)) (*ec2.DescribePlacementGroupsOutput, error) {
	if err := e.call("EC2.DescribePlacementGroups", ""); err != nil {
		return nil, err
	}
	return &ec2.DescribePlacementGroupsOutput{PlacementGroups: e.PlacementGroups}, nil
}

// filtered returns the ids of the existing resources that match the filters.
func (e *EC2) filtered(filters []types.Filter) (found []string) {
	for _, id := range slices.Sorted(maps.Keys(e.Tags)) {
		if fit(filters, func(name string) []string { return filterable(name, id, e.Tags[id]) }) {
			found = append(found, id)
		}
	}
	return found
}

// fit reports whether a resource matches all filters. have returns the resource's values for the name of a filter.
func fit(filters []types.Filter, have func(name string) []string) bool {
	return !slices.ContainsFunc(filters, func(f types.Filter) bool {
		return !slices.ContainsFunc(have(*f.Name), func(value string) bool { return slices.Contains(f.Values, value) })
	})
}

// filterable returns a resource's values for the name of a filter: tag-key, tag:…, or one that selects by id.
func filterable(name, id string, tags map[string]string) []string {
	key, tag := strings.CutPrefix(name, "tag:")
	switch text, tagged := tags[key]; {
	case name == "tag-key":
		return slices.Collect(maps.Keys(tags))
	case tag && !tagged:
		return nil
	case tag:
		return []string{text}
	}
	return []string{id}
}

func tagList(tags map[string]string) (list []types.Tag) {
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		list = append(list, types.Tag{Key: new(key), Value: new(tags[key])})
	}
	return list
}

func missing(id string) error { return refuse("InvalidID.NotFound", "The ID '%s' does not exist", id) }
