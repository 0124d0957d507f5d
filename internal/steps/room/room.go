// Package room sees to it that the pods of Karpenter's nodes have somewhere to go before these nodes are drained. It has two parts:
// the first step of turning off asks whether there will be room, and refuses if not; a later one scales the system node groups
// up, within their maximum, and waits for their nodes.
package room

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/steps"
)

// EKS is what the step needs of EKS.
type EKS interface {
	DescribeNodegroup(context.Context, *eks.DescribeNodegroupInput, ...func(*eks.Options)) (*eks.DescribeNodegroupOutput, error)
	UpdateNodegroupConfig(context.Context, *eks.UpdateNodegroupConfigInput, ...func(*eks.Options)) (*eks.UpdateNodegroupConfigOutput, error)
}

const (
	// poll is how soon to look again at nodes that start, patience at a cluster in which somebody has to do something.
	poll, patience = 5 * time.Second, 30 * time.Second
	// sizesKey is under which the sizes are kept that the groups had, until there is room.
	sizesKey = "room"
)

// Room is the step.
type Room struct {
	EKS       EKS
	Dial      k8s.Connector
	Baselines steps.Baselines
	Now       func() time.Time
}

// Run does one part: fit, which only reads, or room.
func (r *Room) Run(ctx context.Context, p *plan.Plan, part string) (steps.Progress, error) {
	client, err := r.Dial(ctx, p.Cluster)
	if err != nil {
		return steps.Progress{}, err
	}
	run := &run{Room: r, plan: p, client: client}
	if part == "fit" {
		return run.ask(ctx)
	}
	return run.make(ctx)
}

// run is one call of the step.
type run struct {
	*Room
	plan   *plan.Plan
	client *k8s.Client
	// onward lets the removal go on without room: it was forced, or it has begun, and there is no way back.
	onward   bool
	progress steps.Progress
}

func (r *run) make(ctx context.Context) (steps.Progress, error) {
	foreign, err := r.client.ForeignNodePools(ctx, r.plan.Rack)
	if err != nil {
		return r.progress, err
	}
	leaving, err := leaving(ctx, r.client, foreign)
	if err != nil {
		return r.progress, err
	}
	if len(leaving)+len(foreign) == 0 {
		return r.progress, r.settle(ctx)
	}
	if r.onward = r.plan.Force; !r.onward {
		if _, r.onward, err = r.Baselines.Get(ctx, r.plan.Rack, steps.RemovalKey); err != nil {
			return r.progress, err
		}
	}
	if err := k8s.RefuseForeignNodePools(foreign, r.onward, &r.progress); err != nil {
		return r.hold(err)
	}
	seen, err := look(ctx, r.client, leaving)
	if err != nil {
		return r.progress, err
	}
	lack, err := r.lack(ctx, seen, nil)
	if err != nil {
		return r.progress, err
	}
	if len(lack.waiting) == 0 {
		return r.progress, r.settle(ctx)
	}
	return r.scale(ctx, lack)
}

// hold waits for what would have been refused before anything had changed: Cluster Autoscaler and the build groups are back by
// now, so that a refusal would leave the rack half off.
func (r *run) hold(err error) (steps.Progress, error) {
	var rejected *steps.Rejected
	if !errors.As(err, &rejected) {
		return r.progress, err
	}
	return r.progress.NotYet(patience, "held up by what has come since turning off began (write karpenter_enabled=true to go back): %s",
		rejected.Problems[0].Message)
}

// lack tells which pods have no place on the nodes that are there, and which not even with the groups as large as they may be. more
// are pods that come beside those of Karpenter's nodes, and first.
func (r *run) lack(ctx context.Context, seen *survey, more []mover) (*shortage, error) {
	more = pack(more, seen.places)
	lack := &shortage{rack: r.plan.Rack, cluster: r.plan.Cluster.Name, movers: seen.movers, free: seen.free()}
	waiting := pack(slices.Concat(more, seen.movers), seen.places)
	if len(waiting) == 0 {
		return lack, nil
	}
	var err error
	if lack.groups, err = r.groups(ctx, r.plan.Nodegroups.System, seen); err != nil {
		return nil, err
	}
	if lack.builds, err = r.groups(ctx, r.plan.Nodegroups.Build, seen); err != nil {
		return nil, err
	}
	for _, g := range lack.builds {
		if err := r.back(ctx, g); err != nil {
			return nil, err
		}
	}
	// Nodes of build groups that are there were counted like any other. Their further ones are not for Sawhorse to ask for:
	// a pod that only they take, like a build, waits for Cluster Autoscaler, as it did before there was Karpenter.
	lack.waiting = slices.DeleteFunc(waiting, func(m mover) bool {
		return !slices.ContainsFunc(lack.groups, func(g *group) bool { return g.admits(m) }) &&
			slices.ContainsFunc(lack.builds, func(g *group) bool { return g.size.Max > 0 && g.admits(m) })
	})
	var arriving int
	lack.left = grow(lack.waiting, slices.Concat(lack.groups, lack.builds),
		func(g *group) int { return g.coming }, func(*group) *int { return &arriving })
	lack.left = grow(lack.left, lack.groups,
		func(g *group) int { return g.size.Max - g.size.Desired }, func(g *group) *int { return &g.added })
	return lack, nil
}

// scale asks for the further nodes that the pods need which have no place now, and waits for them.
func (r *run) scale(ctx context.Context, lack *shortage) (steps.Progress, error) {
	if len(lack.left) > 0 && !r.onward {
		return r.hold(lack.refuse())
	}
	if err := r.raise(ctx, lack.groups); err != nil {
		return r.progress, err
	}
	switch {
	case len(lack.left) > 0:
		r.progress.Happened("karpenter_enabled", "Karpenter's nodes are drained although %s. Pods without a place stay Pending until there is one.", lack.figures(true))
	case r.onward:
		r.progress.Happened("karpenter_enabled", "Karpenter's nodes are drained although %s. %d pod(s) wait for nodes that are starting.", lack.figures(false), len(lack.waiting))
	default:
		return r.progress.NotYet(poll, "%d pod(s) of Karpenter's nodes wait for further nodes; %s",
			len(lack.waiting), waiting(slices.Concat(lack.groups, lack.builds)))
	}
	return r.progress, r.settle(ctx)
}

func waiting(groups []*group) string {
	var all []string
	for _, g := range groups {
		if wanted := g.size.Desired + g.added; g.coming+g.added > 0 {
			all = append(all, fmt.Sprintf("node group %s has %d of %d nodes Ready", g.name, g.ready, wanted))
		}
	}
	return strings.Join(all, ", ") + "; if none comes, EC2 may have no capacity (EKS shows that in the group's health), and Rack Reconcile Requested with \"force\": true goes on without"
}

// raise asks EKS for the further nodes. What the groups had is kept first, until there is room.
func (r *run) raise(ctx context.Context, groups []*group) error {
	sizes := map[string]plan.Scaling{}
	more := false
	for _, g := range groups {
		sizes[g.name] = g.size
		more = more || g.added > 0
	}
	if !more {
		return nil
	}
	kept, err := json.Marshal(sizes)
	if err != nil {
		return fmt.Errorf("sizes of the node groups: encode: %w", err)
	}
	if !r.onward { // else it is over with this call
		if err := r.Baselines.Keep(ctx, r.plan.Rack, sizesKey, kept); err != nil {
			return err
		}
	}
	for _, g := range groups {
		if g.added == 0 {
			continue
		}
		to := g.size.Desired + g.added
		_, err := r.EKS.UpdateNodegroupConfig(ctx, &eks.UpdateNodegroupConfigInput{
			ClusterName: &r.plan.Cluster.Name, NodegroupName: &g.name, ScalingConfig: &types.NodegroupScalingConfig{
				MinSize: new(int32(g.size.Min)), MaxSize: new(int32(g.size.Max)), DesiredSize: new(int32(to))},
		})
		if errors.As(err, new(*types.ResourceInUseException)) {
			continue // another update is under way; the next call asks again
		}
		if err != nil {
			return fmt.Errorf("node group %s: scale to %d nodes: %w", g.name, to, err)
		}
		r.progress.Changed(fmt.Sprintf("scaled from %d to %d nodes to make room for the pods of Karpenter's; it keeps that size, and Cluster Autoscaler takes idle nodes away later", g.size.Desired, to), "node group %s", g.name)
	}
	return nil
}

// settle ends the record of the sizes, if there is one.
func (r *run) settle(ctx context.Context) error {
	kept, ok, err := r.Baselines.Get(ctx, r.plan.Rack, sizesKey)
	if err != nil || !ok {
		return err
	}
	r.progress.Note = "the sizes of the system node groups were " + string(kept)
	return r.Baselines.Forget(ctx, r.plan.Rack, sizesKey)
}
