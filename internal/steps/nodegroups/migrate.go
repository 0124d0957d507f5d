package nodegroups

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	scaling "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sawhorse-io/sawhorse/internal/drain"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// migrate takes one step towards the end of the nodes of the groups that are emptied: it ends a node that is empty, and begins with
// the next one. It waits for nothing, a later pass goes on. Once Karpenter is off, it brings the groups' sizes back.
func (n *run) migrate(ctx context.Context) error {
	if err := n.connect(ctx); err != nil {
		return err
	}
	for range 2 {
		view, err := drain.ReadView(ctx, n.client, n.plan.Nodegroups.Migration, n.Now())
		if err != nil {
			return err
		}
		if err := n.release(ctx, view.ToRelease); err != nil {
			return err
		}
		if n.plan.Goal != plan.GoalKarpenter {
			return n.unmigrate(ctx)
		}
		if view.Node == nil || n.plan.NodePools.Frozen || n.plan.Nodegroups.Migration.BlockedAt(n.Now()) {
			return nil
		}
		n.progress.Unfinished = true
		if ended, err := n.advance(ctx, view); err != nil || !ended {
			return err
		}
	}
	return nil
}

// release uncordons nodes that are not to be emptied any more.
func (n *run) release(ctx context.Context, nodes []unstructured.Unstructured) error {
	for i := range nodes {
		if err := n.cordonNode(ctx, &nodes[i], false, map[string]string{ownership.AnnotationMigrating: ""}); err != nil {
			return err
		}
	}
	return nil
}

// advance goes on with a node, and reports whether it has ended it.
func (n *run) advance(ctx context.Context, view drain.View) (ended bool, err error) {
	group, err := n.group(ctx, view.Group())
	if err != nil || group == nil {
		return false, err
	}
	may, now, err := n.unbound(ctx, group, view)
	if err != nil {
		return false, err
	}
	if !may { // no node stays cordoned that cannot end
		return false, n.release(ctx, []unstructured.Unstructured{*view.Node})
	}
	if err := n.cordonNode(ctx, view.Node, true, map[string]string{ownership.AnnotationMigrating: view.Mark}); err != nil {
		return false, err
	}
	switch {
	case view.Empty && !now:
		return false, nil
	case view.Empty:
		return n.terminate(ctx, group, view.Node)
	}
	evicted, refused := drain.Evict(ctx, n.client, view.Evict)
	if evicted > 0 {
		n.progress.Changed(fmt.Sprintf("evicted %d pods", evicted), "Node/%s", view.Node.GetName())
	}
	if drain.Refused(refused) { // it holds up the migration, and no pass
		n.progress.Warn(params.ParamMigrate, "Node/%s is not emptied: %v", view.Node.GetName(), refused)
		return false, nil
	}
	return false, refused
}

// unbound takes a group's minimum away, which would bring each ended node back. It reports whether the group may shrink, and
// whether it can now: EKS takes a while. Others set the size back by the minimum, or by nodes that the group gets again.
func (n *run) unbound(ctx context.Context, group *types.Nodegroup, view drain.View) (may, now bool, err error) {
	name, live := *group.NodegroupName, size(group)
	none := plan.Scaling{Min: 0, Max: max(1, live.Max), Desired: live.Desired}
	key := outcome.BaselineMigrated(name)
	if settled, err := n.settled(ctx, group, none); err != nil || !settled {
		return true, false, err
	}
	if _, err := n.before(ctx, key, group); err != nil {
		return false, false, err
	}
	if err := n.record(ctx, key, group); err != nil {
		return false, false, err
	}
	contest, err := outcome.ReadContest(ctx, n.Contests, n.plan.Rack, key)
	if err != nil {
		return false, false, err
	}
	grown := !contest.Written.IsZero() && view.Node.GetCreationTimestamp().After(contest.Written.Add(joining))
	if live.Min == 0 && !grown {
		return true, true, n.arbiter().Holds(ctx, n.plan.Rack, key, unboundSize)
	}
	ruling, err := n.arbiter().Rule(ctx, n.plan.Rack, key, unboundSize)
	if err != nil {
		return false, false, err
	}
	if ruling.Contested() {
		n.progress.Contest(params.ParamMigrate, ruling, "the size of node group "+name, "somebody whom EKS does not name", unboundSize)
	}
	if !ruling.Write {
		return false, false, nil
	}
	if live.Min != 0 {
		if changed, err := n.resize(ctx, group, none); err != nil || !changed {
			return true, false, err
		}
	}
	return true, live.Min == 0, n.arbiter().Made(ctx, n.plan.Rack, key, unboundSize, ruling)
}

// joining is within what time nodes join that a group was given together.
const joining = 15 * time.Minute

// unboundSize is the wanted size of a group that is emptied, for the arbiter and for messages.
const unboundSize = "min 0"

// terminate ends the instance of an empty node, and with it shrinks the group: a smaller desired size alone would have Auto Scaling
// choose a node. A call that was stopped may have asked for the end already, and to ask twice could take two nodes.
func (n *run) terminate(ctx context.Context, group *types.Nodegroup, node *unstructured.Unstructured) (bool, error) {
	provider, _, _ := unstructured.NestedString(node.Object, "spec", "providerID")
	instance := provider[strings.LastIndex(provider, "/")+1:]
	found, err := n.AutoScaling.DescribeAutoScalingInstances(ctx,
		&autoscaling.DescribeAutoScalingInstancesInput{InstanceIds: []string{instance}})
	if err != nil {
		return false, fmt.Errorf("%s: look up its instance %s in Auto Scaling: %w", k8s.Subject(node), instance, err)
	}
	if slices.ContainsFunc(found.AutoScalingInstances, inService) {
		_, err := n.AutoScaling.TerminateInstanceInAutoScalingGroup(ctx, &autoscaling.TerminateInstanceInAutoScalingGroupInput{
			InstanceId: &instance, ShouldDecrementDesiredCapacity: new(true),
		})
		if outcome.Code(err) == "ScalingActivityInProgress" {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("%s: end its instance %s, and take one from the size of node group %s: %w", k8s.Subject(node), instance,
				*group.NodegroupName, err)
		}
		n.progress.Changed("emptied and ended, with its place in node group "+*group.NodegroupName, "Node/%s", node.GetName())
	}
	return true, n.cordonNode(ctx, node, true, map[string]string{ownership.AnnotationMigrating: drain.Ended})
}

// inService reports whether an instance is not on its way out.
func inService(instance scaling.AutoScalingInstanceDetails) bool {
	return !strings.HasPrefix(*instance.LifecycleState, string(scaling.LifecycleStateTerminating)) &&
		*instance.LifecycleState != string(scaling.LifecycleStateTerminated)
}

// unmigrate brings the sizes of the emptied groups back, whatever their role is by now.
func (n *run) unmigrate(ctx context.Context) error {
	waiting := ""
	for _, name := range n.plan.Nodegroups.All() {
		key := outcome.BaselineMigrated(name)
		group, before, err := n.emptied(ctx, name, key)
		if err != nil {
			return err
		}
		if before == nil {
			continue
		}
		live := size(group)
		wanted := plan.Restored(*before, live)
		if err := n.arbiter().Withdraw(ctx, n.plan.Rack, key); err != nil {
			return err
		}
		settled, err := n.settled(ctx, group, wanted)
		if err != nil {
			return err
		}
		if live == wanted && settled {
			if err := n.Baselines.Forget(ctx, n.plan.Rack, key); err != nil {
				return err
			}
			continue
		}
		waiting = name
		if live != wanted && settled {
			if _, err := n.resize(ctx, group, wanted); err != nil {
				return err
			}
		}
	}
	if waiting != "" {
		return outcome.Wait(poll, "EKS updates node group %s", waiting)
	}
	return nil
}
