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
func (r *reader) facts(ctx context.Context) {
	name := r.o.Config.ClusterName
	r.read(doctor.Associations, func() (err error) {
		r.o.Association, err = observe.Associated(ctx, r.EKS, name, ownership.ServiceAccount)
		return err
	})
	facts, err := r.observer().Facts(ctx, r.o.Config, r.o.Records())
	r.o.Facts = facts
	switch {
	case facts.Cluster != nil:
		r.read(doctor.Facts, func() error { return err })
	case err != nil:
		r.read(doctor.TheCluster, func() error { return err })
	case r.o.Config.HasRefused("cluster_name"):
		r.o.Unseen[doctor.TheCluster] = "the parameter cluster_name has a problem, so it is not known which cluster to examine"
	default:
		r.o.Missing, r.o.Unseen[doctor.TheCluster] = true, fmt.Sprintf("there is no EKS cluster %q in this account and region", name)
	}
}

// addresses reads the free addresses of the subnets.
func (r *reader) addresses(ctx context.Context) error {
	subnets, err := r.observer().Subnets(ctx, r.o.Config, r.o.Facts)
	r.o.Free = map[string]int{}
	for _, s := range subnets {
		r.o.Free[aws.ToString(s.SubnetId)] = int(aws.ToInt32(s.AvailableIpAddressCount))
	}
	return err
}

func (r *reader) addOns(ctx context.Context) error {
	cluster := &r.o.Facts.Cluster.Name
	var names []string
	pages := eks.NewListAddonsPaginator(r.EKS, &eks.ListAddonsInput{ClusterName: cluster})
	if err := observe.EachPage(ctx, pages, func(page *eks.ListAddonsOutput) { names = append(names, page.Addons...) }); err != nil {
		return err
	}
	for _, name := range names {
		addOn, err := r.observer().AddOn(ctx, *cluster, name)
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
		r.o.AddOns = append(r.o.AddOns, a)
	}
	r.read(doctor.AddOnVersions, func() error { return r.addOnVersions(ctx) })
	return nil
}

// addOnVersions reads the versions that EKS lists for each of the cluster's add-ons. It asks for them one by one,
// because a list of all add-ons has thousands of versions.
func (r *reader) addOnVersions(ctx context.Context) error {
	for i := range r.o.AddOns {
		a := &r.o.AddOns[i]
		pages := eks.NewDescribeAddonVersionsPaginator(r.EKS, &eks.DescribeAddonVersionsInput{
			AddonName: &a.Name, KubernetesVersion: &r.o.Facts.Cluster.Version,
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
