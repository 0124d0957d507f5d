// Package validate begins an iteration of a pass, in three parts: read.go reads all that is known of the rack, assess.go
// decides what is to be done, and reads nothing, and save.go saves that.
package validate

import (
	"context"
	"slices"
	"time"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/observe"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/statemachine"
)

// Event and Answer are the state machine's call and its result.
type (
	Event  = statemachine.ValidateCall
	Answer = statemachine.ValidateAnswer
)

// Auditor runs steps with clients that refuse to write.
type Auditor interface {
	// Audits reports whether it can run a step.
	Audits(step plan.Step) bool
	// Due returns the steps that a pass would have to run, by name, with the reason. warned has the warnings of each
	// step's last run.
	Due(ctx context.Context, p *plan.Plan, steps []plan.Step, warned map[string][]params.Problem) map[string]string
}

// Validate makes plans.
type Validate struct {
	Store      *store.Store
	Paths      ownership.Paths
	Now        func() time.Time
	Parameters store.ChangeReader
	// Observer also has what the deployment allows racks to do.
	Observer *observe.Observer
	S3       Objects
	// Dial connects to the cluster's API server, to read what runs in the cluster.
	Dial k8s.Connector
	// CNI observes where the VPC CNI gets its credentials. Only the function audit has it, because only its full passes and
	// audits may change what follows from it. If it is nil, the decision of the last plan stays.
	CNI func(ctx context.Context, cluster plan.Cluster) (plan.CNI, error)
	// Auditor has all steps in the function audit, but only the queue's in the function validate.
	Auditor Auditor
	Bus     Bus
}

// Bus sends events and writes metrics.
type Bus interface {
	// Started sends the event that an iteration with steps begins.
	Started(ctx context.Context, run store.Run, steps []plan.Step, before *store.Status) error
	// DryRun answers a dry run with the run's problems and warnings, the steps that a pass would take, and the
	// differences from the plan in force.
	DryRun(ctx context.Context, run store.Run, steps []plan.Step, differences []plan.Difference) (*events.Pass, error)
	// Refused sends the event that a change, by its version, was refused or given up. The pass continues without it.
	Refused(ctx context.Context, run store.Run, change int64, problems []params.Problem) error
	// Answer sends the answer to an event that is no valid request, by its ID.
	Answer(ctx context.Context, run store.Run, event string, problems []params.Problem) error
	// Quiet writes the metrics of an iteration that changes nothing and has no report. The rack is then in the given
	// state.
	Quiet(run store.Run, state outcome.State) error
}

// Run begins one iteration.
func (v *Validate) Run(ctx context.Context, event Event) (Answer, error) {
	if event.Unknown.DetailType != "" {
		return v.refuseUnknown(ctx, event)
	}
	run := store.Run{Rack: event.Rack, Execution: event.Execution, Started: v.Now()}
	of := request{rack: event.Rack, full: event.Full, dry: event.DryRun}
	if event.DryRun {
		run.Request = event.Request
		of.force = input{}.with(event.Force)
		change, requested := proposedBy(event)
		if len(change.Malformed) > 0 {
			run.Problems = change.Malformed
			reported, err := v.Bus.DryRun(ctx, run, nil, nil)
			return Answer{Outcome: outcome.PassDryRun, Steps: []plan.Step{}, DryRun: reported}, err
		}
		if requested {
			of.proposed = &change
		}
	} else {
		// The lease is read before the parameters, so a write after this belongs to another iteration.
		lease, err := v.Store.Renew(ctx, event.Rack, event.Execution, v.Now())
		if err != nil {
			return Answer{}, err
		}
		run.Generation, of.writes = lease.Requested, lease.Writes
		of.generation, of.served, of.full, of.force = lease.Requested, lease.Served, lease.Full, lease.Force
	}
	in, err := v.stored(ctx, of)
	if err != nil {
		return Answer{}, err
	}
	if v.outdated(in) {
		return Answer{Generation: of.generation, Outcome: outcome.PassOutdated, Steps: []plan.Step{}}, nil
	}
	if err := v.enlist(ctx, in); err != nil {
		return Answer{}, err
	}
	if in, err = v.observed(ctx, in); err != nil {
		return Answer{}, err
	}
	run.Versions = in.tree.Versions // with those that the changes will make
	d := assess(in)
	if of.dry {
		return v.dryRun(ctx, run, in, d)
	}
	return v.save(ctx, run, in, d)
}

// Audit returns what a full pass over a rack would do: the steps that are due, and what else is not as it should be,
// with the reason for each. It is empty if the pass would find nothing to do. Audit takes no lease and writes nothing.
// generation is the generation that the pass would have.
func (v *Validate) Audit(ctx context.Context, rack string, generation int64) (map[string]string, error) {
	in, err := v.stored(ctx, request{rack: rack, generation: generation, full: true, dry: true})
	if err == nil {
		in, err = v.observed(ctx, in)
	}
	if err != nil {
		return nil, err
	}
	d := assess(in)
	if len(d.why) > 0 || d.state == outcome.StateReconciled {
		return d.why, nil
	}
	run := d.in(store.Run{Rack: rack, Generation: generation, Started: v.Now()})
	return d.why, v.Bus.Quiet(run, d.state) // no pass runs that would write the metrics of this rack
}

// enlist adds a rack with parameters to the list, from which the schedule audits it, and records there whether it is held, so
// that resync finds the racks that the hold lets go.
func (v *Validate) enlist(ctx context.Context, in input) error {
	if in.dry || !in.listed && in.unknown || in.listed && in.wasHeld == in.held() {
		return nil
	}
	return v.Store.Enlist(ctx, in.rack, in.held())
}

// replication is how long after a write Parameter Store may read from a replica that does not have it.
const replication = 10 * time.Second

// outdated reports whether the tree, the parameter change or the hold was read before one of the writes. It ignores writes whose
// time is not within the last seconds, so that a parameter that has been written or deleted since, or an event with the time of
// a wrong clock, does not delay a pass endlessly.
func (v *Validate) outdated(in input) bool {
	return slices.ContainsFunc(in.writes, func(w store.Written) bool {
		has := in.tree.Has
		switch w.Name {
		case store.WrittenChange:
			has = in.changes.has
		case store.WrittenHold:
			has = in.hold.Has
		}
		return v.Now().Sub(w.At).Abs() < replication && !has(w)
	})
}
