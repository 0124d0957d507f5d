package rollout

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"time"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

const (
	// detection is how long Karpenter may take to find out which nodes a pass has made outdated. Before that, they look as
	// if they were not. It takes seconds.
	detection = time.Minute
	// recount is after how long a status is written only because pools without outdated or retiring nodes have other numbers of
	// nodes. These change all the time, and Parameter Store accepts three writes a second in an account.
	recount = time.Hour
	// reword is the shortest time between two writes only because Karpenter's words about the same state have changed: they may, for
	// example, name another NodeClaim each time.
	reword = 15 * time.Minute
)

// rolledOut reports whether all nodes have followed the parameters.
func rolledOut(was store.Rollout, pools store.Pools, now time.Time) bool {
	return now.Sub(was.Applied) >= detection && pools.Outdated() == 0 &&
		!slices.ContainsFunc(pools, func(p store.Pool) bool { return !p.Ready })
}

// differs reports whether there is something new to report.
func differs(was, next store.Rollout, now time.Time) bool {
	if !reflect.DeepEqual(was.Migrating, next.Migrating) || !was.Ended.Equal(next.Ended) || len(was.Pools) != len(next.Pools) ||
		!was.Degraded.Equal(next.Degraded) || was.Looked.IsZero() || !slices.EqualFunc(was.Waiting, next.Waiting, same) ||
		!slices.Equal(was.Latest, next.Latest) || !slices.Equal(was.Emptied, next.Emptied) {
		return true
	}
	counted, reworded := false, !slices.Equal(was.Waiting, next.Waiting)
	for i, pool := range next.Pools {
		before := was.Pools[i]
		counted = counted || pool.Nodes != before.Nodes
		if pool.Outdated+pool.Retiring+pool.Rotating == 0 {
			pool.Nodes = before.Nodes
		}
		if pool.Reason != "" && before.Reason != "" && pool.Ready == before.Ready {
			reworded = reworded || pool.Reason != before.Reason
			pool.Reason = before.Reason
		}
		if pool != before {
			return true
		}
	}
	return counted && now.Sub(was.Looked) >= recount || reworded && now.Sub(was.Looked) >= reword
}

// same reports whether pods wait for the same, in whatever words of Karpenter.
func same(a, b events.Wait) bool {
	a.Reason = b.Reason
	return a == b
}

// report writes the status of a rack and its record, and sends the events of what has ended or begun. It returns the state
// of the rack's last pass, or "" if it wrote nothing, because a pass has the rack or has just had it: the next look
// reports. The record comes last: if report is stopped before, the next look does the same again.
func (r *Rollout) report(ctx context.Context, was, next store.Rollout) (outcome.State, error) {
	_, held, err := r.Store.Lease(ctx, was.Rack, r.Now())
	if err != nil || held {
		return "", err
	}
	live, err := r.Store.Rollout(ctx, was.Rack)
	if err != nil || live == nil || !live.Same(was) {
		return "", err
	}
	next.Looked = r.Now()
	state, err := r.publish(ctx, next)
	if err != nil || state == "" {
		return "", err
	}
	for _, detail := range newEvents(was, next) {
		if err := r.Send(ctx, detail); err != nil {
			return "", err
		}
	}
	if err := r.Store.SaveRollout(ctx, next); err != nil && !errors.Is(err, store.ErrRolloutChanged) {
		return "", err
	}
	return state, nil
}

// publish writes the status parameter: the status of the last pass with what was found. It returns the state of that
// pass, or "" if there is none.
func (r *Rollout) publish(ctx context.Context, next store.Rollout) (outcome.State, error) {
	for range 3 { // a report may write the status at the same time
		reported, err := r.Store.Reported(ctx, next.Rack)
		if err != nil {
			return "", err
		}
		status, err := reported.Status()
		if err != nil || status == nil {
			return "", err
		}
		text, err := status.With(&next).Text()
		if err != nil {
			return "", err
		}
		written, err := r.Store.Rewrites(ctx, next.Rack, reported, text)
		if err != nil {
			return "", err
		}
		if !written {
			continue
		}
		if err := r.Outputs.WriteStatus(ctx, next.Rack, text); err != nil {
			return "", err
		}
		reported, err = r.Store.Reported(ctx, next.Rack)
		if err != nil || reported.Published(text) {
			return status.State, err
		}
	}
	return "", nil
}

// newEvents returns the events of what is new: a rollout has ended, the rack is degraded, or has recovered.
func newEvents(was, next store.Rollout) (all []events.Outbound) {
	if was.Ended.IsZero() && !next.Ended.IsZero() {
		all = append(all, event(next))
	}
	switch {
	case was.Degraded.Equal(next.Degraded):
	case next.Degraded.IsZero():
		all = append(all, &events.Recovered{Rack: next.Rack, Generation: next.Generation, Execution: next.Execution,
			DurationSeconds: next.Looked.Sub(was.Degraded).Round(time.Second).Seconds()})
	default:
		all = append(all, degraded(next))
	}
	return all
}

// degraded returns the event that a rack is degraded.
func degraded(rack store.Rollout) *events.Degraded {
	e := &events.Degraded{
		Rack: rack.Rack, Generation: rack.Generation, Execution: rack.Execution, Waiting: events.List[events.Wait](rack.Waiting),
	}
	for _, pool := range rack.Pools {
		if pool.Reason != "" {
			e.Pools = append(e.Pools, events.DegradedPool{Pool: pool.Pool, Reason: pool.Reason})
		}
	}
	return e
}

// event returns the event that a rollout has ended.
func event(ended store.Rollout) *events.RolledOut {
	e := &events.RolledOut{
		Rack: ended.Rack, Generation: ended.Generation, Execution: ended.Execution,
		DurationSeconds: ended.Ended.Sub(ended.Started).Round(time.Second).Seconds(),
	}
	for _, pool := range ended.Pools {
		if pool.Retiring > 0 {
			continue
		}
		e.Pools = append(e.Pools, events.RolledOutPool{Pool: pool.Pool, Nodes: pool.Nodes})
	}
	return e
}
