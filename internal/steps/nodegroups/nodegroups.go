// Package nodegroups labels a rack's system node groups, replaces those with SPOT capacity, and scales its build node
// groups to zero and back.
package nodegroups

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// EKS lists the EKS calls of the step.
type EKS interface {
	DescribeNodegroup(context.Context, *eks.DescribeNodegroupInput, ...func(*eks.Options)) (*eks.DescribeNodegroupOutput, error)
	UpdateNodegroupConfig(context.Context, *eks.UpdateNodegroupConfigInput, ...func(*eks.Options)) (*eks.UpdateNodegroupConfigOutput, error)
	DescribeCluster(context.Context, *eks.DescribeClusterInput, ...func(*eks.Options)) (*eks.DescribeClusterOutput, error)
	CreateNodegroup(context.Context, *eks.CreateNodegroupInput, ...func(*eks.Options)) (*eks.CreateNodegroupOutput, error)
	DeleteNodegroup(context.Context, *eks.DeleteNodegroupInput, ...func(*eks.Options)) (*eks.DeleteNodegroupOutput, error)
}

// Step changes the cluster's managed node groups.
type Step struct {
	EKS         EKS
	Connect     k8s.Connector
	Baselines   outcome.Recorder
	Checkpoints outcome.Recorder
	Contests    outcome.Contests
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
	progress, err := n.do(ctx, p, part)
	if k8s.IsConflict(err) {
		// Another writer, such as a kubelet, wrote the object between our read and our write.
		return progress.NotYet(poll, "%v", err)
	}
	return progress, err
}

func (n *Step) do(ctx context.Context, p *plan.Plan, part string) (outcome.Progress, error) {
	switch part {
	case "labels":
		return n.labels(ctx, p)
	case "copy":
		return n.copies(ctx, p)
	case "build":
		return n.build(ctx, p)
	case "retire":
		return n.retire(ctx, p)
	case "keep":
		return n.keep(ctx, p)
	case "placement":
		return n.Placement(ctx, p, part)
	case "fit", "capacity":
		return n.Capacity(ctx, p, part)
	default:
		return outcome.Progress{}, fmt.Errorf("step nodegroups has no part %q; deploy the stack again", part)
	}
}

// labels sets the system label on the system groups. EKS copies it to their nodes.
func (n *Step) labels(ctx context.Context, p *plan.Plan) (outcome.Progress, error) {
	var progress outcome.Progress
	waiting := ""
	for _, name := range p.Nodegroups.System {
		group, err := n.group(ctx, p, name)
		if err != nil {
			return progress, err
		}
		if group == nil {
			continue // deleted since the plan was made: the next plan does not list it
		}
		if group.Labels[ownership.LabelSystemNode] == "true" {
			if group.Status == types.NodegroupStatusUpdating {
				waiting = name
			}
			continue
		}
		waiting = name
		changed, err := n.update(ctx, p, name, &eks.UpdateNodegroupConfigInput{
			Labels: &types.UpdateLabelsPayload{AddOrUpdateLabels: map[string]string{ownership.LabelSystemNode: "true"}},
		})
		if err != nil {
			return progress, err
		}
		if changed {
			progress.Changed("labelled "+ownership.LabelSystemNode+"=true", "node group %s", name)
		}
	}
	if waiting != "" {
		return progress.NotYet(poll, "EKS updates node group %s", waiting)
	}
	return progress, nil
}

// group returns a node group; nil if there is none of that name.
func (n *Step) group(ctx context.Context, p *plan.Plan, name string) (*types.Nodegroup, error) {
	out, err := n.EKS.DescribeNodegroup(ctx, &eks.DescribeNodegroupInput{ClusterName: &p.Cluster.Name, NodegroupName: &name})
	if errors.As(err, new(*types.ResourceNotFoundException)) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("node group %s: describe: %w", name, err)
	}
	return out.Nodegroup, nil
}

// update asks EKS to change a group. It returns false while another update of the group is under way.
func (n *Step) update(ctx context.Context, p *plan.Plan, name string, input *eks.UpdateNodegroupConfigInput) (bool, error) {
	input.ClusterName, input.NodegroupName = &p.Cluster.Name, &name
	_, err := n.EKS.UpdateNodegroupConfig(ctx, input)
	if errors.As(err, new(*types.ResourceInUseException)) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("node group %s: update: %w", name, err)
	}
	return true, nil
}
