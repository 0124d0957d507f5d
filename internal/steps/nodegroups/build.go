package nodegroups

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/drain"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/resource"
)

// build scales the build groups to zero, or back to the size that the plan gives or, without one, to the recorded size. A group that
// is no build group any more has its size back too. Once Karpenter is off, it uncordons what Sawhorse has cordoned in any group.
func (n *run) build(ctx context.Context) error {
	if err := n.connect(ctx); err != nil {
		return err
	}
	waiting := ""
	for _, name := range n.plan.Nodegroups.All() {
		do := n.restore
		if n.plan.Nodegroups.BuildEmpty && slices.Contains(n.plan.Nodegroups.Build, name) {
			do = n.empty
		}
		done, err := do(ctx, name)
		if err != nil {
			return err
		}
		if !done {
			waiting = name
		}
	}
	if waiting != "" && !n.progress.Unfinished {
		return outcome.Wait(poll, "EKS updates node group %s", waiting)
	}
	return nil
}

// empty sets a group to min 0, desired 0 once no build runs on its nodes. It does not wait for builds: a later pass
// continues.
func (n *run) empty(ctx context.Context, name string) (bool, error) {
	group, err := n.group(ctx, name)
	if err != nil || group == nil {
		return err == nil, err
	}
	live := size(group)
	none := plan.Scaling{Min: 0, Max: max(1, live.Max), Desired: 0}
	if settled, err := n.settled(ctx, group, none); err != nil || !settled {
		return false, err
	}
	before, err := n.before(ctx, outcome.BaselineSize(name), group)
	if err != nil {
		return false, err
	}
	if live.Min == 0 && live.Desired == 0 {
		if before != nil {
			err = n.arbiter().Holds(ctx, n.plan.Rack, outcome.BaselineSize(name), zero)
		}
		return err == nil, err
	}
	ruling, err := n.arbiter().Rule(ctx, n.plan.Rack, outcome.BaselineSize(name), zero)
	if err != nil {
		return false, err
	}
	if ruling.Contested() {
		n.progress.Contest("build_node_groups", ruling, "the size of node group "+name, "somebody whom EKS does not name", zero)
	}
	if !ruling.Write {
		return true, nil
	}
	if err := n.record(ctx, outcome.BaselineSize(name), group); err != nil {
		return false, err
	}
	if err := n.cordon(ctx, name, true); err != nil {
		return false, err
	}
	pods, err := n.podsOn(ctx, name)
	if err != nil {
		return false, err
	}
	if len(pods) > 0 {
		var running []string
		for i := range pods {
			running = append(running, k8s.Subject(&pods[i]))
		}
		n.progress.Unfinished = true
		n.progress.Warn("karpenter_enabled",
			"build node group %s still runs %s; its nodes take no new pods, and a later pass brings the group to zero", name,
			strings.Join(running, ", "))
		return false, nil
	}
	changed, err := n.resize(ctx, group, none)
	if err != nil || !changed {
		return false, err
	}
	return false, n.arbiter().Made(ctx, n.plan.Rack, outcome.BaselineSize(name), zero, ruling)
}

// zero is the wanted size of an emptied group, for the arbiter and for messages.
const zero = "min 0, desired 0"

func (n *Step) arbiter() outcome.Arbiter { return outcome.Arbiter{Contests: n.Contests, Now: n.Now} }

// empties reports whether the plan empties a group's nodes, as one that is replaced or migrated.
func (n *run) empties(name string) bool {
	return slices.Contains(n.plan.Nodegroups.Migration.Groups, name) ||
		slices.ContainsFunc(n.plan.Nodegroups.Replaced, func(r plan.Replacement) bool { return r.Group == name })
}

// restore scales an emptied group back. A group was emptied if it has a baseline. While Karpenter is on, the restore is
// reported as an incident: build_node_enabled was turned off.
func (n *run) restore(ctx context.Context, name string) (bool, error) {
	group, before, err := n.emptied(ctx, name, outcome.BaselineSize(name))
	if err == nil && before == nil && (n.plan.Goal != plan.GoalKarpenter || !n.empties(name)) {
		err = n.cordon(ctx, name, false) // the group had another role when its nodes were cordoned
	}
	if err != nil || before == nil {
		return err == nil, err
	}
	live := size(group)
	wanted := n.plan.Nodegroups.Back(name, *before, live)
	if settled, err := n.settled(ctx, group, wanted); err != nil || !settled {
		return false, err
	}
	if err := n.arbiter().Withdraw(ctx, n.plan.Rack, outcome.BaselineSize(name)); err != nil {
		return false, err
	}
	if err := n.cordon(ctx, name, false); err != nil {
		return false, err
	}
	if live != wanted {
		changed, err := n.resize(ctx, group, wanted)
		switch {
		case !changed || n.plan.Goal != plan.GoalKarpenter:
		case !slices.Contains(n.plan.Nodegroups.Build, name):
			n.progress.Happened("build_node_groups", "Node group %s had been brought to zero as a build group. It is none any more, "+
				"so it is back at %s.", name, text(wanted))
		default:
			n.progress.Happened("build_node_enabled",
				"Node group %s had been brought to zero. Without build_node_enabled=true Karpenter has no pool for builds, "+
					"so it is back at %s, and Cluster Autoscaler scales it; "+
					"write build_node_enabled=true if Karpenter is to launch nodes for builds.", name, text(wanted))
		}
		return false, err
	}
	return true, n.Baselines.Forget(ctx, n.plan.Rack, outcome.BaselineSize(name))
}

// emptied returns a group that Sawhorse has emptied, with the size that it had; nil if it has not, or if the group is gone.
func (n *run) emptied(ctx context.Context, name, key string) (*types.Nodegroup, *plan.Scaling, error) {
	if _, is, err := n.Baselines.Get(ctx, n.plan.Rack, key); err != nil || !is { // most groups, which need not be described
		return nil, nil, err
	}
	group, err := n.group(ctx, name)
	if err != nil || group == nil {
		return nil, nil, err
	}
	before, err := n.before(ctx, key, group)
	return group, before, err
}

// before returns the size that a group had before Sawhorse emptied it; nil if it has not. What is recorded of an earlier group of the
// same name is forgotten.
func (n *run) before(ctx context.Context, key string, group *types.Nodegroup) (*plan.Scaling, error) {
	record, err := outcome.Recorded[outcome.Emptied](ctx, n.Baselines, n.plan.Rack, key)
	if err != nil || record == nil {
		return nil, err
	}
	if before := record.Before(created(group)); before != nil {
		return before, nil
	}
	if err := n.arbiter().Withdraw(ctx, n.plan.Rack, key); err != nil {
		return nil, err
	}
	return nil, n.Baselines.Forget(ctx, n.plan.Rack, key)
}

// record records the size of a group before it is emptied.
func (n *run) record(ctx context.Context, key string, group *types.Nodegroup) error {
	return outcome.Record(ctx, n.Baselines.RecordOnce, n.plan.Rack, key, outcome.Emptied{Scaling: size(group), Created: created(group)})
}

func created(group *types.Nodegroup) time.Time { return aws.ToTime(group.CreatedAt) }

// settled reports whether a group's size can be judged: EKS is not updating the group, and the size is not from before what was
// last asked of it. To judge by an older one would lose the size to return to, or take Sawhorse's own change for somebody else's.
func (n *run) settled(ctx context.Context, group *types.Nodegroup, wanted plan.Scaling) (bool, error) {
	if group.Status == types.NodegroupStatusUpdating || size(group) != wanted {
		if going, err := n.going(ctx, group); err != nil || going {
			return false, err
		}
	} else {
		n.last(*group.NodegroupName).Made()
	}
	outdated := n.writer.Outdated(aspectSize+*group.NodegroupName, text(size(group)), text(wanted))
	return !outdated, nil
}

// aspectSize is the path of the sizes, by group, in the record of what was written.
const aspectSize = "size/"

func text(s plan.Scaling) string {
	return fmt.Sprintf("min %d, desired %d, max %d", s.Min, s.Desired, s.Max)
}

// errUpdating means that another update of a group is under way.
var errUpdating = errors.New("the node group is updated")

// resize asks EKS for a size. It returns false while another update of the group is under way.
func (n *run) resize(ctx context.Context, group *types.Nodegroup, to plan.Scaling) (bool, error) {
	name := *group.NodegroupName
	err := n.writer.Write(ctx, resource.Write{
		Aspect: aspectSize + name, Read: text(size(group)), Value: text(to),
		Change: outcome.Change{Subject: "node group " + name, Action: "scaled to " + text(to)},
		Do: func(ctx context.Context) error {
			changed, err := n.update(ctx, name, &eks.UpdateNodegroupConfigInput{ScalingConfig: &types.NodegroupScalingConfig{
				MinSize: new(int32(to.Min)), MaxSize: new(int32(to.Max)), DesiredSize: new(int32(to.Desired)),
			}})
			if err == nil && !changed {
				return errUpdating
			}
			return err
		},
	})
	if errors.Is(err, errUpdating) {
		return false, nil
	}
	return err == nil, err
}

func size(group *types.Nodegroup) plan.Scaling {
	c := group.ScalingConfig
	if c == nil {
		return plan.Scaling{}
	}
	return plan.Scaling{Min: int(aws.ToInt32(c.MinSize)), Max: int(aws.ToInt32(c.MaxSize)), Desired: int(aws.ToInt32(c.DesiredSize))}
}

// cordon cordons a group's nodes, or uncordons those that Sawhorse cordoned and whose instances do not end.
func (n *run) cordon(ctx context.Context, group string, cordoned bool) error {
	nodes, err := drain.Nodes(ctx, n.client, group)
	if err != nil {
		return err
	}
	for i := range nodes {
		if cordoned && drain.Cordoned(&nodes[i]) || !cordoned && !drain.Returns(&nodes[i], n.plan.Rack) {
			continue
		}
		if err := n.cordonNode(ctx, &nodes[i], cordoned, nil); err != nil {
			return err
		}
	}
	return nil
}

func (n *run) cordonNode(ctx context.Context, node *unstructured.Unstructured, cordoned bool, annotations map[string]string) error {
	action, err := drain.Cordon(ctx, n.client, n.plan.Rack, node, cordoned, annotations)
	if action != "" {
		n.progress.Changed(action, "%s", k8s.Subject(node))
	}
	return err
}

// podsOn returns the pods that would be lost with a group's nodes.
func (n *run) podsOn(ctx context.Context, group string) ([]unstructured.Unstructured, error) {
	nodes, err := drain.Nodes(ctx, n.client, group)
	if err != nil {
		return nil, err
	}
	return drain.Pods(ctx, n.client, nodes)
}
