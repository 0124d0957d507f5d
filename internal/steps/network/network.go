// Package network puts Karpenter's discovery tag on a rack's subnets and security groups.
package network

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/resource"
)

// EC2 lists the EC2 calls of the step.
type EC2 interface {
	DescribeTags(context.Context, *ec2.DescribeTagsInput, ...func(*ec2.Options)) (*ec2.DescribeTagsOutput, error)
	CreateTags(context.Context, *ec2.CreateTagsInput, ...func(*ec2.Options)) (*ec2.CreateTagsOutput, error)
	DeleteTags(context.Context, *ec2.DeleteTagsInput, ...func(*ec2.Options)) (*ec2.DeleteTagsOutput, error)
}

// Step tags and untags subnets and security groups.
type Step struct {
	EC2 EC2
	// Baselines records which resources Sawhorse tagged. It removes the tag only from those.
	Baselines outcome.Recorder
	Written   resource.Records
	Now       func() time.Time
}

// Run tags the resources that the plan lists, and untags those that Sawhorse tagged earlier and the plan no longer
// lists.
func (n *Step) Run(ctx context.Context, p *plan.Plan, _ string) (outcome.Progress, error) {
	w, err := resource.Open(ctx, n.Written, p.Rack, "network", n.Now)
	if err != nil {
		return outcome.Progress{}, err
	}
	return w.End(ctx, n.bring(ctx, p, w))
}

func (n *Step) bring(ctx context.Context, p *plan.Plan, w *resource.Writer) error {
	wanted := slices.Concat(p.Network.Subnets, p.Network.SecurityGroups)
	live, err := n.tagged(ctx)
	if err != nil {
		return err
	}
	if err := free(p, live, wanted); err != nil {
		return err
	}
	for _, id := range wanted {
		err := w.Write(ctx, resource.Write{
			Aspect: aspect + id, Read: live[id], Value: p.Cluster.Name, Change: outcome.Change{Subject: id, Action: "tagged"},
			Do: func(ctx context.Context) error { return n.tag(ctx, p, id) },
		})
		if err != nil {
			return err
		}
	}
	for _, id := range surplus(live, w.Unseen(aspect), p.Cluster.Name, wanted) {
		if err := n.untag(ctx, p, id, w); err != nil {
			return err
		}
	}
	return nil
}

// aspect is the path of the tags, by resource, in the record of what was written.
const aspect = "tag/"

// free rejects resources that another cluster uses. It checks all of them before the first is tagged.
func free(p *plan.Plan, live map[string]string, wanted []string) error {
	var problems []params.Problem
	for _, id := range wanted {
		if cluster := live[id]; cluster != "" && cluster != p.Cluster.Name {
			problems = append(problems, params.Problem{Parameter: "karpenter_auth_mode", Message: fmt.Sprintf(
				"%s carries the tag %s=%s of another cluster; only one cluster can use it for Karpenter; "+
					"give cluster %s subnets and security groups of its own",
				id, ownership.TagDiscovery, cluster, p.Cluster.Name)})
		}
	}
	if len(problems) > 0 {
		return &outcome.Rejected{Problems: problems}
	}
	return nil
}

// tagged returns the values of the discovery tag by subnet and security group id, for the whole region.
func (n *Step) tagged(ctx context.Context) (map[string]string, error) {
	found := map[string]string{}
	pages := ec2.NewDescribeTagsPaginator(n.EC2, &ec2.DescribeTagsInput{Filters: []types.Filter{
		{Name: new("key"), Values: []string{ownership.TagDiscovery}},
		{Name: new("resource-type"), Values: []string{"subnet", "security-group"}},
	}})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("tag %s: describe: %w", ownership.TagDiscovery, err)
		}
		for _, t := range page.Tags {
			found[*t.ResourceId] = *t.Value
		}
	}
	return found, nil
}

// surplus returns the resources that carry the cluster's tag, or may carry it unseen, and are not wanted, sorted.
func surplus(live map[string]string, unseen []string, cluster string, wanted []string) []string {
	ids := slices.Clone(unseen)
	for id, value := range live {
		if value == cluster {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return slices.DeleteFunc(slices.Compact(ids), func(id string) bool { return slices.Contains(wanted, id) })
}

func discovery(cluster string) []types.Tag {
	return []types.Tag{{Key: new(ownership.TagDiscovery), Value: &cluster}}
}

func (n *Step) tag(ctx context.Context, p *plan.Plan, id string) error {
	if err := n.Baselines.RecordOnce(ctx, p.Rack, baseline(id), nil); err != nil {
		return err
	}
	_, err := n.EC2.CreateTags(ctx, &ec2.CreateTagsInput{Resources: []string{id}, Tags: discovery(p.Cluster.Name)})
	return resource.Wrap(err, "%s: tag", id)
}

// untag removes the tag from a resource if Sawhorse tagged it.
func (n *Step) untag(ctx context.Context, p *plan.Plan, id string, w *resource.Writer) error {
	_, ours, err := n.Baselines.Get(ctx, p.Rack, baseline(id))
	if err != nil || !ours {
		return err
	}
	return w.Write(ctx, resource.Write{
		Aspect: aspect + id, Read: p.Cluster.Name, Change: outcome.Change{Subject: id, Action: "untagged"},
		Do: func(ctx context.Context) error {
			_, err := n.EC2.DeleteTags(ctx, &ec2.DeleteTagsInput{Resources: []string{id}, Tags: discovery(p.Cluster.Name)})
			if err != nil {
				return fmt.Errorf("%s: untag: %w", id, err)
			}
			return n.Baselines.Forget(ctx, p.Rack, baseline(id))
		},
	})
}

func baseline(id string) string { return "tag/" + strings.ToLower(id) }
