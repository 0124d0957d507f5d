// Package rollout checks the nodes of the racks with Karpenter. A pass ends when the objects are applied; the nodes
// follow for hours, and a pool may stop being Ready, or pods wait for nodes, without any pass. The node check only reads the
// cluster. It writes the status if it has something new to tell, and requests a pass if a pool that is being removed has lost
// its last node, or if the next step of a migration can be taken.
package rollout

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/metrics"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

// Event is a tick of the schedule.
type Event struct {
	// Rack limits the call to one rack, for operators. The schedule leaves it empty.
	Rack string `json:"rack"`
	// Time is when the tick was due (RFC 3339), and Minutes the time between two ticks. A call without them counts no interruptions.
	Time    string `json:"time"`
	Minutes int    `json:"minutes"`
}

// Answer says what a call has found, for the log.
type Answer struct {
	// Racks is the number of racks that were looked at.
	Racks int `json:"racks"`
	// Reported are the racks whose status was written, Degraded those that are degraded.
	Reported []string `json:"reported,omitempty"`
	Degraded []string `json:"degraded,omitempty"`
	// Waiting is the number of pods that have waited too long for a node.
	Waiting int `json:"waiting,omitempty"`
	// Interrupted is how many instances EC2 has taken, or advised to leave, by Karpenter's word for it.
	Interrupted map[string]int `json:"interrupted,omitempty"`
}

// Rollout looks at racks.
type Rollout struct {
	Store   *store.Store
	Outputs store.Published
	Dial    k8s.Connector
	Send    func(ctx context.Context, detail events.Outbound) error
	// Request requests a pass.
	Request func(ctx context.Context, request events.ReconcileRequested) error
	Metrics metrics.Writer
	Log     *slog.Logger
	Now     func() time.Time
}

const (
	// together is how many racks are looked at at the same time. A look is one DescribeCluster and five lists, one after
	// the other. They take some 0.3 s, so EKS gets some ten calls a second, however many racks there are.
	together = 3
	// longest is how long one look may take, so that a cluster that does not answer does not hold up the others.
	longest = 15 * time.Second
)

// Run looks at all racks with Karpenter. It may be repeated: what was reported is not reported again. A rack that cannot be
// looked at is reported as an error in the end; its hourly audit reports it in its status.
func (r *Rollout) Run(ctx context.Context, event Event) (Answer, error) {
	list, err := r.list(ctx, event)
	if err != nil && len(list) == 0 {
		return Answer{}, err
	}
	failed := []error{err} // a record that cannot be read does not hold up the other racks
	// In any order: if the time is too short for all racks, it is not always the same ones that are left out.
	rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	var answer Answer
	var recovered []string
	var mutex sync.Mutex
	var looks errgroup.Group
	looks.SetLimit(together)
	begun := 0
	for _, was := range list {
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < 2*longest {
			break
		}
		begun++
		looks.Go(func() error {
			found, err := r.one(ctx, was, event.slot())
			mutex.Lock()
			defer mutex.Unlock()
			failed = append(failed, err) // and the other looks go on
			answer.add(was.Rack, found)
			if found.recovered {
				recovered = append(recovered, was.Rack)
			}
			return nil
		})
	}
	_ = looks.Wait()
	if left := len(list) - begun; left > 0 {
		failed = append(failed, fmt.Errorf("%d racks are left for the next tick: the clusters answer too slowly", left))
	}
	slices.Sort(answer.Reported)
	slices.Sort(answer.Degraded)
	r.Log.Info("rollouts", "racks", answer.Racks, "reported", answer.Reported, "degraded", answer.Degraded, "waiting", answer.Waiting)
	return answer, errors.Join(append(failed, r.Metrics.Degraded(answer.Degraded, recovered), r.Metrics.Waiting(answer.Waiting),
		r.Metrics.Interrupted(answer.Interrupted))...)
}

// list returns the racks to look at.
func (r *Rollout) list(ctx context.Context, event Event) ([]store.Rollout, error) {
	if event.Rack == "" {
		return r.Store.Rollouts(ctx)
	}
	one, err := r.Store.Rollout(ctx, event.Rack)
	if err != nil || one == nil {
		return nil, err
	}
	return []store.Rollout{*one}, nil
}

func (a *Answer) add(rack string, found result) {
	if found.looked {
		a.Racks++
	}
	if found.reported {
		a.Reported = append(a.Reported, rack)
	}
	if found.degraded {
		a.Degraded = append(a.Degraded, rack)
	}
	a.Waiting += found.waiting
	for kind, n := range found.interrupted {
		if a.Interrupted == nil {
			a.Interrupted = map[string]int{}
		}
		a.Interrupted[kind] += n
	}
}

// result is what the look at one rack has found.
type result struct {
	looked, reported, degraded bool
	// waiting is how many pods wait for a node.
	waiting int
	// interrupted counts interruptions by kind.
	interrupted map[string]int
	// recovered means that the rack is not degraded any more, and as its parameters say.
	recovered bool
}

// one looks at one rack, and reports what is new.
func (r *Rollout) one(ctx context.Context, was store.Rollout, of slot) (result, error) {
	ctx, end := context.WithTimeout(ctx, longest)
	defer end()
	client, err := r.Dial(ctx, was.Cluster)
	if err != nil {
		return result{}, fmt.Errorf("rack %s: look at its nodes: %w", was.Rack, err)
	}
	next, interrupted, err := r.running(ctx, client, was, of)
	if err != nil {
		return result{}, fmt.Errorf("rack %s: look at its nodes: %w", was.Rack, err)
	}
	migrating, goesOn, err := r.migrating(ctx, client, was)
	if err != nil {
		return result{}, fmt.Errorf("rack %s: look at the node groups that are emptied: %w", was.Rack, err)
	}
	reason := goesOn
	emptied := slices.DeleteFunc(slices.Clone(next.Emptied), func(pool string) bool { return slices.Contains(was.Emptied, pool) })
	if len(emptied) > 0 {
		reason = "the last node is gone of " + strings.Join(emptied, ", ")
	}
	if reason != "" { // once; what is not served is made up for by the audit
		_, held, err := r.Store.Lease(ctx, was.Rack, r.Now())
		switch {
		case err != nil:
		case held: // a newer request would begin the pass again, so that what it waits for would never end at its deadline
			next.Emptied = was.Emptied
		default:
			err = r.Request(ctx, events.ReconcileRequested{Rack: was.Rack, Reason: reason, Full: true})
		}
		if err != nil {
			return result{looked: true}, fmt.Errorf("rack %s: request a pass: %w", was.Rack, err)
		}
	}
	found := result{looked: true, degraded: next.Degrades(), waiting: next.Waiting.Pods(), interrupted: interrupted}
	next.Migrating = migrating
	if now := r.Now(); was.Ended.IsZero() && rolledOut(was, next.Pools, now) {
		next.Ended = now
	}
	if was.Degraded.IsZero() == found.degraded {
		next.Degraded = time.Time{}
		if found.degraded {
			next.Degraded = r.Now()
		}
	}
	if !differs(was, next, r.Now()) {
		return found, nil
	}
	state, err := r.report(ctx, was, next)
	if found.reported = state != ""; err != nil {
		return found, fmt.Errorf("rack %s: report its nodes: %w", was.Rack, err)
	}
	found.recovered = was.Degrades() && !found.degraded && state == outcome.StateReconciled
	return found, nil
}
