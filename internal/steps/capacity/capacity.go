// Package capacity makes sure that the pods of Karpenter's nodes have capacity elsewhere before these nodes are
// drained. It has two parts. The first step of turning off checks whether there will be capacity, and rejects if not.
// A later step scales the system node groups up, within their maximum, and waits for their nodes. Only then does Cluster
// Autoscaler come back.
package capacity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/resource"
	"github.com/sawhorse-io/sawhorse/internal/steps/refusals"
	"github.com/sawhorse-io/sawhorse/internal/steps/updates"
)

// EKS lists the EKS calls of the step.
type EKS interface {
	DescribeNodegroup(context.Context, *eks.DescribeNodegroupInput, ...func(*eks.Options)) (*eks.DescribeNodegroupOutput, error)
	UpdateNodegroupConfig(context.Context, *eks.UpdateNodegroupConfigInput, ...func(*eks.Options)) (*eks.UpdateNodegroupConfigOutput, error)
	updates.EKS
}

// poll is how long to wait before the nodes that start are read again. patience is how long to wait if the operator has to
// act first.
const poll, patience = 5 * time.Second, 30 * time.Second

// Step checks and provides the capacity.
type Step struct {
	EKS         EKS
	Connect     k8s.Connector
	Baselines   outcome.Recorder
	Checkpoints outcome.Recorder
	Written     resource.Records
	Now         func() time.Time
}

// Run runs one part of the step: fit, which checks for capacity, or capacity, which provides it.
func (r *Step) Run(ctx context.Context, p *plan.Plan, part string) (outcome.Progress, error) {
	client, err := r.Connect(ctx, p.Cluster)
	if err != nil {
		return outcome.Progress{}, err
	}
	run := &run{Step: r, plan: p, client: client}
	do := run.provide
	if part == "fit" {
		do = run.precheck
	}
	err = do(ctx)
	return run.progress.Until(err)
}

// run is one call of the step.
type run struct {
	*Step
	plan   *plan.Plan
	client *k8s.Client
	// begun means that the removal has begun and cannot be undone, goesOn that it goes on without capacity, also because it
	// was forced.
	begun, goesOn bool
	progress      outcome.Progress
}

// provide scales the system node groups up until the pods of Karpenter's nodes have capacity, and waits for it.
func (r *run) provide(ctx context.Context) error {
	unmanaged, err := r.client.UnmanagedNodePools(ctx, r.plan.Rack)
	if err != nil {
		return err
	}
	leaving, err := leavingNodes(ctx, r.client, unmanaged)
	if err != nil {
		return err
	}
	if len(leaving)+len(unmanaged) == 0 {
		return nil
	}
	if _, r.begun, err = r.Checkpoints.Get(ctx, r.plan.Rack, outcome.CheckpointRemoval); err != nil {
		return err
	}
	r.goesOn = r.begun || r.plan.Force.Has(events.ForceRoom)
	left, err := r.left(ctx, unmanaged)
	if err != nil {
		return err
	}
	if err := refusals.UnmanagedNodePools(left, r.begun || r.plan.Force.Has(events.ForceForeignPools), &r.progress); err != nil {
		return r.waitInstead(err)
	}
	lack, err := r.lack(ctx, leaving)
	if err != nil {
		return err
	}
	if lack.now.none() {
		return nil
	}
	return r.scale(ctx, lack)
}

// waitInstead waits for what the first step would have rejected. By now the build groups are restored, so a rejection would leave
// the rack half off.
func (r *run) waitInstead(err error) error {
	var rejected *outcome.Rejected
	if !errors.As(err, &rejected) {
		return err
	}
	return outcome.Wait(patience, "waits because of a change since turning off began (write karpenter_enabled=true to go back): %s",
		rejected.Problems[0].Message)
}

// lack estimates what the pods of the nodes that leave lack on the existing nodes, and what with the groups at their maximum. The
// pods that Cluster Autoscaler has once it is restored need capacity besides them.
func (r *run) lack(ctx context.Context, leaving map[string]bool) (*shortage, error) {
	seen, err := r.readSurvey(ctx, leaving)
	if err != nil {
		return nil, err
	}
	more, err := r.autoscaler(ctx)
	if err != nil {
		return nil, err
	}
	pods, places := slices.Concat(more, seen.displaced), seen.places()
	s := &shortage{rack: r.plan.Rack, cluster: r.plan.Cluster.Name, displaced: seen.displaced, more: more, free: seen.free(),
		now: estimate(pods, places)}
	if s.now.none() {
		return s, nil
	}
	if s.groups, err = r.groups(ctx, r.plan.Nodegroups.System, seen); err != nil {
		return nil, err
	}
	if s.others, err = r.groups(ctx, r.plan.Nodegroups.Build, seen); err != nil {
		return nil, err
	}
	additional, err := r.groups(ctx, r.plan.Nodegroups.Additional, seen)
	if err != nil {
		return nil, err
	}
	s.others = append(s.others, slices.DeleteFunc(additional, func(g *group) bool { return !g.back })...)
	// Existing nodes of these groups were counted like any other. Sawhorse does not ask for further ones: a pod that
	// only they admit, such as a build, waits for Cluster Autoscaler, as it did before Karpenter was on.
	pods = slices.DeleteFunc(pods, func(m displacedPod) bool {
		return !slices.ContainsFunc(places, func(p place) bool { return p.takes(m) }) &&
			!slices.ContainsFunc(s.groups, func(g *group) bool { return g.further.admits(m) }) &&
			slices.ContainsFunc(s.others, func(g *group) bool { return g.size.Max > 0 && g.further.admits(m) })
	})
	for _, g := range s.groups {
		places = append(places, g.further)
	}
	s.now = estimate(pods, places)
	for _, g := range slices.Concat(s.groups, s.others) {
		places = append(places, g.more(g.coming()))
	}
	s.missing = estimate(pods, places)
	for _, g := range s.groups {
		g.added = max(0, min(g.further.nodesFor(s.missing), g.size.Max-g.size.Desired))
		places = append(places, g.more(g.added))
		s.missing = estimate(pods, places)
	}
	return s, nil
}

// scale asks EKS for the further nodes that the pods need, and waits for them.
func (r *run) scale(ctx context.Context, lack *shortage) error {
	if !lack.missing.none() && !r.goesOn {
		return r.waitInstead(lack.refuse())
	}
	if err := r.raise(ctx, lack.groups); err != nil {
		return err
	}
	switch {
	case !lack.missing.none():
		r.progress.Happened("karpenter_enabled",
			"Karpenter's nodes are drained although %s. Pods without a place stay Pending until there is one: "+
				"give the system node groups, or others, more nodes, or stop those pods.", lack.figures())
	case r.goesOn:
		r.progress.Happened("karpenter_enabled", "Karpenter's nodes are drained although %s. Nodes for the rest are starting; "+
			"if pods stay Pending, give the node groups more nodes, or stop those pods.", lack.figures())
	default:
		return outcome.Wait(poll, "the pods of Karpenter's nodes wait for further nodes; %s",
			waiting(slices.Concat(lack.groups, lack.others)))
	}
	return nil
}

func waiting(groups []*group) string {
	var all []string
	for _, g := range groups {
		if wanted := g.size.Desired + g.added; g.coming()+g.added > 0 {
			all = append(all, fmt.Sprintf("node group %s has %d of %d nodes Ready", g.name, g.ready, wanted))
		}
	}
	return strings.Join(all, ", ") + "; if none comes, EC2 may have no capacity (EKS shows that in the group's health), " +
		"and Rack Reconcile Requested with \"force\": [\"room\"] goes on without"
}

// raise asks EKS for the further nodes.
func (r *run) raise(ctx context.Context, groups []*group) error {
	groups = slices.DeleteFunc(slices.Clone(groups), func(g *group) bool { return g.added == 0 })
	if len(groups) == 0 {
		return nil
	}
	w, err := resource.Open(ctx, r.Written, r.plan.Rack, "capacity", r.Now)
	if err != nil {
		return err
	}
	for _, g := range groups {
		if err == nil {
			err = r.scaleUp(ctx, g, updates.Last{EKS: r.EKS, Writer: w, Cluster: r.plan.Cluster.Name, Group: g.name})
		}
	}
	_, err = w.End(ctx, err)
	return err
}

// scaleUp asks EKS for the further nodes of a group. If EKS has accepted that before, and then failed to do it, the error says why.
func (r *run) scaleUp(ctx context.Context, g *group, last updates.Last) error {
	if words, err := last.Failed(ctx); err != nil || words != "" {
		return cmp.Or(err, fmt.Errorf("node group %s: %s", g.name, words))
	}
	to := g.size.Desired + g.added
	out, err := r.EKS.UpdateNodegroupConfig(ctx, &eks.UpdateNodegroupConfigInput{
		ClusterName: &r.plan.Cluster.Name, NodegroupName: &g.name, ScalingConfig: &types.NodegroupScalingConfig{
			MinSize: new(int32(g.size.Min)), MaxSize: new(int32(g.size.Max)), DesiredSize: new(int32(to))},
	})
	if errors.As(err, new(*types.ResourceInUseException)) {
		return nil // another update is under way, and the next call asks again
	}
	if err != nil {
		return fmt.Errorf("node group %s: scale to %d nodes: %w", g.name, to, err)
	}
	last.Began(out.Update)
	r.progress.Changed(fmt.Sprintf("scaled from %d to %d nodes to make room for the pods of Karpenter's; "+
		"it keeps that size, and Cluster Autoscaler takes idle nodes away later", g.size.Desired, to), "node group %s", g.name)
	return nil
}
