// Package nodepools applies the plan's EC2NodeClasses and NodePools, and removes them in an order that leaves no node
// behind.
package nodepools

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// poll is how long to wait before the next look at Karpenter's work.
const poll = 2 * time.Second

// Step applies and removes NodePools.
type Step struct {
	Connect     k8s.Connector
	EC2         EC2
	Checkpoints outcome.Recorder
	Contests    outcome.Recorder
	// Drain is how long pods have to leave the nodes of removed NodePools.
	Drain time.Duration
	Now   func() time.Time
}

// partFreeze is the part of the step that only lays the freeze over the NodePools that exist, or takes it off them.
const partFreeze = "freeze"

// Run applies the plan's NodePools or removes them.
func (s *Step) Run(ctx context.Context, p *plan.Plan, part string) (outcome.Progress, error) {
	run := &run{Step: s, plan: p}
	return run.progress.Until(k8s.Again(run.bring(ctx, part), poll))
}

// run is one call of the step.
type run struct {
	*Step
	plan     *plan.Plan
	client   *k8s.Client
	set      k8s.PoolSet
	begun    removal
	progress outcome.Progress
}

func (r *run) bring(ctx context.Context, part string) error {
	var err error
	r.client, err = r.Connect(ctx, r.plan.Cluster)
	switch {
	case r.plan.Cluster.Gone && errors.Is(err, k8s.ErrGone):
		return r.abandon(ctx)
	case err != nil:
		return err
	case r.plan.Cluster.Gone: // a cluster of the same name was created since, and its instances have the same tags
		return fmt.Errorf("cluster %s: it was gone when the plan was made, and EKS has it now, "+
			"so its instances are not ended; send Rack Reconcile Requested, and the next pass makes a new plan", r.plan.Cluster.Name)
	case part == partFreeze:
		return r.freeze(ctx)
	case len(r.plan.NodePools.Objects) > 0:
		return r.apply(ctx)
	}
	return r.remove(ctx)
}

func (r *run) apply(ctx context.Context) error {
	r.arbitrate()
	if err := r.forget(ctx); err != nil { // turned on again before it was off
		return err
	}
	contested, err := r.client.Contested(ctx, r.plan.Rack, r.plan.NodePools.Manifests())
	if err != nil {
		return err
	}
	if len(contested) > 0 {
		return outcome.Reject("karpenter_enabled", "The cluster has objects of these names that rack %s did not make: %s. "+
			"Delete or rename them, or leave karpenter_enabled at false.", r.plan.Rack, strings.Join(contested, ", "))
	}
	if err := r.takeBack(ctx); err != nil {
		return err
	}
	if err := r.pruneOverlays(ctx); err != nil {
		return err
	}
	var waiting []string
	for _, object := range r.plan.NodePools.Manifests() {
		applied, err := r.client.Apply(ctx, r.plan.Rack, object)
		if err != nil {
			return err
		}
		r.note(applied)
		if applied.Action == k8s.Terminating {
			waiting = append(waiting, applied.Subject+": an earlier one of this name is being deleted")
		} else if ready, note := k8s.Ready(applied.Live); !ready {
			waiting = append(waiting, applied.Subject+": "+note)
			if err := r.tryAgain(ctx, applied.Live); err != nil {
				return err
			}
		}
	}
	if len(waiting) > 0 {
		return outcome.Wait(poll, "%s", strings.Join(waiting, "; "))
	}
	if err := r.rotate(ctx); err != nil {
		return err
	}
	return r.retire(ctx)
}

// arbitrate makes what others keep setting back their own.
func (r *run) arbitrate() {
	r.client = r.client.Arbitrated(r.plan.Rack, outcome.Arbiter{
		Contests: r.Contests, Now: r.Now, Once: true, Forced: r.plan.Force.Generation(events.ForceContested, r.plan.Generation),
	})
}

func (r *run) note(applied k8s.Applied) { applied.Report(&r.progress, "karpenter_enabled") }
