package observe

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/sawhorse-io/sawhorse/internal/doctor"
	"github.com/sawhorse-io/sawhorse/internal/observe"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// EKS lists the EKS calls of an observation.
type EKS interface {
	DescribeCluster(context.Context, *eks.DescribeClusterInput, ...func(*eks.Options)) (*eks.DescribeClusterOutput, error)
	ListNodegroups(context.Context, *eks.ListNodegroupsInput, ...func(*eks.Options)) (*eks.ListNodegroupsOutput, error)
	DescribeNodegroup(context.Context, *eks.DescribeNodegroupInput, ...func(*eks.Options)) (*eks.DescribeNodegroupOutput, error)
	ListAddons(context.Context, *eks.ListAddonsInput, ...func(*eks.Options)) (*eks.ListAddonsOutput, error)
	DescribeAddon(context.Context, *eks.DescribeAddonInput, ...func(*eks.Options)) (*eks.DescribeAddonOutput, error)
	DescribeAddonVersions(context.Context, *eks.DescribeAddonVersionsInput, ...func(*eks.Options)) (*eks.DescribeAddonVersionsOutput, error)
	ListPodIdentityAssociations(context.Context, *eks.ListPodIdentityAssociationsInput,
		...func(*eks.Options)) (*eks.ListPodIdentityAssociationsOutput, error)
}

func (l *looker) cluster(ctx context.Context) error {
	name := l.o.Config.ClusterName
	out, err := l.EKS.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: &name})
	if errors.As(err, new(*types.ResourceNotFoundException)) {
		l.o.Missing = true
		return fmt.Errorf("there is no EKS cluster %q in this account and region", name)
	}
	if err != nil {
		return err
	}
	facts, err := observe.Cluster(out.Cluster)
	if err != nil {
		return err
	}
	found := &doctor.Cluster{ClusterFacts: facts}
	if v := out.Cluster.ResourcesVpcConfig; v != nil {
		found.VPC, found.PublicAPI = aws.ToString(v.VpcId), v.EndpointPublicAccess
	}
	l.o.Cluster = found
	return nil
}

func (l *looker) nodegroups(ctx context.Context) error {
	name := &l.o.Cluster.Name
	for pages := eks.NewListNodegroupsPaginator(l.EKS, &eks.ListNodegroupsInput{ClusterName: name}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, group := range page.Nodegroups {
			out, err := l.EKS.DescribeNodegroup(ctx, &eks.DescribeNodegroupInput{ClusterName: name, NodegroupName: &group})
			if err != nil {
				return err
			}
			l.o.NodeGroups = append(l.o.NodeGroups, observe.NodeGroup(out.Nodegroup))
		}
	}
	return nil
}

func (l *looker) addOns(ctx context.Context) error {
	name := &l.o.Cluster.Name
	for pages := eks.NewListAddonsPaginator(l.EKS, &eks.ListAddonsInput{ClusterName: name}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, addOn := range page.Addons {
			out, err := l.EKS.DescribeAddon(ctx, &eks.DescribeAddonInput{ClusterName: name, AddonName: &addOn})
			if err != nil {
				return err
			}
			a := doctor.AddOn{Name: addOn, Version: aws.ToString(out.Addon.AddonVersion), Status: string(out.Addon.Status)}
			if h := out.Addon.Health; h != nil {
				for _, issue := range h.Issues {
					a.Issues = append(a.Issues, aws.ToString(issue.Message))
				}
			}
			l.o.AddOns = append(l.o.AddOns, a)
		}
	}
	l.look(doctor.AddOnVersions, func() error { return l.addOnVersions(ctx) })
	return nil
}

// addOnVersions reads the versions that EKS lists for each of the cluster's add-ons. It asks for them one by one,
// because a list of all add-ons has thousands of versions.
func (l *looker) addOnVersions(ctx context.Context) error {
	for i := range l.o.AddOns {
		a := &l.o.AddOns[i]
		pages := eks.NewDescribeAddonVersionsPaginator(l.EKS, &eks.DescribeAddonVersionsInput{
			AddonName: &a.Name, KubernetesVersion: &l.o.Cluster.Version,
		})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return err
			}
			for _, info := range page.Addons {
				for _, v := range info.AddonVersions {
					a.Listed = append(a.Listed, aws.ToString(v.AddonVersion))
				}
			}
		}
	}
	return nil
}

func (l *looker) association(ctx context.Context) error {
	out, err := l.EKS.ListPodIdentityAssociations(ctx, &eks.ListPodIdentityAssociationsInput{
		ClusterName: &l.o.Cluster.Name, Namespace: aws.String(ownership.Namespace), ServiceAccount: aws.String(ownership.ServiceAccount),
	})
	if err != nil {
		return err
	}
	l.o.Association = slices.ContainsFunc(out.Associations, func(a types.PodIdentityAssociationSummary) bool {
		return aws.ToString(a.Namespace) == ownership.Namespace && aws.ToString(a.ServiceAccount) == ownership.ServiceAccount
	})
	return nil
}
