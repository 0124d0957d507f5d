package validate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"golang.org/x/sync/errgroup"

	"github.com/sawhorse-io/sawhorse/internal/observe"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// EKS is what observing needs of EKS.
type EKS interface {
	DescribeCluster(context.Context, *eks.DescribeClusterInput, ...func(*eks.Options)) (*eks.DescribeClusterOutput, error)
	ListNodegroups(context.Context, *eks.ListNodegroupsInput, ...func(*eks.Options)) (*eks.ListNodegroupsOutput, error)
	DescribeNodegroup(context.Context, *eks.DescribeNodegroupInput, ...func(*eks.Options)) (*eks.DescribeNodegroupOutput, error)
	DescribeAddon(context.Context, *eks.DescribeAddonInput, ...func(*eks.Options)) (*eks.DescribeAddonOutput, error)
}

// EC2 is what observing needs of EC2.
type EC2 interface {
	DescribeSubnets(context.Context, *ec2.DescribeSubnetsInput, ...func(*ec2.Options)) (*ec2.DescribeSubnetsOutput, error)
	DescribeSecurityGroups(context.Context, *ec2.DescribeSecurityGroupsInput, ...func(*ec2.Options)) (*ec2.DescribeSecurityGroupsOutput, error)
	DescribeInstanceTypes(context.Context, *ec2.DescribeInstanceTypesInput, ...func(*ec2.Options)) (*ec2.DescribeInstanceTypesOutput, error)
	DescribeLaunchTemplateVersions(context.Context, *ec2.DescribeLaunchTemplateVersionsInput, ...func(*ec2.Options)) (*ec2.DescribeLaunchTemplateVersionsOutput, error)
}

// observe reads what the plan must know of AWS, and no more: a pass that finds nothing to do pays for it each time.
func (v *Validate) observe(ctx context.Context, config params.Config, records plan.Records) (plan.Facts, error) {
	facts := plan.Facts{Records: records, Deployment: v.deployment}
	if !config.AuthMode && !config.Enabled || records.Goal == "" && config.HasRefused("cluster_name") {
		return facts, nil
	}
	cluster, err := v.cluster(ctx, config.ClusterName)
	if err != nil {
		return facts, err
	}
	if cluster == nil {
		return facts, v.lost(ctx, config, &facts)
	}
	facts.Cluster = cluster
	err = together(ctx,
		func(ctx context.Context) (err error) {
			facts.Records.ClusterLock, err = v.store.ClusterLock(ctx, cluster.ARN)
			return err
		},
		func(ctx context.Context) (err error) {
			facts.NodeGroups, err = v.nodegroups(ctx, config.ClusterName)
			return err
		},
		func(ctx context.Context) (err error) {
			facts.Architectures, err = v.architectures(ctx, config)
			return err
		},
		func(ctx context.Context) error { return v.credentials(ctx, config, cluster.Cluster, records, &facts) },
		func(ctx context.Context) (err error) {
			if config.Enabled && !records.WasOn {
				facts.Unmanaged, err = v.foreign(ctx, config.Rack, cluster.ARN)
			}
			return err
		})
	if err != nil {
		return facts, err
	}
	known := facts // the following reads need the node groups, and only set what is not in known
	err = together(ctx,
		func(ctx context.Context) (err error) {
			facts.Records.Emptied, err = v.emptied(ctx, config, known)
			return err
		},
		func(ctx context.Context) (err error) {
			facts.Subnets, err = v.subnets(ctx, config, known)
			return err
		},
		func(ctx context.Context) (err error) {
			facts.SecurityGroups, err = v.groups(ctx, config, known)
			return err
		},
		func(ctx context.Context) (err error) {
			if config.Enabled {
				facts.SystemPolicies, err = v.systemPolicies(ctx, config, known)
			}
			return err
		})
	return facts, err
}

// together runs reads that do not depend on each other, and returns the first error. It limits the number of requests at a
// time, because AWS's rates are for all racks of an account.
func together(ctx context.Context, reads ...func(context.Context) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(5)
	for _, read := range reads {
		group.Go(func() error { return read(ctx) })
	}
	return group.Wait()
}

// credentials reads what decides between EKS Pod Identity and IRSA. IRSA needs the OIDC provider as long as it is used.
func (v *Validate) credentials(ctx context.Context, config params.Config, cluster plan.Cluster, records plan.Records, facts *plan.Facts) (err error) {
	if config.Enabled && records.Credentials == "" {
		if facts.PodIdentity, err = v.podIdentity(ctx, config.ClusterName); err != nil {
			return err
		}
	}
	if config.Enabled && records.Credentials != "podidentity" && !facts.PodIdentity {
		return v.oidcProvider(ctx, cluster, facts)
	}
	return nil
}

// lost notes that the rack's cluster is gone, if it is the one that EKS was asked for.
func (v *Validate) lost(ctx context.Context, config params.Config, facts *plan.Facts) error {
	if facts.Records.Goal == "" {
		return nil
	}
	last, err := v.store.Plan(ctx, config.Rack)
	if err == nil && last != nil && last.Cluster.Name == config.ClusterName {
		facts.Lost = &last.Cluster
	}
	return err
}

// cluster is nil where there is none of that name.
func (v *Validate) cluster(ctx context.Context, name string) (*plan.ClusterFacts, error) {
	out, err := v.eks.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: &name})
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cluster %s: describe: %w", name, err)
	}
	facts, err := observe.Cluster(out.Cluster)
	return &facts, err
}

// nodegroups are the cluster's managed node groups, by name.
func (v *Validate) nodegroups(ctx context.Context, cluster string) ([]plan.NodeGroup, error) {
	var all []string
	for pages := eks.NewListNodegroupsPaginator(v.eks, &eks.ListNodegroupsInput{ClusterName: &cluster}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("cluster %s: list node groups: %w", cluster, err)
		}
		all = append(all, page.Nodegroups...)
	}
	slices.Sort(all)
	described, reads := make([]*plan.NodeGroup, len(all)), make([]func(context.Context) error, len(all))
	for i, name := range all {
		reads[i] = func(ctx context.Context) (err error) {
			described[i], err = v.nodegroup(ctx, cluster, name)
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

// nodegroup is nil where the group has been deleted since the list.
func (v *Validate) nodegroup(ctx context.Context, cluster, name string) (*plan.NodeGroup, error) {
	out, err := v.eks.DescribeNodegroup(ctx, &eks.DescribeNodegroupInput{ClusterName: &cluster, NodegroupName: &name})
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("node group %s: describe: %w", name, err)
	}
	group := observe.NodeGroup(out.Nodegroup)
	if group.Gone() {
		return &group, nil // its launch template may be gone too
	}
	err = v.template(ctx, out.Nodegroup.LaunchTemplate, &group)
	return &group, err
}

// emptied are the sizes that build groups go back to although Karpenter is on: Cluster Autoscaler is told of them.
func (v *Validate) emptied(ctx context.Context, config params.Config, facts plan.Facts) (map[string]plan.Scaling, error) {
	if !config.Enabled || config.BuildNodes {
		return nil, nil
	}
	var sizes map[string]plan.Scaling
	for _, g := range facts.OfRole(config, plan.RoleBuild) {
		kept, ok, err := v.store.Get(ctx, config.Rack, outcome.SizeKey(g.Name))
		if err != nil {
			return nil, err
		}
		var size plan.Scaling
		if !ok {
			continue
		}
		if err := json.Unmarshal(kept, &size); err != nil {
			return nil, fmt.Errorf("node group %s: decode the size that it had: %w", g.Name, err)
		}
		if sizes == nil {
			sizes = map[string]plan.Scaling{}
		}
		sizes[g.Name] = size
	}
	return sizes, nil
}

// subnets reads the tags of the chosen subnets: those that the parameters name, else those of the node groups. It filters by
// id instead of asking for ids, because EC2 refuses the whole call for one that does not exist.
func (v *Validate) subnets(ctx context.Context, config params.Config, facts plan.Facts) (found []plan.Tagged, err error) {
	ids := slices.Clone(config.SubnetIDs)
	if len(ids) == 0 {
		for _, g := range facts.Present() {
			ids = append(ids, g.Subnets...)
		}
	}
	if ids = unique(ids); len(ids) == 0 {
		return nil, nil
	}
	pages := ec2.NewDescribeSubnetsPaginator(v.ec2, &ec2.DescribeSubnetsInput{Filters: []ec2types.Filter{{Name: new("subnet-id"), Values: ids}}})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("subnets %s: describe: %w", strings.Join(ids, ", "), err)
		}
		for _, s := range page.Subnets {
			found = append(found, plan.Tagged{ID: value(s.SubnetId), Zone: value(s.AvailabilityZone), Owner: value(s.OwnerId), Tags: tags(s.Tags)})
		}
	}
	slices.SortFunc(found, byID)
	return found, nil
}

// groups reads the tags of the chosen security groups: those that the parameter names, else those of the node groups and the
// cluster's own.
func (v *Validate) groups(ctx context.Context, config params.Config, facts plan.Facts) (found []plan.Tagged, err error) {
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
		if found, err = v.securityGroups(ctx, "group-id", ids...); err != nil {
			return nil, err
		}
	}
	if lost {
		// The groups of those nodes cannot be read any more: what has the tag by now keeps it.
		tagged, err := v.securityGroups(ctx, "tag:"+ownership.TagDiscovery, config.ClusterName)
		if err != nil {
			return nil, err
		}
		found = append(found, tagged...)
	}
	slices.SortFunc(found, byID)
	return slices.CompactFunc(found, func(a, b plan.Tagged) bool { return a.ID == b.ID }), nil
}

func byID(a, b plan.Tagged) int { return strings.Compare(a.ID, b.ID) }

// securityGroups are those that a filter of EC2 lets through.
func (v *Validate) securityGroups(ctx context.Context, filter string, values ...string) (found []plan.Tagged, err error) {
	pages := ec2.NewDescribeSecurityGroupsPaginator(v.ec2, &ec2.DescribeSecurityGroupsInput{Filters: []ec2types.Filter{{Name: &filter, Values: values}}})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("security groups %s: describe: %w", strings.Join(values, ", "), err)
		}
		for _, g := range page.SecurityGroups {
			found = append(found, plan.Tagged{ID: value(g.GroupId), Owner: value(g.OwnerId), Tags: tags(g.Tags)})
		}
	}
	return found, nil
}

// architectures asks EC2 about instance types that Karpenter's tables do not have. One that EC2 does not know either stays
// out, and counts by its name.
func (v *Validate) architectures(ctx context.Context, config params.Config) (map[string]string, error) {
	var found map[string]string
	for _, t := range slices.Concat(config.NodeTypes, config.BuildNodeTypes) {
		if params.KnownType(t) {
			continue
		}
		out, err := v.ec2.DescribeInstanceTypes(ctx, &ec2.DescribeInstanceTypesInput{Filters: []ec2types.Filter{{Name: new("instance-type"), Values: []string{t}}}})
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

// podIdentity tells whether the EKS Pod Identity agent is installed in the cluster.
func (v *Validate) podIdentity(ctx context.Context, cluster string) (bool, error) {
	out, err := v.eks.DescribeAddon(ctx, &eks.DescribeAddonInput{ClusterName: &cluster, AddonName: new("eks-pod-identity-agent")})
	if missing(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("cluster %s: describe add-on eks-pod-identity-agent: %w", cluster, err)
	}
	return plan.Installed(string(out.Addon.Status)), nil
}

func missing(err error) bool {
	var notFound *types.ResourceNotFoundException
	return errors.As(err, &notFound)
}

func unique(ids []string) []string {
	slices.Sort(ids)
	return slices.Compact(ids)
}

// value is what a pointer of the SDK points at, or the zero value.
func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
