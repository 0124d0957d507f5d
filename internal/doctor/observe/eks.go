package observe

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"

	"github.com/sawhorse-io/sawhorse/internal/doctor"
	"github.com/sawhorse-io/sawhorse/internal/observe"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

func (l *looker) cluster(ctx context.Context) error {
	name := l.o.Config.ClusterName
	described, err := l.observer().Cluster(ctx, name)
	if err != nil {
		return err
	}
	if described == nil {
		l.o.Missing = true
		return fmt.Errorf("there is no EKS cluster %q in this account and region", name)
	}
	facts, err := observe.ClusterFacts(described)
	if err != nil {
		return err
	}
	found := &doctor.Cluster{ClusterFacts: facts}
	if v := described.ResourcesVpcConfig; v != nil {
		found.PublicAPI = v.EndpointPublicAccess
	}
	l.o.Cluster = found
	return nil
}

// nodegroups reads the node groups, and then the subnets and security groups of the nodes, which follow from them.
func (l *looker) nodegroups(ctx context.Context) (err error) {
	l.o.NodeGroups, err = l.observer().NodeGroups(ctx, l.o.Cluster.Name)
	if err != nil {
		return err
	}
	l.network(ctx)
	return nil
}

func (l *looker) addOns(ctx context.Context) error {
	cluster := &l.o.Cluster.Name
	var names []string
	pages := eks.NewListAddonsPaginator(l.EKS, &eks.ListAddonsInput{ClusterName: cluster})
	if err := observe.EachPage(ctx, pages, func(page *eks.ListAddonsOutput) { names = append(names, page.Addons...) }); err != nil {
		return err
	}
	for _, name := range names {
		addOn, err := l.observer().AddOn(ctx, *cluster, name)
		if err != nil {
			return err
		}
		if addOn == nil {
			continue // deleted after it was listed
		}
		a := doctor.AddOn{Name: name, Version: aws.ToString(addOn.AddonVersion), Status: string(addOn.Status)}
		if h := addOn.Health; h != nil {
			for _, issue := range h.Issues {
				a.Issues = append(a.Issues, aws.ToString(issue.Message))
			}
		}
		l.o.AddOns = append(l.o.AddOns, a)
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
		if err := observe.EachPage(ctx, pages, func(page *eks.DescribeAddonVersionsOutput) {
			for _, info := range page.Addons {
				for _, v := range info.AddonVersions {
					a.Listed = append(a.Listed, aws.ToString(v.AddonVersion))
				}
			}
		}); err != nil {
			return err
		}
	}
	return nil
}

func (l *looker) association(ctx context.Context) (err error) {
	l.o.Association, err = observe.Associated(ctx, l.EKS, l.o.Cluster.Name, ownership.ServiceAccount)
	return err
}
