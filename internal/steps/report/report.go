// Package report ends a round: it writes the rack's status and outputs and tells the bus.
package report

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/meter"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/rack"
	"github.com/sawhorse-io/sawhorse/internal/steps"
)

// Event is the state machine's call.
type Event struct {
	Rack       string `json:"rack"`
	Execution  string `json:"execution"`
	Generation int64  `json:"generation"`
	// Started is when the execution started, RFC 3339.
	Started time.Time `json:"started"`
	// Outcome is validate's answer, or Rejected where a step refused the input.
	Outcome string `json:"outcome"`
	// Steps are the names of the steps that were due.
	Steps []string `json:"steps"`
	// Error and Cause are the state machine's for a failed pass; Step is the step that failed.
	Error string `json:"error"`
	Cause string `json:"cause"`
	Step  string `json:"step"`
	// DryRun is a dry run that failed: it is answered, and changes no status.
	DryRun bool `json:"dryRun"`
	// Request is the text by which the sender of a dry run recognizes the answer.
	Request string `json:"request"`
}

// Answer tells the state machine what is left to do.
type Answer struct {
	// Unknown: there is no rack of that name, and there was none; the lease that its event has made goes.
	Unknown bool `json:"unknown"`
}

// Report writes status, outputs and events.
type Report struct {
	Store   *rack.Store
	Outputs rack.Published
	Send    func(ctx context.Context, detail events.Outbound) error
	Meter   meter.Meter
	Now     func() time.Time
}

// About is what the log says of a call.
func (e Event) About() []any {
	return []any{"rack", e.Rack, "generation", e.Generation, "execution", e.Execution}
}

// Run reports one round.
func (r *Report) Run(ctx context.Context, event Event) (Answer, error) {
	if event.DryRun { // which has no lease and no record
		return Answer{}, r.Send(ctx, r.detail(event, rack.Run{}, r.status(event, rack.Run{})))
	}
	lease, err := r.Store.Renew(ctx, event.Rack, event.Execution, r.Now())
	if err != nil {
		return Answer{}, err
	}
	if event.Generation == 0 { // the execution ended before anybody noted it
		event.Generation = lease.Requested
	}
	if event.Outcome == string(rack.Failed) { // else validate has read its parameters
		exists, err := r.Store.Exists(ctx, r.Outputs.SSM, r.Outputs.Paths, event.Rack)
		if err != nil {
			return Answer{}, err
		}
		if !exists {
			return r.answer(ctx, event, lease)
		}
	}
	told, err := r.Store.Told(ctx, event.Rack, event.Execution, lease.Served)
	if err != nil {
		return Answer{}, err
	}
	run, err := r.Store.Run(ctx, event.Rack, told.Since, event.Generation)
	if err != nil {
		return Answer{}, err
	}
	if event.Outcome == "Forgotten" {
		return Answer{}, r.forget(ctx, event, run)
	}
	outputs, err := r.Store.Outputs(ctx, event.Rack)
	if err != nil {
		return Answer{}, err
	}
	if err := r.Outputs.WriteOutputs(ctx, event.Rack, outputs); err != nil {
		return Answer{}, err
	}
	records, err := r.Store.Records(ctx, event.Rack)
	if err != nil {
		return Answer{}, err
	}
	run.Order(event.Steps)
	run.Recall(records)
	status := r.status(event, run)
	if status.State == rack.Reconciled { // behind the outputs: it ends a rack whose cluster is gone, and what says that they go
		if err := r.finish(ctx, event.Rack, run, records); err != nil {
			return Answer{}, err
		}
	}
	known := told.Says(status, r.Now())
	if !known {
		text, err := status.Text()
		if err != nil {
			return Answer{}, err
		}
		if err := r.Store.Untell(ctx, event.Rack); err != nil {
			return Answer{}, err
		}
		if err := r.Outputs.WriteStatus(ctx, event.Rack, text); err != nil {
			return Answer{}, err
		}
		told = told.Wrote(status, r.Now())
	}
	// The digest goes last: what it says has been told then, also if the report was stopped on the way and ran again.
	if err := r.Send(ctx, r.detail(event, run, status)); err != nil {
		return Answer{}, err
	}
	if err := r.Store.SaveStatus(ctx, status, digest(status, run), told); err != nil {
		return Answer{}, err
	}
	return Answer{}, r.measure(event, status, len(status.Changed)-told.Changes, !known)
}

// answer tells of a pass of a rack that there is not, and leaves nothing.
func (r *Report) answer(ctx context.Context, event Event, lease rack.Lease) (Answer, error) {
	status := r.status(event, rack.Run{})
	if err := r.Send(ctx, r.detail(event, rack.Run{}, status)); err != nil {
		return Answer{}, err
	}
	took := r.Now().Sub(event.Started)
	return Answer{Unknown: lease.Served == 0}, r.Meter.Pass(meter.Pass{
		Rack: event.Rack, Generation: event.Generation, Execution: event.Execution, State: string(status.State), Took: &took,
	})
}

func (r *Report) measure(event Event, status rack.Status, changes int, news bool) error {
	took := r.Now().Sub(event.Started)
	return r.Meter.Pass(meter.Pass{
		Rack: event.Rack, Generation: event.Generation, Execution: event.Execution,
		State: string(status.State), Changes: changes, Took: &took,
		Told: news || status.State != rack.Reconciled,
	})
}

// forget ends what is kept and published of a rack. The records go last, and then its place on the list of the schedule: what is
// stopped on the way is done again.
func (r *Report) forget(ctx context.Context, event Event, run rack.Run) error {
	last, err := r.Store.Plan(ctx, event.Rack)
	if err != nil {
		return err
	}
	arn := ""
	if last != nil {
		arn = last.Cluster.ARN
	}
	if err := r.Outputs.Forget(ctx, event.Rack); err != nil {
		return err
	}
	pass := r.pass(event, run, r.status(event, run))
	pass.Changed = append(pass.Changed, events.Change{Step: "report", Subject: "rack " + event.Rack, Action: "forgotten"})
	if err := r.Send(ctx, events.Reconciled{Pass: pass}); err != nil {
		return err
	}
	if err := r.Store.End(ctx, event.Rack, arn); err != nil {
		return err
	}
	return r.Store.Delist(ctx, event.Rack)
}

// digest of a pass that failed, or in which a step refused the input, is no finding of validate's, so that the first pass
// that finds all well says so.
func digest(status rack.Status, run rack.Run) string {
	if status.State == rack.Failed || len(stepProblems(run)) > 0 {
		return string(rack.Failed)
	}
	return rack.Digest(status.State, run, status.Steps)
}

func (r *Report) status(event Event, run rack.Run) rack.Status {
	now := r.Now().UTC()
	status := rack.Status{
		Rack: event.Rack, State: rack.Reconciled, Generation: event.Generation, Goal: run.Goal,
		Time: now.Format(time.RFC3339), DurationSeconds: seconds(now.Sub(event.Started)), Execution: event.Execution,
		Problems: slices.Concat(run.Problems, stepProblems(run)), Warnings: run.Warnings,
	}
	for _, step := range run.Steps {
		status.Warnings = slices.Concat(status.Warnings, step.Incidents, step.Warnings)
		for _, c := range step.Changes {
			status.Changed = append(status.Changed, c.Subject+" "+c.Action)
		}
	}
	switch {
	case event.Error != "" && event.Outcome != "Rejected":
		status.State = rack.Failed
		failure := explain(event)
		status.Failure = &failure
	case event.Outcome == "Rejected":
		status.State = rack.Rejected
	case event.Outcome == "Paused":
		status.State, status.Steps = rack.Paused, event.Steps
	}
	if status.State != rack.Rejected { // nothing becomes of the pools
		for _, effect := range run.Effects {
			status.Pools = append(status.Pools, effect.String())
		}
	}
	return status
}

func stepProblems(run rack.Run) []params.Problem {
	var all []params.Problem
	for _, step := range run.Steps {
		all = append(all, step.Problems...)
	}
	return all
}

// refusedChange is the change request that a step refused; empty where none did.
func refusedChange(run rack.Run) string {
	for _, step := range run.Steps {
		if step.Refused != "" {
			return step.Refused
		}
	}
	return ""
}

// finish notes that Karpenter has been removed completely, once it has.
func (r *Report) finish(ctx context.Context, name string, run rack.Run, records plan.Records) error {
	if run.Goal != string(plan.GoalAccess) || !records.WasOn {
		return nil
	}
	p, err := r.Store.Plan(ctx, name)
	if err != nil {
		return err
	}
	if p == nil || p.Goal != plan.GoalAccess || len(p.Due(records.Applied)) > 0 {
		return nil
	}
	if p.Cluster.Gone {
		return r.Store.End(ctx, name, p.Cluster.ARN)
	}
	records.WasOn, records.Credentials, records.Warnings = false, "", nil
	return r.Store.SaveRecords(ctx, name, records)
}

// detail is the event that tells what became of the round.
func (r *Report) detail(event Event, run rack.Run, status rack.Status) events.Outbound {
	pass := r.pass(event, run, status)
	switch status.State {
	case rack.Failed:
		f := status.Failure
		return events.ReconcileFailed{Pass: pass, Step: f.Step, Error: f.Error, Reason: f.Reason, Remedy: f.Remedy}
	case rack.Rejected:
		return events.Rejected{Pass: pass, Change: refusedChange(run)}
	default:
		return events.Reconciled{Pass: pass}
	}
}

func (r *Report) pass(event Event, run rack.Run, status rack.Status) events.Pass {
	pass := events.Pass{
		Rack: event.Rack, Generation: event.Generation, Execution: event.Execution,
		Request: event.Request, DryRun: event.DryRun, DurationSeconds: seconds(r.Now().Sub(event.Started)),
	}
	pass.Steps = event.Steps
	for _, step := range run.Steps {
		for _, c := range step.Changes {
			pass.Changed = append(pass.Changed, events.Change{Step: step.Step, Subject: c.Subject, Action: c.Action})
		}
	}
	pass.Pools, pass.Problems, pass.Warnings = pools(run.Effects), Problems(status.Problems), Problems(status.Warnings)
	return pass
}

// pools are what becomes of the pools as events carry it.
func pools(effects []plan.Effect) events.List[events.PoolEffect] {
	var list events.List[events.PoolEffect]
	for _, e := range effects {
		list = append(list, events.PoolEffect{
			Pool: e.Pool, Change: string(e.Change), Replaces: e.Replaces, MayReplace: e.MayReplace, Reasons: e.Reasons, Nodes: e.Nodes, Replaced: e.Replaced,
		})
	}
	return list
}

// Problems are a rack's problems as its events carry them.
func Problems(all []params.Problem) events.List[events.Problem] {
	var list events.List[events.Problem]
	for _, p := range all {
		list = append(list, events.Problem(p))
	}
	return list
}

func seconds(d time.Duration) float64 {
	return float64(d.Round(10*time.Millisecond)) / float64(time.Second)
}

// How an execution can end that did not report itself, as Step Functions calls it.
const (
	Aborted  = "ABORTED"
	TimedOut = "TIMED_OUT"
)

// explain makes a failure of what the state machine caught, or of how it ended.
func explain(event Event) rack.Failure {
	f := rack.Failure{Step: event.Step, Error: event.Error, Reason: reason(event)}
	switch {
	case strings.Contains(f.Reason, "AccessDenied") || strings.Contains(f.Reason, "UnauthorizedOperation"):
		f.Remedy = "A right is missing: compare the function's role with the deployed stack (cdk diff), and look for a service control policy or permissions boundary that denies the action."
	case strings.Contains(f.Reason, steps.NoAnswer):
		f.Remedy = "The function cannot reach the API server. If its endpoint is private, deploy the stack with subnetIds and securityGroupIds in a network " +
			"from which it can be reached (docs/private.md), and let those groups in at port 443 of the cluster security group. If it is public, see " +
			"whether its publicAccessCidrs let the function in. If the cluster is being updated, the next pass goes on from here."
	case event.Error == "StepDeadlineExceeded":
		f.Remedy = "What the step waits for did not happen in time; mend that, and the next event or the schedule goes on from here."
	case event.Error == "States.Timeout" || event.Error == "Throttled":
		f.Remedy = "AWS was slow or refused for its rate; nothing is lost, the next event or the schedule goes on from here."
	case event.Error == Aborted || event.Error == TimedOut:
		f.Remedy = "Nothing is lost: another pass goes on from here by itself, at the latest by the schedule. To have Sawhorse leave the rack alone, set paused to true."
	case event.DryRun:
		f.Remedy = "Nothing was changed; ask again, and if it fails in the same way, read the log of the function validate."
	case event.Error == "Lambda.TooManyRequestsException":
		f.Remedy = "Lambda had no room for another call, for minutes; the next event or the schedule goes on from here. If many events come in (executions of the state machine), " +
			"see who puts them on the bus; else raise the account's concurrency in Lambda, or the deployment's reservedConcurrency or validateConcurrency (docs/deploy.md)."
	case event.Error == "Unavailable":
		f.Remedy = "AWS or the cluster's API server failed or did not answer, several times; once it does, the next event or the schedule goes on from here."
	default:
		f.Remedy = "The next event or the schedule tries again from here; if it fails in the same way, read the log of the step's function."
	}
	return f
}

// reason takes the message out of Lambda's error object, which is what the state machine has as a cause.
func reason(event Event) string {
	var lambda struct {
		Message string `json:"errorMessage"`
	}
	if err := json.Unmarshal([]byte(event.Cause), &lambda); err == nil && lambda.Message != "" {
		return lambda.Message
	}
	return cmp.Or(event.Cause, unexplained[event.Error], "no cause was given")
}

// unexplained says what Step Functions gives no cause for.
var unexplained = map[string]string{
	"States.Timeout": "the call took longer than its time",
	Aborted:          "somebody stopped the execution",
	TimedOut:         "the execution took longer than a pass may",
}
