package report

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

// rollout returns what is known of the nodes of a rack with Karpenter, for the status parameter. newStatus says that the status has
// something new: from then on the nodes follow the pass's generation. The schedule looks at them from the first pass on that has made the
// pools, however it ended after that step: if a first node does not come, pods wait.
func (r *Report) rollout(ctx context.Context, event Event, run store.Run, status store.Status, newStatus bool, records plan.Records) (
	*store.Rollout, error) {
	reconciled := status.State == outcome.StateReconciled
	for range 3 { // the schedule may write the record at the same time
		rollout, err := r.Store.Rollout(ctx, event.Rack)
		moves := slices.Contains(event.Steps, plan.MigrateStep)
		if err == nil && rollout != nil && !reconciled && changed(run, nodePoolsStep) && event.Step != nodePoolsStep {
			rollout, err = r.withoutRemoved(ctx, rollout, records)
		}
		if errors.Is(err, store.ErrRolloutChanged) {
			continue
		}
		if err != nil || rollout != nil && (!reconciled || !newStatus && !moves) ||
			rollout == nil && !reconciled && (!changed(run, nodePoolsStep) || event.Step == nodePoolsStep) {
			return rollout, err
		}
		if rollout == nil {
			rollout, newStatus = &store.Rollout{Rack: event.Rack}, true
		} else if rollout.Generation == event.Generation && rollout.Execution == event.Execution { // this report is repeated
			return rollout, nil
		}
		p, err := r.Store.Plan(ctx, event.Rack)
		if err != nil || p == nil {
			return nil, err
		}
		rollout.Cluster, rollout.Names = p.Cluster, p.NodePools.Names()
		if reconciled || moves { // no group is emptied before the hand-over
			rollout.Migration = p.Nodegroups.Migration
		}
		if len(rollout.Migration.Groups) == 0 {
			rollout.Migrating = nil
		}
		if newStatus {
			rollout.Generation, rollout.Execution, rollout.Started = event.Generation, event.Execution, event.Started
			rollout.Applied, rollout.Ended = r.Now(), time.Time{}
		}
		if !reconciled {
			rollout.Ended = r.Now() // nothing is awaited of the nodes
		}
		if slices.Contains(event.Steps, nodePoolsStep) {
			rollout.Pools = rollout.Pools.AllReady()
		}
		if err := r.Store.SaveRollout(ctx, *rollout); !errors.Is(err, store.ErrRolloutChanged) {
			return rollout, err
		}
	}
	return nil, fmt.Errorf("rack %s: save rollout: %w", event.Rack, store.ErrRolloutChanged)
}

// withoutRemoved takes pools out of the record that the plan does not have any more: the pass has removed them, although it did not end
// well. Otherwise the schedule would miss them. Where turning Karpenter off is refused, that is the plan before.
func (r *Report) withoutRemoved(ctx context.Context, rollout *store.Rollout, records plan.Records) (*store.Rollout, error) {
	p, err := r.Store.Plan(ctx, rollout.Rack)
	if err != nil || p == nil {
		return rollout, err
	}
	if last := p.Refused(records.Applied); last != nil {
		begun, err := r.Store.TurningOff(ctx, rollout.Rack)
		if err != nil {
			return rollout, err
		}
		if !begun {
			p = last
		}
	}
	planned := p.NodePools.Names()
	names := slices.DeleteFunc(slices.Clone(rollout.Names), func(name string) bool { return !slices.Contains(planned, name) })
	if len(names) == len(rollout.Names) {
		return rollout, nil
	}
	if rollout.Names = names; len(names) == 0 && rollout.Ended.IsZero() {
		rollout.Ended = r.Now() // no nodes are left that could follow, and that is no end to tell of
	}
	rollout.Pools = slices.DeleteFunc(slices.Clone(rollout.Pools), func(pool store.Pool) bool { return !slices.Contains(names, pool.Pool) })
	return rollout, r.Store.SaveRollout(ctx, *rollout)
}

// off reports whether Karpenter is off after the pass, also if its report is repeated.
func off(status store.Status) bool {
	return status.State == outcome.StateReconciled && status.Goal == string(plan.GoalAccess)
}

// ends ends the rollout of a rack without Karpenter. If the rack was degraded, it is not any more, and no node check will say so.
func (r *Report) ends(ctx context.Context, event Event) error {
	rollout, err := r.Store.Rollout(ctx, event.Rack)
	if err != nil || rollout == nil {
		return err
	}
	if !rollout.Degraded.IsZero() {
		err := r.Send(ctx, &events.Recovered{Rack: event.Rack, Generation: event.Generation, Execution: event.Execution,
			DurationSeconds: r.Now().Sub(rollout.Degraded).Round(time.Second).Seconds()})
		if err != nil {
			return err
		}
	}
	return r.Store.EndRollout(ctx, event.Rack)
}

// nodePoolsStep is the step that ends when all pools are Ready.
const nodePoolsStep = "nodepools"
