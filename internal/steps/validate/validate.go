// Package validate begins a round: it reads the rack's parameters and the real state, and makes the plan or tells why not.
package validate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/sawhorse-io/sawhorse/internal/judge"
	"github.com/sawhorse-io/sawhorse/internal/k8s"
	"github.com/sawhorse-io/sawhorse/internal/names"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/rack"
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
	// Unknown is the event on Sawhorse's bus that is to be answered, where it is none of the requests that Sawhorse takes.
	Unknown UnknownEvent `json:"unknown"`
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
	Parameters rack.ParameterReader
	EKS        EKS
	EC2        EC2
	IAM        IAM
	SQS        SQS
	Rules      Rules
	Queue      Queue
	S3         Objects
	// Dial opens the cluster, for what runs in it.
	Dial k8s.Connector
}

// Queue tells whether a rack's interruption queue and its rule are as the plan says: they are looked at on every pass,
// because interruptions that nobody hears of cost users their pods.
type Queue interface {
	InOrder(context.Context, *plan.Plan) (bool, error)
}

// Validate makes plans.
type Validate struct {
	store  *rack.Store
	paths  names.Paths
	now    func() time.Time
	reader rack.ParameterReader
	eks    EKS
	ec2    EC2
	iam    IAM
	sqs    SQS
	rules  Rules
	queue  Queue
	s3     Objects
	dial   k8s.Connector
	bus    Bus
	// deployment is what the deployment lets racks do.
	deployment plan.Deployment
}

// Bus is whom validate tells.
type Bus interface {
	// Started tells that a round with steps begins.
	Started(ctx context.Context, run rack.Run, steps []plan.Step) error
	// DryRun answers a dry run: what the run's problems and warnings are, which steps a pass would take, and how the plan
	// differs from the plan in force.
	DryRun(ctx context.Context, run rack.Run, steps []plan.Step, differences []plan.Difference) error
	// Refused tells that a change request was refused; the pass goes on without it.
	Refused(ctx context.Context, run rack.Run, change string, problems []params.Problem) error
	// Quiet tells of a round that changes nothing and has nothing new to say, after which the rack is in this state.
	Quiet(run rack.Run, state rack.State) error
}

// New wires a Validate.
func New(store *rack.Store, paths names.Paths, deployment plan.Deployment, now func() time.Time, c Clients, bus Bus) *Validate {
	return &Validate{
		store: store, paths: paths, deployment: deployment, now: now, reader: c.Parameters, eks: c.EKS, ec2: c.EC2, iam: c.IAM,
		sqs: c.SQS, rules: c.Rules, queue: c.Queue, s3: c.S3, dial: c.Dial, bus: bus,
	}
}

// Run is one round's beginning.
func (v *Validate) Run(ctx context.Context, event Event) (Answer, error) {
	if event.Unknown.DetailType != "" {
		return v.refuseUnknown(ctx, event)
	}
	var lease rack.Lease
	if !event.DryRun {
		var err error
		// What has been requested is noted before the tree is read: a write after this is another round's.
		if lease, err = v.store.Renew(ctx, event.Rack, event.Execution, v.now()); err != nil {
			return Answer{}, err
		}
	}
	run := rack.Run{Rack: event.Rack, Generation: lease.Requested, Execution: event.Execution, Started: v.now()}
	tree, err := rack.ReadTree(ctx, v.reader, v.paths.Params(run.Rack))
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
	run.Problems, run.Warnings, run.Goal, run.Effects = found.Problems, found.Warnings, string(found.Plan.Goal), found.Plan.Effects
	answer := Answer{Generation: lease.Requested, Steps: []plan.Step{}, Versions: tree.Versions}
	switch {
	case event.DryRun:
		return v.dryRun(ctx, answer, run, found)
	case found.unknown:
		answer.Outcome = Unchanged
		if lease.Served == 0 { // else there was one: runs of it may be kept, and its lease goes on counting as long as they are
			answer.Outcome = Unknown
		}
		return answer, v.bus.Quiet(run, rack.Reconciled)
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
		return v.reportIfNew(ctx, answer, run, rack.Paused)
	case len(found.due) == 0:
		answer.Outcome = Unchanged
		return v.reportIfNew(ctx, answer, run, rack.Reconciled)
	default:
		return v.accept(ctx, answer, run, found)
	}
}

// replication is how long after a write its parameter may be read from a replica that does not have it.
const replication = 10 * time.Second

// outdated tells whether a tree was read from before one of the writes. Only the latest count, so that a parameter that has been
// written or deleted since, or an event with another clock's time, holds up no pass.
func (v *Validate) outdated(tree rack.Tree, writes []rack.Written) bool {
	return slices.ContainsFunc(writes, func(w rack.Written) bool {
		return v.now().Sub(w.At).Abs() < replication && !tree.Has(w)
	})
}

// finding is what a rack's parameters and state come to.
type finding struct {
	judge.Verdict
	records plan.Records
	due     []plan.Step
	// writing tells that a change request is not written to Parameter Store yet.
	writing bool
	// forgotten tells that nothing is left of the rack but its records, unknown that there is nothing at all.
	forgotten, unknown bool
}

// find reads what else there is, and plans.
func (v *Validate) find(ctx context.Context, run rack.Run, tree rack.Tree, full, dry bool) (finding, error) {
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
	if f.Verdict, err = v.judge(ctx, run.Rack, tree, f.records); err != nil {
		return f, err
	}
	if f.Plan.Goal != plan.GoalNone && len(f.Problems) == 0 {
		f.due, err = v.due(ctx, &f.Plan, f.records.Applied, full && !f.Config.Paused)
	}
	if f.writing {
		f.due = append([]plan.Step{plan.ChangeStep}, f.due...)
	}
	return f, err
}

// judge makes a verdict of a tree of parameters and the real state.
func (v *Validate) judge(ctx context.Context, name string, tree rack.Tree, records plan.Records) (judge.Verdict, error) {
	objects, err := v.objects(ctx, tree.Values)
	if err != nil {
		return judge.Verdict{}, err
	}
	parsed := params.Parse(params.Input{
		Rack: name, Params: tree.Values, Secure: tree.Secure, Previous: records.Params, Removing: records.WasOn, Objects: objects,
	})
	facts, err := v.observe(ctx, parsed.Config, records)
	if err != nil {
		return judge.Verdict{}, err
	}
	return judge.Judge(parsed, facts, judge.InForce{
		Checked: records.Checked,
		Plan:    func() (*plan.Plan, error) { return v.store.Plan(ctx, name) },
		Running: func(facts *plan.Facts) { v.running(ctx, facts) },
	})
}

// due are the steps that a pass takes: all of a full pass; else those whose part of the plan has changed, and the queue's
// if somebody has been at it.
func (v *Validate) due(ctx context.Context, p *plan.Plan, applied map[string]string, full bool) ([]plan.Step, error) {
	if full {
		return p.Steps, nil
	}
	due := p.Due(applied)
	const queue = "queue"
	if !p.Queue.Present || slices.ContainsFunc(due, func(s plan.Step) bool { return s.Name == queue }) {
		return due, nil
	}
	inOrder, err := v.queue.InOrder(ctx, p)
	if err != nil || inOrder {
		return due, err
	}
	applied = maps.Clone(applied)
	delete(applied, queue)
	return p.Due(applied), nil
}

// rejected reports the problems; a full pass still repairs towards the last good plan.
func (v *Validate) rejected(ctx context.Context, answer Answer, run rack.Run, f finding, lease rack.Lease) (Answer, error) {
	answer.Outcome = Rejected
	answer.Steps = append(answer.Steps, f.due...) // the rest of a change that was good when it was requested
	if !lease.Full && f.writing {
		answer.Report, run.Outcome = true, string(Rejected)
		return answer, v.store.SaveRun(ctx, run)
	}
	if !lease.Full {
		return v.reportIfNew(ctx, answer, run, rack.Rejected)
	}
	last, err := v.store.Plan(ctx, run.Rack)
	if err != nil {
		return answer, err
	}
	gone := f.Plan.Goal != plan.GoalNone && f.Plan.Cluster.Name == "" // there is no cluster to repair
	if last != nil && !f.Config.Paused && !gone {
		answer.Steps = append(answer.Steps, last.Steps...)
		if err := v.force(ctx, last, lease); err != nil {
			return answer, err
		}
	}
	answer.Report, run.Outcome = true, string(Rejected)
	return answer, v.store.SaveRun(ctx, run)
}

// force lets the last good plan go past guards where an event of this pass asks for that, and not because one did when the
// plan was made.
func (v *Validate) force(ctx context.Context, last *plan.Plan, lease rack.Lease) error {
	if last.Force == lease.Force {
		return nil
	}
	last.Force = lease.Force
	return v.store.SavePlan(ctx, last)
}

// reportIfNew asks for a report where the status does not say the same already.
func (v *Validate) reportIfNew(ctx context.Context, answer Answer, run rack.Run, state rack.State) (Answer, error) {
	reported, err := v.store.Reported(ctx, run.Rack)
	if err != nil {
		return answer, err
	}
	// A rack that Sawhorse was never asked to change gets no status for being well.
	silent := reported == "" && state == rack.Reconciled && run.Goal == string(plan.GoalNone) && len(run.Warnings) == 0
	var steps []string
	if state == rack.Paused {
		for _, step := range answer.Steps {
			steps = append(steps, step.Name)
		}
	}
	if silent || reported == rack.Digest(state, run, steps) {
		return answer, v.bus.Quiet(run, state)
	}
	answer.Report, run.Outcome = true, string(answer.Outcome)
	return answer, v.store.SaveRun(ctx, run)
}

// accept puts a plan into force. The steps that are due count as not applied from here on, so that whatever happens to
// this pass, the next one does them.
func (v *Validate) accept(ctx context.Context, answer Answer, run rack.Run, f finding) (Answer, error) {
	answer.Outcome, answer.Report, answer.Steps = Planned, true, f.due
	run.Outcome = string(Planned)
	if f.Plan.Goal == plan.GoalNone { // only a change is to be written
		return answer, v.store.SaveRun(ctx, run)
	}
	owner, err := v.store.Claim(ctx, f.Plan.Cluster.ARN, run.Rack)
	if err != nil {
		return answer, err
	}
	if owner != run.Rack {
		return answer, fmt.Errorf("cluster %s: rack %s has claimed it in this moment; the next pass tells what to do", f.Plan.Cluster.Name, owner)
	}
	records := f.records
	records.Goal, records.Params, records.Checked = f.Plan.Goal, f.Effective, f.Objects
	if f.Config.Enabled {
		records.WasOn = true
		records.Credentials = "irsa"
		if f.Plan.Infrastructure.PodIdentity {
			records.Credentials = "podidentity"
		}
	}
	records.Applied = maps.Clone(records.Applied)
	for _, step := range f.due {
		delete(records.Applied, step.Name)
	}
	records.Warnings = maps.Clone(records.Warnings)
	maps.DeleteFunc(records.Warnings, func(step string, _ []params.Problem) bool {
		return !slices.ContainsFunc(f.Plan.Steps, func(s plan.Step) bool { return s.Name == step })
	})
	f.Plan.Generation = run.Generation
	// In this order: a plan that is kept while its steps count as applied would never have been in force, and be repaired towards.
	if err := v.store.SaveRecords(ctx, run.Rack, records); err != nil {
		return answer, err
	}
	if err := v.store.SavePlan(ctx, &f.Plan); err != nil {
		return answer, err
	}
	if err := v.store.SaveRun(ctx, run); err != nil {
		return answer, err
	}
	return answer, v.bus.Started(ctx, run, f.due)
}
