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

// facts reads what a pass reads. The facts of a pass depend on whether Karpenter's credentials come by Pod Identity.
func (l *reader) facts(ctx context.Context) {
	name := l.o.Config.ClusterName
	l.read(doctor.Associations, func() (err error) {
		l.o.Association, err = observe.Associated(ctx, l.EKS, name, ownership.ServiceAccount)
		return err
	})
	facts, err := l.observer().Facts(ctx, l.o.Config, l.o.Records())
	l.o.Facts = facts
	switch {
	case facts.Cluster != nil:
		l.read(doctor.Facts, func() error { return err })
	case err != nil:
		l.read(doctor.TheCluster, func() error { return err })
	case l.o.Config.HasRefused("cluster_name"):
		l.o.Unseen[doctor.TheCluster] = "the parameter cluster_name has a problem, so it is not known which cluster to examine"
	default:
		l.o.Missing, l.o.Unseen[doctor.TheCluster] = true, fmt.Sprintf("there is no EKS cluster %q in this account and region", name)
	}
}

// addresses reads the free addresses of the subnets.
func (l *reader) addresses(ctx context.Context) error {
	subnets, err := l.observer().Subnets(ctx, l.o.Config, l.o.Facts)
	l.o.Free = map[string]int{}
	for _, s := range subnets {
		l.o.Free[aws.ToString(s.SubnetId)] = int(aws.ToInt32(s.AvailableIpAddressCount))
	}
	return err
}

func (l *reader) addOns(ctx context.Context) error {
	cluster := &l.o.Facts.Cluster.Name
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
	l.read(doctor.AddOnVersions, func() error { return l.addOnVersions(ctx) })
	return nil
}

// addOnVersions reads the versions that EKS lists for each of the cluster's add-ons. It asks for them one by one,
// because a list of all add-ons has thousands of versions.
func (l *reader) addOnVersions(ctx context.Context) error {
	for i := range l.o.AddOns {
		a := &l.o.AddOns[i]
		pages := eks.NewDescribeAddonVersionsPaginator(l.EKS, &eks.DescribeAddonVersionsInput{
			AddonName: &a.Name, KubernetesVersion: &l.o.Facts.Cluster.Version,
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
