// Package validate begins a round: it reads the rack's parameters and the real state, and makes the plan or tells why not.
package validate

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/ownership"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/internal/validation"
)

// Event is the state machine's call.
type Event struct {
	Rack      string `json:"rack"`
	Execution string `json:"execution"`
	DryRun    bool   `json:"dryRun"`
	// Full is asked of a dry run; a pass finds in its lease what its requests ask for.
	Full bool `json:"full"`
	// Waits tells that the state machine knows what to do with Outdated: that of an earlier version, whose passes go on during a
	// deployment, does not.
	Waits bool `json:"waits"`
	// Unknown is the event on Sawhorse's bus that is to be answered, if it is not a valid request.
	Unknown UnknownEvent `json:"unknown"`
	// Request is the text by which the sender of a dry run, or of an Unknown event, recognizes the answer.
	Request string `json:"request"`
}

// About is what the log says of a call.
func (e Event) About() []any { return []any{"rack", e.Rack, "execution", e.Execution} }

// Answer tells the state machine what to do.
type Answer struct {
	// Generation is how many requests the round has seen.
	Generation int64   `json:"generation"`
	Outcome    Outcome `json:"outcome"`
	// Report asks for the report also where there are no steps.
	Report bool        `json:"report"`
	Steps  []plan.Step `json:"steps"`
	// Versions are Parameter Store's of the parameters that were read. The state machine has no use for them: `sawhorse watch` finds
	// them in its history, also those of a round that leaves no record.
	Versions map[string]int64 `json:"versions"`
}

// Outcome is what validate made of the parameters.
type Outcome string

// The outcomes.
const (
	// Unchanged: there is nothing to do.
	Unchanged Outcome = "Unchanged"
	Planned   Outcome = "Planned"
	// Rejected: there are problems; steps, if any, repair towards the last good plan.
	Rejected Outcome = "Rejected"
	Paused   Outcome = "Paused"
	DryRun   Outcome = "DryRun"
	// Outdated: the tree was read from a replica that lacks a write which this round is for; it is to be read again.
	Outdated Outcome = "Outdated"
	// Forgotten: the tree has been deleted and Karpenter is off; the rack's records end.
	Forgotten Outcome = "Forgotten"
	// Unknown: there is no rack of that name, and there was none; the lease that its event has made goes.
	Unknown Outcome = "Unknown"
)

// Clients are what validate reads with.
type Clients struct {
	Parameters store.ParameterReader
	EKS        EKS
	EC2        EC2
	IAM        IAM
	SQS        SQS
	Rules      Rules
	S3         Objects
	Auditor    Auditor
	// Dial opens the cluster, for what runs in it.
	Dial k8s.Connector
}

// Auditor runs steps with clients that refuse to write.
type Auditor interface {
	// Audits reports whether it can run a step.
	Audits(step plan.Step) bool
	// Due returns the steps that are not as they should be, by name, with the reason. warned are the warnings of each
	// step's last run.
	Due(ctx context.Context, p *plan.Plan, steps []plan.Step, warned map[string][]params.Problem) map[string]string
}

// Validate makes plans.
type Validate struct {
	store  *store.Store
	paths  ownership.Paths
	now    func() time.Time
	reader store.ParameterReader
	eks    EKS
	ec2    EC2
	iam    IAM
	sqs    SQS
	rules  Rules
	s3     Objects
	dial   k8s.Connector
	// auditor has all steps in the function audit, and the queue's in the function validate.
	auditor Auditor
	bus     Bus
	// deployment is what the deployment lets racks do.
	deployment plan.Deployment
}

// Bus is whom validate tells.
type Bus interface {
	// Started tells that a round with steps begins.
	Started(ctx context.Context, run store.Run, steps []plan.Step) error
	// DryRun answers a dry run: what the run's problems and warnings are, which steps a pass would take, and how the plan
	// differs from the plan in force.
	DryRun(ctx context.Context, run store.Run, steps []plan.Step, differences []plan.Difference) error
	// Refused tells that a change request was refused; the pass goes on without it.
	Refused(ctx context.Context, run store.Run, change string, problems []params.Problem) error
	// Quiet tells of a round that changes nothing and has nothing new to say, after which the rack is in this state.
	Quiet(run store.Run, state store.State) error
}

// New wires a Validate.
func New(store *store.Store, paths ownership.Paths, deployment plan.Deployment, now func() time.Time, c Clients, bus Bus) *Validate {
	return &Validate{
		store: store, paths: paths, deployment: deployment, now: now, reader: c.Parameters, eks: c.EKS, ec2: c.EC2, iam: c.IAM,
		sqs: c.SQS, rules: c.Rules, s3: c.S3, dial: c.Dial, auditor: c.Auditor, bus: bus,
	}
}

// Run is one round's beginning.
func (v *Validate) Run(ctx context.Context, event Event) (Answer, error) {
	if event.Unknown.DetailType != "" {
		return v.refuseUnknown(ctx, event)
	}
	var lease store.Lease
	if !event.DryRun {
		var err error
		// What has been requested is noted before the tree is read: a write after this is another round's.
		if lease, err = v.store.Renew(ctx, event.Rack, event.Execution, v.now()); err != nil {
			return Answer{}, err
		}
	}
	run := store.Run{Rack: event.Rack, Generation: lease.Requested, Execution: event.Execution, Started: v.now()}
	if event.DryRun {
		run.Request = event.Request
	}
	tree, err := store.ReadTree(ctx, v.reader, v.paths.Params(run.Rack))
	if err != nil {
		return Answer{}, err
	}
	run.Versions = tree.Versions
	if event.Waits && v.outdated(tree, lease.Writes) {
		return Answer{Generation: lease.Requested, Outcome: Outdated, Steps: []plan.Step{}}, nil
	}
	found, err := v.find(ctx, run, tree, lease.Full || event.DryRun && event.Full, event.DryRun)
	if err != nil {
		return Answer{}, err
	}
	found.Plan.Force = lease.Force
	run = found.in(run)
	answer := Answer{Generation: lease.Requested, Steps: []plan.Step{}, Versions: tree.Versions}
	switch {
	case event.DryRun:
		return v.dryRun(ctx, answer, run, found)
	case found.unknown:
		answer.Outcome = Unchanged
		if lease.Served == 0 { // else there was one: runs of it may be kept, and its lease goes on counting as long as they are
			answer.Outcome = Unknown
		}
		return answer, v.bus.Quiet(run, store.Reconciled)
	case found.forgotten:
		return v.forget(ctx, answer, run, found.records)
	case len(found.Problems) > 0:
		return v.rejected(ctx, answer, run, found, lease)
	case found.Config.Paused && found.writing:
		// What was requested is written all the same: until then it would stand above every later write, paused=false too.
		answer.Outcome, answer.Steps, answer.Report, run.Outcome = Paused, []plan.Step{plan.ChangeStep}, true, string(Paused)
		return answer, v.store.SaveRun(ctx, run)
	case found.Config.Paused:
		answer.Outcome = Paused
		answer.Steps = append(answer.Steps, found.due...) // for the report: the state machine takes none of them
		return v.reportIfNew(ctx, answer, run, found, store.Paused, lease.Full)
	case len(found.due) == 0:
		return v.unchanged(ctx, answer, run, found, lease.Full)
	default:
		return v.accept(ctx, answer, run, found)
	}
}

// replication is how long after a write its parameter may be read from a replica that does not have it.
const replication = 10 * time.Second

// outdated tells whether a tree was read from before one of the writes. Only the latest count, so that a parameter that has been
// written or deleted since, or an event with another clock's time, holds up no pass.
func (v *Validate) outdated(tree store.Tree, writes []store.Written) bool {
	return slices.ContainsFunc(writes, func(w store.Written) bool {
		return v.now().Sub(w.At).Abs() < replication && !tree.Has(w)
	})
}

// finding is what a rack's parameters and state come to.
type finding struct {
	validation.Result
	records plan.Records
	due     []plan.Step
	// why has the reason for each step that is due, for the log of an audit.
	why map[string]string
	// writing tells that a change request is not written to Parameter Store yet.
	writing bool
	// forgotten tells that nothing is left of the rack but its records, unknown that there is nothing at all.
	forgotten, unknown bool
}

// in returns the record of the round with what was found.
func (f finding) in(run store.Run) store.Run {
	run.Problems, run.Warnings, run.Goal, run.Effects = f.Problems, f.Warnings, string(f.Plan.Goal), f.Plan.Effects
	return run
}

// find reads what else there is, and plans.
func (v *Validate) find(ctx context.Context, run store.Run, tree store.Tree, full, dry bool) (finding, error) {
	var f finding
	var err error
	if f.records, err = v.store.Records(ctx, run.Rack); err != nil {
		return f, err
	}
	listed, err := v.store.Listed(ctx, run.Rack)
	if err != nil {
		return f, err
	}
	if len(tree.Values) == 0 && !listed && f.records.Goal == "" {
		reported, err := v.store.Reported(ctx, run.Rack)
		if f.unknown = reported == ""; err != nil || f.unknown {
			return f, errors.Join(err, v.turnAway(ctx, run, dry))
		}
	}
	if !listed && !dry && len(tree.Values) > 0 { // the schedule visits it from now on
		if err := v.store.Enlist(ctx, run.Rack); err != nil {
			return f, err
		}
	}
	if tree, f.writing, err = v.lay(ctx, run, tree, f.records, dry); err != nil {
		return f, err
	}
	// With the tree gone and Karpenter off there is nobody left who could want anything of the cluster.
	if len(tree.Values) == 0 && !f.records.WasOn {
		reported, err := v.store.Reported(ctx, run.Rack)
		if f.forgotten = f.records.Goal != "" || reported != "" || listed; err != nil || f.forgotten {
			return f, err
		}
	}
	if f.Result, err = v.validate(ctx, run.Rack, tree, f.records); err != nil {
		return f, err
	}
	f.Plan.Generation = run.Generation
	if f.Plan.Goal != plan.GoalNone && len(f.Problems) == 0 {
		f.due, f.why = v.due(ctx, &f.Plan, f.records, full && !f.Config.Paused)
	}
	if f.writing {
		f.due = append([]plan.Step{plan.ChangeStep}, f.due...)
	}
	return f, err
}

// validate makes a result of a tree of parameters and the real state.
func (v *Validate) validate(ctx context.Context, name string, tree store.Tree, records plan.Records) (validation.Result, error) {
	objects, err := v.objects(ctx, tree.Values)
	if err != nil {
		return validation.Result{}, err
	}
	parsed := params.Parse(params.Input{
		Rack: name, Params: tree.Values, Secure: tree.Secure, Previous: records.Params, Removing: records.WasOn, Objects: objects,
	})
	facts, err := v.observe(ctx, parsed.Config, records)
	if err != nil {
		return validation.Result{}, err
	}
	return validation.Validate(parsed, facts, validation.InForce{
		Checked: records.Checked,
		Plan:    func() (*plan.Plan, error) { return v.store.Plan(ctx, name) },
		Running: func(facts *plan.Facts) { v.running(ctx, facts) },
	})
}

// unchanged ends a round without steps. A full pass saves the plan and the records if they are not as found now: most
// parameters can change without making a step due.
func (v *Validate) unchanged(ctx context.Context, answer Answer, run store.Run, f finding, full bool) (Answer, error) {
	answer.Outcome = Unchanged
	if full && f.Plan.Goal != plan.GoalNone {
		kept, err := v.kept(ctx, run.Rack, f)
		if err == nil && !kept {
			err = v.keep(ctx, run, f)
		}
		if err != nil {
			return answer, err
		}
	}
	return v.reportIfNew(ctx, answer, run, f, store.Reconciled, full)
}

// reportIfNew asks for a report where the status does not say the same already. A full pass also compares what Parameter
// Store has.
func (v *Validate) reportIfNew(ctx context.Context, answer Answer, run store.Run, f finding, state store.State, full bool) (Answer, error) {
	news, err := v.news(ctx, run, f, state, full)
	if err != nil {
		return answer, err
	}
	if news.why == "" {
		return answer, v.bus.Quiet(run, state)
	}
	if news.lost { // else the report would not write the same status again
		if err := v.store.Untell(ctx, run.Rack); err != nil {
			return answer, err
		}
	}
	answer.Report, run.Outcome = true, string(answer.Outcome)
	return answer, v.store.SaveRun(ctx, run)
}

// accept puts a plan into force. The steps that are due count as not applied from here on, so that whatever happens to
// this pass, the next one does them.
func (v *Validate) accept(ctx context.Context, answer Answer, run store.Run, f finding) (Answer, error) {
	answer.Outcome, answer.Report, answer.Steps = Planned, true, f.due
	run.Outcome = string(Planned)
	if f.Plan.Goal == plan.GoalNone { // only a change is to be written
		return answer, v.store.SaveRun(ctx, run)
	}
	if err := v.keep(ctx, run, f); err != nil {
		return answer, err
	}
	if err := v.store.SaveRun(ctx, run); err != nil {
		return answer, err
	}
	return answer, v.bus.Started(ctx, run, f.due)
}
