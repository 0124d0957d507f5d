package nodegroups

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// build scales the build groups to zero, or back to the size that the plan gives or, without one, to the recorded size.
func (n *Step) build(ctx context.Context, p *plan.Plan) (outcome.Progress, error) {
	var progress outcome.Progress
	if len(p.Nodegroups.Build) == 0 {
		return progress, nil
	}
	client, err := n.Connect(ctx, p.Cluster)
	if err != nil {
		return progress, err
	}
	waiting := ""
	for _, name := range p.Nodegroups.Build {
		group, err := n.group(ctx, p, name)
		if err != nil {
			return progress, err
		}
		if group == nil {
			continue
		}
		do := n.restore
		if p.Nodegroups.BuildEmpty {
			do = n.empty
		}
		done, err := do(ctx, p, client, group, &progress)
		if err != nil {
			return progress, err
		}
		if !done {
			waiting = name
		}
	}
	if waiting != "" && !progress.Unfinished {
		return progress.NotYet(poll, "EKS updates node group %s", waiting)
	}
	return progress, nil
}

// empty sets a group to min 0, desired 0 once no build runs on its nodes. It does not wait for builds: a later pass
// continues.
func (n *Step) empty(ctx context.Context, p *plan.Plan, client *k8s.Client, group *types.Nodegroup,
	progress *outcome.Progress) (bool, error) {
	name, live := *group.NodegroupName, size(group)
	if group.Status == types.NodegroupStatusUpdating {
		return false, nil
	}
	if live.Min == 0 && live.Desired == 0 {
		_, ours, err := n.Baselines.Get(ctx, p.Rack, outcome.BaselineSize(name))
		if err == nil && ours {
			err = n.arbiter().Holds(ctx, p.Rack, outcome.BaselineSize(name), zero)
		}
		return err == nil, err
	}
	ruling, err := n.arbiter().Rule(ctx, p.Rack, outcome.BaselineSize(name), zero)
	if err != nil {
		return false, err
	}
	if ruling.Contested() {
		progress.Contest("build_node_groups", ruling, "the size of node group "+name, "somebody whom EKS does not name", zero)
	}
	if !ruling.Write {
		return true, nil
	}
	if err := outcome.Record(ctx, n.Baselines.Keep, p.Rack, outcome.BaselineSize(name), live); err != nil {
		return false, err
	}
	if err := n.cordon(ctx, p, client, name, true, progress); err != nil {
		return false, err
	}
	busy, err := builds(ctx, client, name)
	if err != nil {
		return false, err
	}
	if len(busy) > 0 {
		progress.Unfinished = true
		progress.Warn("karpenter_enabled",
			"build node group %s still runs %s; its nodes take no new pods, and a later pass brings the group to zero", name,
			strings.Join(busy, ", "))
		return false, nil
	}
	changed, err := n.resize(ctx, p, name, plan.Scaling{Min: 0, Max: max(1, live.Max), Desired: 0}, progress)
	if err != nil || !changed {
		return false, err
	}
	return false, n.arbiter().Made(ctx, p.Rack, outcome.BaselineSize(name), zero, ruling)
}

// zero is the wanted size of an emptied group, for the arbiter and for messages.
const zero = "min 0, desired 0"

func (n *Step) arbiter() outcome.Arbiter {
	return outcome.Arbiter{Contests: n.Contests, Now: n.Now}
}

// restore scales an emptied group back. A group was emptied if it has a baseline. While Karpenter is on, the restore is
// reported as an incident: build_node_enabled was turned off, or an earlier version of Sawhorse emptied the group
// although it was off.
func (n *Step) restore(ctx context.Context, p *plan.Plan, client *k8s.Client, group *types.Nodegroup,
	progress *outcome.Progress) (bool, error) {
	name := *group.NodegroupName
	before, err := outcome.Recorded[plan.Scaling](ctx, n.Baselines, p.Rack, outcome.BaselineSize(name))
	if err != nil || before == nil {
		return err == nil, err
	}
	if err := n.arbiter().Withdraw(ctx, p.Rack, outcome.BaselineSize(name)); err != nil {
		return false, err
	}
	live := size(group)
	wanted := p.Nodegroups.Back(*before, live)
	if err := n.cordon(ctx, p, client, name, false, progress); err != nil {
		return false, err
	}
	if live != wanted {
		changed, err := n.resize(ctx, p, name, wanted, progress)
		if changed && p.Goal == plan.GoalKarpenter {
			progress.Happened("build_node_enabled",
				"Node group %s had been brought to zero. Without build_node_enabled=true Karpenter has no pool for builds, "+
					"so it is back at min %d, desired %d, max %d, and Cluster Autoscaler scales it; "+
					"write build_node_enabled=true if Karpenter is to launch nodes for builds.",
				name, wanted.Min, wanted.Desired, wanted.Max)
		}
		return false, err
	}
	if group.Status == types.NodegroupStatusUpdating {
		return false, nil
	}
	return true, n.Baselines.Forget(ctx, p.Rack, outcome.BaselineSize(name))
}

// resize asks EKS for a size. It returns false while another update of the group is under way.
func (n *Step) resize(ctx context.Context, p *plan.Plan, name string, to plan.Scaling, progress *outcome.Progress) (bool, error) {
	changed, err := n.update(ctx, p, name, &eks.UpdateNodegroupConfigInput{ScalingConfig: &types.NodegroupScalingConfig{
		MinSize: new(int32(to.Min)), MaxSize: new(int32(to.Max)), DesiredSize: new(int32(to.Desired)),
	}})
	if changed {
		progress.Changed(fmt.Sprintf("scaled to min %d, desired %d, max %d", to.Min, to.Desired, to.Max), "node group %s", name)
	}
	return changed, err
}

func size(group *types.Nodegroup) plan.Scaling {
	c := group.ScalingConfig
	if c == nil {
		return plan.Scaling{}
	}
	return plan.Scaling{Min: int(aws.ToInt32(c.MinSize)), Max: int(aws.ToInt32(c.MaxSize)), Desired: int(aws.ToInt32(c.DesiredSize))}
}

// cordon cordons a group's nodes, or uncordons those that Sawhorse cordoned. A node that somebody else has uncordoned
// loses Sawhorse's annotation, because whoever cordons it next means to keep it so.
func (n *Step) cordon(ctx context.Context, p *plan.Plan, client *k8s.Client, group string, cordoned bool,
	progress *outcome.Progress) error {
	nodes, err := client.List(ctx, k8s.Node, "", ownership.LabelNodeGroup+"="+group)
	if err != nil {
		return err
	}
	for i := range nodes {
		wanted := nodes[i].DeepCopy()
		unschedulable, _, _ := unstructured.NestedBool(wanted.Object, "spec", "unschedulable")
		ours := wanted.GetAnnotations()[ownership.TagRack] == p.Rack
		if cordoned && unschedulable || !cordoned && !ours {
			continue
		}
		owner, action := p.Rack, "cordoned"
		switch {
		case cordoned:
		case unschedulable:
			owner, action = "", "uncordoned"
		default:
			owner, action = "", "removed the annotation of"
		}
		k8s.SetAnnotation(wanted, ownership.TagRack, owner)
		if err := unstructured.SetNestedField(wanted.Object, cordoned, "spec", "unschedulable"); err != nil {
			return fmt.Errorf("%s: cordon: %w", k8s.Subject(wanted), err)
		}
		changed, err := client.Update(ctx, k8s.Node, &nodes[i], wanted)
		if err != nil {
			return err
		}
		if changed {
			progress.Changed(action, "%s", k8s.Subject(wanted))
		}
	}
	return nil
}

// builds returns the pods that would be lost with a group's nodes.
func builds(ctx context.Context, client *k8s.Client, group string) ([]string, error) {
	pods, err := podsOn(ctx, client, group)
	var busy []string
	for i := range pods {
		busy = append(busy, k8s.Subject(&pods[i]))
	}
	return busy, err
}

func ofDaemonSet(pod *unstructured.Unstructured) bool {
	return slices.ContainsFunc(pod.GetOwnerReferences(), func(owner metav1.OwnerReference) bool { return owner.Kind == "DaemonSet" })
}
