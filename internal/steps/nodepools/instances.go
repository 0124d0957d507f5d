package nodepools

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
)

// EC2 lists the EC2 calls of a removal.
type EC2 interface {
	DescribeInstances(context.Context, *ec2.DescribeInstancesInput, ...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error)
	TerminateInstances(context.Context, *ec2.TerminateInstancesInput, ...func(*ec2.Options)) (*ec2.TerminateInstancesOutput, error)
}

// tagClaim names the NodeClaim for which an instance was launched. An instance has this tag once its node has joined.
const tagClaim = "karpenter.sh/nodeclaim"

// instance is an instance that has not ended.
type instance struct {
	id     string
	tags   map[string]string
	ending bool
}

// String returns the instance's id, pool and NodeClaim for messages.
func (i instance) String() string {
	text := i.id + " (pool " + i.tags[ownership.LabelPool]
	if claim := i.tags[tagClaim]; claim != "" {
		text += ", NodeClaim " + claim
	}
	return text + ")"
}

// existing returns the instances that match the filters and have not ended.
func (r *run) existing(ctx context.Context, filters ...types.Filter) ([]instance, error) {
	filters = append(filters, filter("instance-state-name", "pending", "running", "stopping", "stopped", "shutting-down"))
	var found []instance
	const most = 1000 // per page
	pages := ec2.NewDescribeInstancesPaginator(r.EC2, &ec2.DescribeInstancesInput{Filters: filters, MaxResults: new(int32(most))})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("instances of cluster %s: describe: %w", r.plan.Cluster.Name, err)
		}
		for _, reservation := range page.Reservations {
			for _, i := range reservation.Instances {
				one := instance{
					id: *i.InstanceId, tags: map[string]string{},
					ending: i.State != nil && i.State.Name == types.InstanceStateNameShuttingDown,
				}
				for _, tag := range i.Tags {
					one.tags[*tag.Key] = *tag.Value
				}
				found = append(found, one)
			}
		}
	}
	return found, nil
}

func filter(name string, values ...string) types.Filter {
	return types.Filter{Name: &name, Values: values}
}

// instances returns the instances that Karpenter launched for the rack's pools and that have not ended, by their tags.
// Nothing else is ever terminated, and the function's rights do not allow more.
func (r *run) instances(ctx context.Context) ([]instance, error) {
	found, err := r.existing(ctx, filter("tag:"+ownership.TagEKSCluster, r.plan.Cluster.Name), filter("tag-key", ownership.LabelPool))
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(found, func(i instance) bool { return !r.ours(i) }), nil
}

// ours reports whether an instance is tagged for this cluster and for a pool of the rack. If no record of the pool is
// left, the instance is known by the name that the EC2NodeClass gave it.
func (r *run) ours(i instance) bool {
	cluster, pool := r.plan.Cluster.Name, i.tags[ownership.LabelPool]
	if pool == "" || i.tags[ownership.TagEKSCluster] != cluster || i.tags[ownership.TagClusterOwned+cluster] != "owned" {
		return false
	}
	if slices.Contains(r.set.Unmanaged, pool) {
		return false
	}
	return r.set.Has(pool) || slices.Contains(r.begun.Pools, pool) || i.tags[ownership.TagName] == ownership.NodeName(r.plan.Rack, pool)
}

// running returns which of the instances have not ended, whatever their tags.
func (r *run) running(ctx context.Context, ids []string) (map[string]bool, error) {
	const most = 200 // values per filter
	running := map[string]bool{}
	for some := range slices.Chunk(ids, most) {
		// A filter instead of InstanceIds: EC2 refuses the whole call if it no longer knows one of the ids.
		found, err := r.existing(ctx, filter("instance-id", some...))
		if err != nil {
			return nil, err
		}
		for _, i := range found {
			running[i.id] = true
		}
	}
	return running, nil
}

// terminate terminates instances. EC2 terminates all instances of a call or none, so after a refusal each instance is
// tried on its own.
func (r *run) terminate(ctx context.Context, list []instance) error {
	const most = 100
	for some := range slices.Chunk(list, most) {
		err := r.terminateTogether(ctx, some)
		if !refusedOne(err) {
			if err != nil {
				return err
			}
			continue
		}
		var refusals []error
		for _, one := range some {
			if err := r.terminateTogether(ctx, []instance{one}); err != nil && !gone(err) {
				refusals = append(refusals, err)
			}
		}
		if len(refusals) > 0 {
			return refusals[0] // the others come up again in the next call
		}
	}
	return nil
}

func (r *run) terminateTogether(ctx context.Context, list []instance) error {
	var ids []string
	for _, i := range list {
		ids = append(ids, i.id)
	}
	_, err := r.EC2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: ids})
	if err != nil {
		hint := ""
		if len(ids) == 1 && outcome.Code(err) == "OperationNotPermitted" {
			hint = fmt.Sprintf(" (run `aws ec2 modify-instance-attribute --instance-id %s --no-disable-api-termination`, "+
				"and the next pass goes on)", ids[0])
		}
		return fmt.Errorf("instances %s: terminate%s: %w", strings.Join(ids, ", "), hint, err)
	}
	for _, i := range list {
		r.progress.Changed("terminated", "instance %s", i)
	}
	return nil
}

// refusedOne reports whether EC2 refused a call because of one of its instances.
func refusedOne(err error) bool {
	refusals := []string{"OperationNotPermitted", "UnauthorizedOperation", "IncorrectInstanceState"}
	return gone(err) || slices.Contains(refusals, outcome.Code(err))
}

func gone(err error) bool { return outcome.Code(err) == "InvalidInstanceID.NotFound" }
