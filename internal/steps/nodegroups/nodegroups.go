// Package nodegroups labels a rack's system node groups, replaces those with SPOT capacity, empties those that the rack names,
// and scales its build node groups to zero and back.
package nodegroups

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/resource"
	"github.com/sawhorse-io/sawhorse/internal/steps/updates"
)

// EKS lists the EKS calls of the step.
type EKS interface {
	DescribeNodegroup(context.Context, *eks.DescribeNodegroupInput, ...func(*eks.Options)) (*eks.DescribeNodegroupOutput, error)
	UpdateNodegroupConfig(context.Context, *eks.UpdateNodegroupConfigInput, ...func(*eks.Options)) (*eks.UpdateNodegroupConfigOutput, error)
	updates.EKS
	DescribeCluster(context.Context, *eks.DescribeClusterInput, ...func(*eks.Options)) (*eks.DescribeClusterOutput, error)
	CreateNodegroup(context.Context, *eks.CreateNodegroupInput, ...func(*eks.Options)) (*eks.CreateNodegroupOutput, error)
	DeleteNodegroup(context.Context, *eks.DeleteNodegroupInput, ...func(*eks.Options)) (*eks.DeleteNodegroupOutput, error)
}

// AutoScaling lists the calls of Auto Scaling by which a chosen node of a group ends.
type AutoScaling interface {
	DescribeAutoScalingInstances(context.Context, *autoscaling.DescribeAutoScalingInstancesInput, ...func(*autoscaling.Options)) (
		*autoscaling.DescribeAutoScalingInstancesOutput, error)
	TerminateInstanceInAutoScalingGroup(context.Context, *autoscaling.TerminateInstanceInAutoScalingGroupInput,
		...func(*autoscaling.Options)) (*autoscaling.TerminateInstanceInAutoScalingGroupOutput, error)
}

// Step changes the cluster's managed node groups.
type Step struct {
	EKS         EKS
	AutoScaling AutoScaling
	Connect     k8s.Connector
	Baselines   outcome.Recorder
	Checkpoints outcome.Recorder
	Contests    outcome.Recorder
	Written     resource.Records
	// Drain is how long pods have to leave the nodes of a replaced group. EKS gives them some minutes more.
	Drain time.Duration
	Now   func() time.Time
	// Placement runs the part that changes Deployments. Capacity runs the parts that look for capacity for the pods on
	// Karpenter's nodes.
	Placement, Capacity outcome.StepFunc
}

// poll is how long to wait for EKS before the next call.
const poll = 3 * time.Second

// Run does one part of the step.
func (n *Step) Run(ctx context.Context, p *plan.Plan, part string) (outcome.Progress, error) {
	w, err := resource.Open(ctx, n.Written, p.Rack, "nodegroups", n.Now)
	if err != nil {
		return outcome.Progress{}, err
	}
	run := &run{Step: n, plan: p, writer: w, progress: w.Progress}
	return w.End(ctx, k8s.Again(run.do(ctx, part), poll))
}

// run is one call of the step.
type run struct {
	*Step
	plan *plan.Plan
	// client is nil until a part has called connect.
	client   *k8s.Client
	writer   *resource.Writer
	progress *outcome.Progress // the writer's
}

func (n *run) do(ctx context.Context, part string) (err error) {
	switch part {
	case "labels":
		return n.labels(ctx)
	case "copy":
		return n.copies(ctx)
	case "build":
		return n.build(ctx)
	case "retire":
		return n.retire(ctx)
	case "keep":
		return n.uncordonReplaced(ctx)
	case "migrate":
		return n.migrate(ctx)
	case "placement":
		*n.progress, err = n.Placement(ctx, n.plan, part)
		return err
	case "fit", "capacity":
		*n.progress, err = n.Capacity(ctx, n.plan, part)
		return err
	default:
		return fmt.Errorf("step nodegroups has no part %q; deploy the stack again", part)
	}
}

func (n *run) connect(ctx context.Context) (err error) {
	n.client, err = n.Connect(ctx, n.plan.Cluster)
	return err
}

// labels sets the system label on the system groups. EKS copies it to their nodes.
func (n *run) labels(ctx context.Context) error {
	waiting := ""
	for _, name := range n.plan.Nodegroups.System {
		group, err := n.group(ctx, name)
		if err != nil {
			return err
		}
		if group == nil {
			continue // deleted since the plan was made: the next plan does not list it
		}
		if group.Labels[ownership.LabelSystemNode] == "true" {
			if last := n.last(name); group.Status == types.NodegroupStatusUpdating && last.Begun() {
				last.Continues()
				waiting = name
			} else { // an update of others, such as a new version of their nodes, may take hours
				last.Made()
			}
			continue
		}
		waiting = name
		if going, err := n.going(ctx, group); err != nil {
			return err
		} else if going {
			continue
		}
		changed, err := n.update(ctx, name, &eks.UpdateNodegroupConfigInput{
			Labels: &types.UpdateLabelsPayload{AddOrUpdateLabels: map[string]string{ownership.LabelSystemNode: "true"}},
		})
		if err != nil {
			return err
		}
		if changed {
			n.progress.Changed("labelled "+ownership.LabelSystemNode+"=true", "node group %s", name)
		}
	}
	if waiting != "" {
		return outcome.Wait(poll, "EKS updates node group %s", waiting)
	}
	return nil
}

// group returns a node group; nil if there is none of that name.
func (n *run) group(ctx context.Context, name string) (*types.Nodegroup, error) {
	out, err := n.EKS.DescribeNodegroup(ctx, &eks.DescribeNodegroupInput{ClusterName: &n.plan.Cluster.Name, NodegroupName: &name})
	if errors.As(err, new(*types.ResourceNotFoundException)) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("node group %s: describe: %w", name, err)
	}
	return out.Nodegroup, nil
}

// update asks EKS to change a group. It returns false while another update of the group is under way.
func (n *run) update(ctx context.Context, name string, input *eks.UpdateNodegroupConfigInput) (bool, error) {
	input.ClusterName, input.NodegroupName = &n.plan.Cluster.Name, &name
	out, err := n.EKS.UpdateNodegroupConfig(ctx, input)
	if errors.As(err, new(*types.ResourceInUseException)) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("node group %s: update: %w", name, err)
	}
	n.last(name).Began(out.Update)
	return true, nil
}

// last is the last update of a group that this step has begun.
func (n *run) last(group string) updates.Last {
	return updates.Last{EKS: n.EKS, Writer: n.writer, Cluster: n.plan.Cluster.Name, Group: group}
}

// going reports whether EKS is updating a group that is not as it is to be. It returns an error if the last update has failed: then
// the group has the size that EKS shows, and nobody has set it back.
func (n *run) going(ctx context.Context, group *types.Nodegroup) (bool, error) {
	name := *group.NodegroupName
	if group.Status == types.NodegroupStatusUpdating {
		n.last(name).Continues()
		return true, nil
	}
	words, err := n.last(name).Failed(ctx)
	if err != nil {
		return false, fmt.Errorf("node group %s: %w", name, err)
	}
	if words == "" {
		return false, nil
	}
	n.writer.Unmade(aspectSize + name)
	for _, setting := range []string{outcome.BaselineSize(name), outcome.BaselineMigrated(name)} {
		if err := n.arbiter().Withdraw(ctx, n.plan.Rack, setting); err != nil {
			return false, err
		}
	}
	return false, fmt.Errorf("node group %s: %s", name, words)
}
