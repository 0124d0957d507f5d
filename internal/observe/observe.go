// Package observe reads AWS and a rack's records into the facts that plans are made from. Passes, audits and doctor use
// it, so that they see the same. It writes nothing.
package observe

import (
	"context"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// Observer reads facts.
type Observer struct {
	EKS EKS
	EC2 EC2
	IAM IAM
	SQS SQS
	// SSM has AWS's public parameters.
	SSM     SSM
	Rules   Rules
	Records Records
	// Deployment is what the deployment allows racks to do.
	Deployment plan.Deployment
	// Kubernetes is a version to which the cluster is to be upgraded, for which AMIs are looked up too; empty for none.
	Kubernetes string
	Now        func() time.Time
}

// Records is the part of the store that an observation reads.
type Records interface {
	// ClusterLock returns the rack that a cluster belongs to, or "".
	ClusterLock(ctx context.Context, clusterARN string) (string, error)
	// Plan returns the plan in force, or nil.
	Plan(ctx context.Context, rack string) (*plan.Plan, error)
	// Baselines returns the recorder of the state before Sawhorse's changes.
	Baselines() outcome.Recorder
}

// Facts returns the facts that the plan of a rack needs. It reads nothing else, because a pass that finds nothing to do
// makes the same calls each time. Of a cluster whose owner has not let the rack in it reads nothing but that.
func (o *Observer) Facts(ctx context.Context, config params.Config, records plan.Records) (plan.Facts, error) {
	facts := plan.Facts{Records: records, Deployment: o.Deployment}
	if !config.AuthMode && !config.Enabled || records.Goal == "" && config.HasRefused("cluster_name") {
		return facts, nil
	}
	cluster, err := o.cluster(ctx, config.ClusterName)
	if err != nil {
		return facts, err
	}
	if cluster == nil {
		return facts, o.lost(ctx, config, &facts)
	}
	facts.Cluster = cluster
	if !facts.Authorized(config.Rack) {
		facts.Cluster = cluster.Restricted()
		return facts, nil
	}
	if facts.NodeGroups, err = o.NodeGroups(ctx, config.ClusterName); err != nil {
		return facts, err
	}
	known := facts // the reads need the cluster and its node groups, and each sets what is not in known
	err = together(ctx, slices.Concat(o.recordReads(config, known, &facts), o.networkReads(config, known, &facts),
		o.launchReads(config, &facts), o.imageReads(config, known, &facts), o.identityReads(config, known, &facts))...)
	return facts, err
}

// read reads some facts, and sets them.
type read = func(context.Context) error

// recordReads are of the rack's records.
func (o *Observer) recordReads(config params.Config, known plan.Facts, facts *plan.Facts) []read {
	return []read{
		func(ctx context.Context) (err error) {
			facts.Records.ClusterLock, err = o.Records.ClusterLock(ctx, known.Cluster.ARN)
			return err
		},
		func(ctx context.Context) (err error) {
			facts.Records.Emptied, err = o.emptied(ctx, config, known)
			return err
		},
	}
}

// networkReads are of the VPC.
func (o *Observer) networkReads(config params.Config, known plan.Facts, facts *plan.Facts) []read {
	return []read{
		func(ctx context.Context) error {
			subnets, err := o.Subnets(ctx, config, known)
			for _, s := range subnets {
				facts.Subnets = append(facts.Subnets, Subnet(s))
			}
			return err
		},
		func(ctx context.Context) (err error) {
			facts.SecurityGroups, err = o.SecurityGroups(ctx, config, known)
			return err
		},
	}
}

// launchReads are of what pools name to launch their instances, besides images.
func (o *Observer) launchReads(config params.Config, facts *plan.Facts) []read {
	return []read{
		func(ctx context.Context) (err error) {
			facts.Architectures, err = o.architectures(ctx, config)
			return err
		},
		func(ctx context.Context) (err error) {
			facts.Offered, err = o.offered(ctx, config)
			return err
		},
		func(ctx context.Context) (err error) {
			facts.Reservations, err = o.reservations(ctx, config)
			return err
		},
		func(ctx context.Context) (err error) {
			facts.PlacementGroups, err = o.placementGroups(ctx, config)
			return err
		},
	}
}

// imageReads are of AMIs.
func (o *Observer) imageReads(config params.Config, known plan.Facts, facts *plan.Facts) []read {
	kubernetes := known.Cluster.Version
	return []read{
		func(ctx context.Context) (err error) {
			facts.Images, err = o.images(ctx, config)
			return err
		},
		func(ctx context.Context) (err error) {
			if err = o.aged(ctx, config, kubernetes, facts); err != nil {
				return err
			}
			if facts.AliasImages, err = o.aliasImages(ctx, config.Aliases(), kubernetes, o.Kubernetes); err != nil || facts.Aged == nil {
				return err
			}
			// Of another version of Kubernetes, another release is the one of that age.
			releases, err := o.aliasImages(ctx, slices.Collect(maps.Values(facts.Aged)), kubernetes)
			if releases != nil {
				maps.Copy(releases, facts.AliasImages)
				facts.AliasImages = releases
			}
			return err
		},
	}
}

// identityReads are of credentials and roles, and of what has a name that Sawhorse uses.
func (o *Observer) identityReads(config params.Config, known plan.Facts, facts *plan.Facts) []read {
	return []read{
		func(ctx context.Context) error {
			return o.credentials(ctx, config, known.Cluster.Cluster, known.Records, facts)
		},
		func(ctx context.Context) (err error) {
			facts.NoSpotRole, err = o.noSpotRole(ctx, config)
			return err
		},
		func(ctx context.Context) (err error) {
			if config.Enabled {
				facts.SystemPolicies, err = o.systemPolicies(ctx, config, known)
			}
			return err
		},
		func(ctx context.Context) (err error) {
			// Longer names than a rack's may be are no names of roles, for which IAM would refuse the call.
			if config.Enabled && !known.Records.WasOn && params.RackName(config.Rack, true) == nil {
				facts.Unmanaged, err = o.unmanaged(ctx, config, known.Cluster.ARN)
			}
			return err
		},
	}
}

// cluster returns the cluster, or nil if there is none of that name.
func (o *Observer) cluster(ctx context.Context, name string) (*plan.ClusterFacts, error) {
	described, err := o.Cluster(ctx, name)
	if err != nil || described == nil {
		return nil, err
	}
	cluster, err := ClusterFacts(described)
	return &cluster, err
}

// together runs reads that do not depend on each other, and returns the first error. It limits the number of concurrent
// requests, because AWS limits the rate for all racks of an account together.
func together(ctx context.Context, reads ...read) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(5)
	for _, read := range reads {
		group.Go(func() error { return read(ctx) })
	}
	return group.Wait()
}

// lost sets facts.Lost if the cluster that EKS does not have is the one in the rack's records.
func (o *Observer) lost(ctx context.Context, config params.Config, facts *plan.Facts) error {
	if facts.Records.Goal == "" {
		return nil
	}
	last, err := o.Records.Plan(ctx, config.Rack)
	if err != nil || last == nil || last.Cluster.Name != config.ClusterName {
		return err
	}
	facts.Lost = &last.Cluster
	facts.Records.ClusterLock, err = o.Records.ClusterLock(ctx, last.Cluster.ARN)
	return err
}

// emptied returns the sizes to which groups that were emptied as build groups return while Karpenter is on. The plan needs them for Cluster
// Autoscaler.
func (o *Observer) emptied(ctx context.Context, config params.Config, facts plan.Facts) (map[string]plan.Scaling, error) {
	if !config.Enabled {
		return nil, nil
	}
	groups := facts.OfRole(config, plan.RoleAdditional)
	if !config.BuildNodes {
		groups = append(groups, facts.OfRole(config, plan.RoleBuild)...)
	}
	var sizes map[string]plan.Scaling
	for _, g := range groups {
		record, err := outcome.Recorded[outcome.Emptied](ctx, o.Records.Baselines(), config.Rack, outcome.BaselineSize(g.Name))
		if err != nil {
			return nil, err
		}
		size := record.Before(g.Created)
		if size == nil {
			continue
		}
		if sizes == nil {
			sizes = map[string]plan.Scaling{}
		}
		sizes[g.Name] = *size
	}
	return sizes, nil
}

// EachPage calls do with each page of a list.
func EachPage[Page, Options any](ctx context.Context, pages interface {
	HasMorePages() bool
	NextPage(context.Context, ...func(*Options)) (*Page, error)
}, do func(*Page)) error {
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		do(page)
	}
	return nil
}

func unique(ids []string) []string {
	slices.Sort(ids)
	return slices.Compact(ids)
}
