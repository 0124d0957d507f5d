package nodegroups

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/sawhorse-io/sawhorse/internal/drain"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// retire drains and deletes the SPOT groups that have a copy, one after the other.
func (n *run) retire(ctx context.Context) error {
	if err := n.connect(ctx); err != nil {
		return err
	}
	for _, r := range n.plan.Nodegroups.Replaced {
		if err := n.replace(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// replace does the next thing towards a group's deletion. It returns an outcome.NotYet until the group is deleted.
func (n *run) replace(ctx context.Context, r plan.Replacement) error {
	old, err := n.group(ctx, r.Group)
	if err != nil {
		return err
	}
	if old == nil || old.CapacityType != types.CapacityTypesSpot { // deleted, or created again since with on-demand capacity
		return n.forget(ctx, r)
	}
	if old.Status == types.NodegroupStatusDeleting {
		return outcome.Wait(poll, "EKS deletes node group %s", r.Group)
	}
	// The copy was ready in the part "copy". It is checked again, because the drain cannot be undone.
	copied, err := n.group(ctx, r.Copy)
	if err != nil {
		return err
	}
	if copied == nil {
		return fmt.Errorf("node group %s: drain: its copy %s has been deleted; the next pass makes it again", r.Group, r.Copy)
	}
	waiting, err := n.made(ctx, r, copied)
	if err != nil {
		return err
	}
	if waiting != "" {
		return outcome.Wait(poll, "%s", waiting)
	}
	if old.Status == types.NodegroupStatusDeleteFailed {
		_, err := n.delete(ctx, r, nil) // once per pass
		return errors.Join(fmt.Errorf("node group %s: delete: EKS gave up: %s; correct that, the next pass goes on",
			r.Group, health(old)), err)
	}
	remaining, refused, err := n.drain(ctx, r)
	if err != nil {
		return err
	}
	if len(remaining) > 0 {
		over, err := n.over(ctx, r, old)
		if err != nil {
			return err
		}
		if !over {
			note := fmt.Sprintf("%d pods leave the nodes of node group %s: %s", len(remaining), r.Group, some(remaining))
			if refused != nil {
				note += fmt.Sprintf(" (%v)", refused)
			}
			return outcome.Wait(poll, "%s", note)
		}
	}
	if waiting, err = n.delete(ctx, r, remaining); err != nil {
		return err
	}
	return outcome.Wait(poll, "%s", waiting)
}

// drain cordons a group's nodes and evicts some of their pods with each call. remaining are the pods that have not left; refused is
// why one of them could not be evicted, beside its PodDisruptionBudget.
func (n *run) drain(ctx context.Context, r plan.Replacement) (remaining []string, refused, err error) {
	if err := n.cordon(ctx, r.Group, true); err != nil {
		return nil, nil, err
	}
	pods, err := n.podsOn(ctx, r.Group)
	if err != nil {
		return nil, nil, err
	}
	for i := range pods {
		remaining = append(remaining, k8s.Subject(&pods[i]))
	}
	evicted, refused := drain.Evict(ctx, n.client, pods)
	if evicted > 0 {
		n.progress.Changed(fmt.Sprintf("evicted %d pods", evicted), "node group %s", r.Group)
	}
	return remaining, refused, nil
}

// elapsed is for how long a group has been drained, and when that was last counted. Only the time between calls that follow each
// other counts, across passes: while the rack was paused, nobody evicted anything.
type elapsed struct {
	Time time.Duration `json:"time"`
	At   time.Time     `json:"at"`
}

const (
	// counting is how often the time is counted, gap what is no time between two calls any more.
	counting = 30 * time.Second
	gap      = 2 * time.Minute
)

// over reports whether the time of a group's pods is up.
func (n *run) over(ctx context.Context, r plan.Replacement, old *types.Nodegroup) (bool, error) {
	was, err := outcome.Recorded[elapsed](ctx, n.Checkpoints, n.plan.Rack, drained(r))
	if err != nil {
		return false, err
	}
	now := n.Now().UTC()
	if was == nil || old.CreatedAt != nil && was.At.Before(*old.CreatedAt) { // of an earlier group of the same name
		was = &elapsed{}
	}
	since := now.Sub(was.At)
	if since < counting {
		return was.Time+since >= n.Drain, nil
	}
	if since <= gap {
		was.Time += since
	}
	was.At = now
	return was.Time >= n.Drain, outcome.Record(ctx, n.Checkpoints.Replace, n.plan.Rack, drained(r), was)
}

// drained names the checkpoint. Earlier releases had another form of it, as drain/GROUP; each release begins anew where it finds none.
func drained(r plan.Replacement) string { return "drained/" + r.Group }

// forget deletes the record of a drain.
func (n *run) forget(ctx context.Context, r plan.Replacement) error {
	return outcome.ForgetIfRecorded(ctx, n.Checkpoints, n.plan.Rack, drained(r))
}

// delete asks EKS to delete a group with the pods that remain on its nodes, and returns what to wait for.
func (n *run) delete(ctx context.Context, r plan.Replacement, remaining []string) (string, error) {
	_, err := n.EKS.DeleteNodegroup(ctx, &eks.DeleteNodegroupInput{ClusterName: &n.plan.Cluster.Name, NodegroupName: &r.Group})
	switch {
	case errors.As(err, new(*types.ResourceNotFoundException)):
		return "node group " + r.Group + " has gone", nil
	case errors.As(err, new(*types.ResourceInUseException)):
		return "EKS updates node group " + r.Group, nil
	case err != nil:
		return "", fmt.Errorf("node group %s: delete: %w", r.Group, err)
	}
	n.progress.Changed("deleted, "+r.Copy+" has taken its place", "node group %s", r.Group)
	if len(remaining) > 0 {
		n.progress.Happened("system_node_groups",
			"%d pods did not leave the nodes of node group %s within %s: %s; "+
				"the group is deleted all the same, and EKS ends them after some minutes; "+
				"look at their PodDisruptionBudgets", len(remaining), r.Group, n.Drain, some(remaining))
	}
	return "EKS deletes node group " + r.Group, nil
}

// uncordonReplaced uncordons the nodes of SPOT groups that still exist, because Karpenter was turned off before they were deleted.
func (n *run) uncordonReplaced(ctx context.Context) error {
	if err := n.connect(ctx); err != nil {
		return err
	}
	for _, r := range n.plan.Nodegroups.Replaced {
		old, err := n.group(ctx, r.Group)
		if err != nil {
			return err
		}
		if old != nil && old.Status != types.NodegroupStatusDeleting {
			if err := n.cordon(ctx, r.Group, false); err != nil {
				return err
			}
		}
		if err := n.forget(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// some names the first of many elements and counts the others.
func some(all []string) string {
	const most = 5
	if len(all) <= most {
		return strings.Join(all, ", ")
	}
	return strings.Join(all[:most], ", ") + fmt.Sprintf(" and %d more", len(all)-most)
}
