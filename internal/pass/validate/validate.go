// Package validate begins an iteration of a pass: it reads the rack's parameters and the real state, and makes the plan
// or reports the problems.
package validate

import (
	"context"
	"slices"
	"time"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/observe"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/internal/validation"
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
	Parameters store.ParameterReader
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
	Started(ctx context.Context, run store.Run, steps []plan.Step) error
	// DryRun answers a dry run with the run's problems and warnings, the steps that a pass would take, and the
	// differences from the plan in force.
	DryRun(ctx context.Context, run store.Run, steps []plan.Step, differences []plan.Difference) error
	// Refused sends the event that a change request was refused. The pass continues without it.
	Refused(ctx context.Context, run store.Run, change string, problems []params.Problem) error
	// Quiet writes the metrics of an iteration that changes nothing and has no report. The rack is then in the given
	// state.
	Quiet(run store.Run, state outcome.State) error
}

// Run begins one iteration.
func (v *Validate) Run(ctx context.Context, event Event) (Answer, error) {
	if event.Unknown.DetailType != "" {
		return v.refuseUnknown(ctx, event)
	}
	var lease store.Lease
	if !event.DryRun {
		var err error
		// The lease is read before the tree, so a write after this belongs to another iteration.
		if lease, err = v.Store.Renew(ctx, event.Rack, event.Execution, v.Now()); err != nil {
			return Answer{}, err
		}
	}
	run := store.Run{Rack: event.Rack, Generation: lease.Requested, Execution: event.Execution, Started: v.Now()}
	if event.DryRun {
		run.Request = event.Request
	}
	in, err := v.read(ctx, run.Rack)
	if err != nil {
		return Answer{}, err
	}
	in.force = lease.Force && !in.records.Karpenter.RolledBack.Used(lease.ForceAt, lease.Requested)
	run.Versions = in.tree.Versions
	if v.outdated(in.tree, lease.Writes) {
		return Answer{Generation: lease.Requested, Outcome: outcome.PassOutdated, Steps: []plan.Step{}}, nil
	}
	found, err := v.find(ctx, run, in, lease.Full || event.DryRun && event.Full, event.DryRun)
	if err != nil {
		return Answer{}, err
	}
	found.Plan.Force = lease.Force
	run = found.in(run)
	if found.records.Paused != in.records.Paused && !event.DryRun && !found.forgotten {
		if err := v.Store.SaveRecords(ctx, run.Rack, found.records); err != nil {
			return Answer{}, err
		}
	}
	answer := Answer{Generation: lease.Requested, Steps: []plan.Step{}, Versions: run.Versions}
	switch {
	case event.DryRun:
		return v.dryRun(ctx, answer, run, found)
	case found.unknown:
		answer.Outcome = outcome.PassUnchanged
		if lease.Served == 0 { // otherwise it existed: its lease keeps counting while records of its runs are kept
			answer.Outcome = outcome.PassUnknown
		}
		return answer, v.Bus.Quiet(run, outcome.StateReconciled)
	case found.forgotten:
		return v.forget(ctx, answer, run, found.records)
	case len(found.Problems) > 0:
		return v.rejected(ctx, answer, run, found, lease)
	case found.Config.Paused && found.writing:
		// Accepted change requests are written even if the rack is paused. Until then they take precedence over every
		// later write, including paused=false.
		answer.Outcome, answer.Steps = outcome.PassPaused, []plan.Step{plan.ChangeStep}
		return v.report(ctx, answer, run)
	case found.Config.Paused:
		answer.Outcome = outcome.PassPaused
		answer.Steps = append(answer.Steps, found.due...) // for the report; the state machine runs none of them
		return v.reportIfNew(ctx, answer, run, found, outcome.StatePaused, lease.Full)
	case len(found.due) == 0:
		return v.unchanged(ctx, answer, run, found, lease.Full)
	default:
		return v.accept(ctx, answer, run, found)
	}
}

// replication is how long after a write Parameter Store may read from a replica that does not have it.
const replication = 10 * time.Second

// outdated reports whether the tree lacks one of the writes. It ignores writes whose time is not within the last
// seconds, so that a parameter that has been written or deleted since, or an event with the time of a wrong clock, does
// not delay a pass endlessly.
func (v *Validate) outdated(tree store.Tree, writes []store.Written) bool {
	return slices.ContainsFunc(writes, func(w store.Written) bool {
		return v.Now().Sub(w.At).Abs() < replication && !tree.Has(w)
	})
}

// finding is the result of reading a rack's parameters and state.
type finding struct {
	validation.Result
	records plan.Records
	due     []plan.Step
	// why has the reason for each step that is due, for the log of an audit.
	why map[string]string
	// writing means that an accepted change request is not written to Parameter Store yet.
	writing bool
	// freeze is what karpenter_freeze asks for, or nil if its value was refused or not read.
	freeze *bool
	// forgotten means that only records are left of the rack, unknown that there is nothing at all.
	forgotten, unknown bool
}

// in returns the record of the iteration with the findings.
func (f finding) in(run store.Run) store.Run {
	run.Problems, run.Warnings, run.Goal, run.Effects = f.Problems, f.Warnings, string(f.Plan.Goal), f.Plan.Effects
	run.Paused, run.Freeze = f.Config.Paused, f.freeze
	return run
}

// find validates a rack's parameters, with its change requests, and finds the steps that are due.
func (v *Validate) find(ctx context.Context, run store.Run, in input, full, dry bool) (finding, error) {
	f, tree := finding{records: in.records}, in.tree
	if len(tree.Values) == 0 && !in.listed && f.records.Goal == "" {
		reported, err := v.Store.ReportedDigest(ctx, run.Rack)
		if err != nil {
			return f, err
		}
		if f.unknown = reported == ""; f.unknown {
			return f, v.turnAway(ctx, run, in.changes, dry)
		}
	}
	if !in.listed && !dry && len(tree.Values) > 0 { // the schedule audits it from now on
		if err := v.Store.Enlist(ctx, run.Rack); err != nil {
			return f, err
		}
	}
	var err error
	if tree, f.writing, err = v.lay(ctx, run, in, dry); err != nil {
		return f, err
	}
	// The tree is deleted and Karpenter is off, so the rack needs nothing in the cluster any more.
	if len(tree.Values) == 0 && !f.records.WasOn {
		reported, err := v.Store.ReportedDigest(ctx, run.Rack)
		if f.forgotten = f.records.Goal != "" || reported != "" || in.listed; err != nil || f.forgotten {
			return f, err
		}
	}
	if f.Result, err = v.validate(ctx, run.Rack, tree, in); err != nil {
		return f, err
	}
	f.brake(tree)
	f.Plan.Generation = run.Generation
	if f.Plan.Goal != plan.GoalNone && len(f.Problems) == 0 {
		f.due, f.why = v.due(ctx, &f.Plan, f.records, full && !f.Config.Paused)
	}
	f.due = f.written(f.due)
	return f, err
}

// validate validates a tree of parameters, in the place of the one that was read, against the real state.
func (v *Validate) validate(ctx context.Context, name string, tree store.Tree, in input) (validation.Result, error) {
	objects, err := v.objects(ctx, name, tree.Values)
	if err != nil {
		return validation.Result{}, err
	}
	parsed := params.Parse(params.Input{
		Rack: name, Params: tree.Values, Secure: tree.Secure, Previous: in.records.Params, Removing: in.records.WasOn, Objects: objects,
	})
	facts, err := v.Observer.Facts(ctx, parsed.Config, in.records)
	if err != nil {
		return validation.Result{}, err
	}
	facts.Writes, facts.Force = tree.Versions, in.force
	facts.CNI = v.cni(ctx, parsed.Config, facts)
	return validation.Validate(parsed, facts, validation.InForce{
		Checked: in.records.Checked,
		Plan:    func() (*plan.Plan, error) { return v.Store.Plan(ctx, name) },
		Running: func(facts *plan.Facts) { v.running(ctx, facts) },
	})
}

// cni returns where the VPC CNI gets its credentials; nil if that is not observed or cannot be read. Before Karpenter is on,
// no node depends on it, and the cluster may be another rack's.
func (v *Validate) cni(ctx context.Context, config params.Config, facts plan.Facts) *plan.CNI {
	if v.CNI == nil || !config.Enabled || !facts.Records.WasOn || facts.Cluster == nil || !facts.LetIn(config.Rack) {
		return nil
	}
	observed, err := v.CNI(ctx, facts.Cluster.Cluster)
	if err != nil {
		return nil
	}
	return &observed
}
