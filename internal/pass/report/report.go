// Package report ends an iteration of a pass: it writes the rack's status and outputs, and sends the event.
package report

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/metrics"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/resource"
	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/statemachine"
)

// Event and Answer are the state machine's call and its result.
type (
	Event  = statemachine.ReportCall
	Answer = statemachine.ReportAnswer
)

// Report writes status, outputs and events.
type Report struct {
	Store   *store.Store
	Outputs store.Published
	Send    func(ctx context.Context, detail events.Outbound) error
	Metrics metrics.Writer
	Now     func() time.Time
}

// missed reports whether the pass failed before it came to a step.
func missed(e Event, step string) bool {
	at, failed := slices.Index(e.Steps, step), slices.Index(e.Steps, e.Step)
	return e.Outcome == outcome.PassFailed && failed >= 0 && failed < at
}

// changed reports whether a step has changed anything, in any of the iterations that are reported together.
func changed(run store.Run, step string) bool {
	return slices.ContainsFunc(run.Steps, func(s store.StepRecord) bool { return s.Step == step && len(s.Changes) > 0 })
}

// Run reports one iteration. It may be repeated: the event is then sent again.
func (r *Report) Run(ctx context.Context, event Event) (Answer, error) {
	if event.DryRun { // it has no lease and no record
		status := r.status(event, store.Run{})
		return Answer{}, r.Send(ctx, detail(r.pass(event, store.Run{}, status), store.Run{}, status))
	}
	if event.Wait != nil {
		return Answer{}, r.wait(ctx, event)
	}
	lease, err := r.Store.Renew(ctx, event.Rack, event.Execution, r.Now())
	if err != nil {
		return Answer{}, err
	}
	if event.Generation == 0 { // the execution ended before it read its generation
		event.Generation = lease.Requested
	}
	if event.Outcome == outcome.PassFailed { // otherwise validate has found the rack
		exists, _, err := r.Store.Exists(ctx, r.Outputs.SSM, r.Outputs.Paths, event.Rack)
		if err != nil {
			return Answer{}, err
		}
		if !exists {
			return r.answer(ctx, event, lease)
		}
	}
	reported, err := r.Store.Reported(ctx, event.Rack)
	if err != nil {
		return Answer{}, err
	}
	reported = reported.By(event.Execution, lease.Served)
	run, err := r.Store.Run(ctx, event.Rack, reported.Since, event.Generation)
	if err != nil {
		return Answer{}, err
	}
	if event.Outcome == outcome.PassForgotten {
		return Answer{}, r.forget(ctx, event, run)
	}
	return Answer{}, r.report(ctx, event, run, reported)
}

// report writes the outputs and the status of a rack, and sends the event. If a later version of Sawhorse wrote the records,
// the pass has failed for that, and only the status says so.
func (r *Report) report(ctx context.Context, event Event, run store.Run, reported store.Reported) error {
	records, err := r.outputs(ctx, event.Rack)
	if err != nil {
		return err
	}
	rejected := event.Outcome == outcome.PassRejected
	if (rejected || missed(event, nodePoolsStep)) && !changed(run, nodePoolsStep) || rejected && len(run.Problems) > 0 {
		run.Effects = nil // nothing was done to the pools, or only repairs
	}
	run.Order(event.Steps)
	run.Recall(records)
	changes, err := r.Store.Changes(ctx, event.Rack)
	if err != nil {
		return err
	}
	run.Change = changes.Last // the step change has gone on since the beginning of the iteration
	status := r.status(event, run)
	if status.State == outcome.StateReconciled { // after the outputs, because it deletes their record if the cluster is gone
		if records, err = r.finish(ctx, event.Rack, run, records); err != nil {
			return err
		}
	}
	status.Karpenter, status.Brakes = records.InForce(), records.Brakes() // what was applied, and not what was asked for
	status.Warnings = slices.Concat(records.FreezeAdvice(run.Freeze), status.Warnings)
	if err := r.snapshot(ctx, run, &status, &reported); err != nil {
		return err
	}
	pass, newStatus := r.pass(event, run, status), !reported.Same(status)
	if before, err := reported.Status(); err == nil { // one that cannot be read has told nothing
		pass.Warnings, pass.UnchangedWarnings = status.NewWarnings(before)
	}
	var rollout *store.Rollout
	if records.WasOn && !off(status) {
		if rollout, err = r.rollout(ctx, event, run, status, newStatus, records); err != nil {
			return err
		}
	}
	if reported, err = r.publish(ctx, status, rollout, reported); err != nil {
		return err
	}
	if off(status) {
		if err := r.ends(ctx, event); err != nil {
			return err
		}
	}
	// The record comes last: if the report is stopped before, the next pass does not take this status for reported.
	if err := r.Send(ctx, detail(pass, run, status)); err != nil {
		return err
	}
	if err := r.Store.SaveStatus(ctx, status, digest(status, run), reported); err != nil {
		return err
	}
	return r.measure(event, metrics.Pass{State: status.State, Changes: len(status.Changed) - reported.Changes, NewStatus: newStatus})
}

// outputs writes the outputs of a rack, and returns its records; of a later version of Sawhorse it writes none.
func (r *Report) outputs(ctx context.Context, rack string) (plan.Records, error) {
	records, err := r.Store.Records(ctx, rack)
	if errors.Is(err, store.ErrLaterVersion) {
		return records, nil
	}
	if err != nil {
		return records, err
	}
	outputs, err := r.Store.Outputs(ctx, rack)
	if err != nil {
		return records, err
	}
	return records, r.writing(ctx, rack, func(w *resource.Writer) error { return r.Outputs.WriteOutputs(ctx, w, rack, outputs) })
}

// writing calls do with a writer that knows which outputs were written before.
func (r *Report) writing(ctx context.Context, rack string, do func(*resource.Writer) error) error {
	w, err := resource.Open(ctx, r.Store, rack, "report", r.Now)
	if err != nil {
		return err
	}
	_, err = w.End(ctx, do(w))
	return err
}

// publish writes the status parameter, unless it has this status already, without a pass that waits: SSM accepts three writes a
// second in an account. The parameter is read too, because somebody may have deleted it or written over it. The status of a
// failed pass is always written: its time shows that the failure is not over.
func (r *Report) publish(
	ctx context.Context, status store.Status, rollout *store.Rollout, reported store.Reported,
) (store.Reported, error) {
	if status.State != outcome.StateFailed && reported.Same(status) && !reported.Running {
		live, err := r.Outputs.Status(ctx, status.Rack)
		if err != nil || reported.Published(live) {
			return reported, err
		}
	}
	text, err := status.With(rollout).Text()
	if err != nil {
		return reported, err
	}
	if err := r.Store.ClearPublished(ctx, status.Rack); err != nil {
		return reported, err
	}
	return reported.Wrote(status, text), r.Outputs.WriteStatus(ctx, status.Rack, text)
}

// answer reports the failed pass of a rack that does not exist. It sends the event and stores nothing.
func (r *Report) answer(ctx context.Context, event Event, lease store.Lease) (Answer, error) {
	status := r.status(event, store.Run{})
	if err := r.Send(ctx, detail(r.pass(event, store.Run{}, status), store.Run{}, status)); err != nil {
		return Answer{}, err
	}
	return Answer{Unknown: lease.Served == 0}, r.measure(event, metrics.Pass{State: status.State, Unknown: true})
}

// measure writes the metrics of a pass, with what the event says of it.
func (r *Report) measure(event Event, pass metrics.Pass) error {
	took := r.Now().Sub(event.Started)
	pass.Rack, pass.Generation, pass.Execution, pass.Took = event.Rack, event.Generation, event.Execution, &took
	return r.Metrics.Pass(pass)
}

// forget deletes the status, the outputs and the records of a rack. The records and the entry in the schedule's list are
// deleted last, so that a report that is stopped before is repeated.
func (r *Report) forget(ctx context.Context, event Event, run store.Run) error {
	last, err := r.Store.Plan(ctx, event.Rack)
	if err != nil {
		return err
	}
	arn := ""
	if last != nil {
		arn = last.Cluster.ARN
	}
	err = r.writing(ctx, event.Rack, func(w *resource.Writer) error { return r.Outputs.Forget(ctx, w, event.Rack) })
	if err != nil {
		return err
	}
	pass := r.pass(event, run, r.status(event, run))
	pass.Changed = append(pass.Changed, events.Change{Step: "report", Subject: "rack " + event.Rack, Action: "forgotten"})
	if err := r.Send(ctx, &events.Reconciled{Pass: pass}); err != nil {
		return err
	}
	if err := r.ends(ctx, event); err != nil {
		return err
	}
	if err := r.Store.ForgetChanges(ctx, event.Rack); err != nil {
		return err
	}
	if err := r.Store.ForgetSnapshots(ctx, event.Rack); err != nil {
		return err
	}
	if err := r.Store.End(ctx, event.Rack, arn); err != nil {
		return err
	}
	return r.Store.Delist(ctx, event.Rack)
}

// digest returns the digest that the next validate compares its findings with. That of a pass that failed, or in which a
// step rejected the input, equals no findings, so the first pass without problems reports again.
func digest(status store.Status, run store.Run) string {
	if status.State == outcome.StateFailed || len(stepProblems(run)) > 0 {
		return string(outcome.StateFailed)
	}
	return store.Digest(status.State, run, status.Steps)
}

func (r *Report) status(event Event, run store.Run) store.Status {
	now := r.Now().UTC()
	status := store.Status{
		Rack: event.Rack, State: outcome.StateReconciled, Generation: event.Generation, Goal: run.Goal,
		Time: now.Format(time.RFC3339), DurationSeconds: seconds(now.Sub(event.Started)), Execution: event.Execution,
		Problems: slices.Concat(run.Problems, stepProblems(run)), Warnings: run.Warnings, Change: run.Change,
	}
	for _, step := range run.Steps {
		status.Warnings = slices.Concat(status.Warnings, step.Incidents, step.Warnings)
		status.Incidents = append(status.Incidents, step.Incidents...)
		for _, c := range step.Changes {
			status.Changed = append(status.Changed, c.Subject+" "+c.Action)
		}
	}
	switch {
	case event.Error != "" && event.Outcome != outcome.PassRejected:
		status.State = outcome.StateFailed
		status.Failure = explain(event)
	case event.Outcome == outcome.PassRejected:
		status.State = outcome.StateRejected
	case event.Outcome == outcome.PassPaused:
		status.State, status.Steps = outcome.StatePaused, event.Steps
	}
	for _, effect := range run.Effects {
		status.Effects = append(status.Effects, effect.String())
	}
	return status
}

func stepProblems(run store.Run) []params.Problem {
	var all []params.Problem
	for _, step := range run.Steps {
		all = append(all, step.Problems...)
	}
	return all
}

// refusedChange returns the version of the change that a step gave up, or 0 if none did.
func refusedChange(run store.Run) int64 {
	for _, step := range run.Steps {
		if step.Refused != 0 {
			return step.Refused
		}
	}
	return 0
}

// finish records that Karpenter has been removed, once all steps of its removal are applied. If the cluster is gone, it
// deletes all records of the rack. It returns the records as they are then.
func (r *Report) finish(ctx context.Context, name string, run store.Run, records plan.Records) (plan.Records, error) {
	if run.Goal != string(plan.GoalAccess) || !records.WasOn {
		return records, nil
	}
	p, err := r.Store.Plan(ctx, name)
	if err != nil || p == nil || p.Goal != plan.GoalAccess || len(p.Due(records.Applied)) > 0 {
		return records, err
	}
	if p.Cluster.Gone {
		return plan.Records{}, r.Store.End(ctx, name, p.Cluster.ARN)
	}
	records.WasOn, records.Credentials, records.Warnings = false, "", nil
	records.CNIIndependent, records.HadBuildRole, records.HadMigration = false, false, false
	return records, r.Store.SaveRecords(ctx, name, records)
}

// detail returns the event with the result of the pass.
func detail(pass events.Pass, run store.Run, status store.Status) events.Outbound {
	switch status.State {
	case outcome.StateFailed:
		f := status.Failure
		return &events.ReconcileFailed{Pass: pass, Step: f.Step, Error: f.Error, Reason: f.Reason, Remedy: f.Remedy}
	case outcome.StateRejected:
		return &events.Rejected{Pass: pass, Change: refusedChange(run)}
	default:
		return &events.Reconciled{Pass: pass}
	}
}

func (r *Report) pass(event Event, run store.Run, status store.Status) events.Pass {
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
	pass.Pools, pass.Problems, pass.Warnings = run.Effects, status.Problems, status.Warnings
	return pass
}

func seconds(d time.Duration) float64 {
	return float64(d.Round(10*time.Millisecond)) / float64(time.Second)
}

// Step Functions' names for the ends of an execution that could not report itself.
const (
	Aborted  = "ABORTED"
	TimedOut = "TIMED_OUT"
)

// explain returns the failure that the state machine caught, or the way in which the execution ended, with a remedy.
func explain(event Event) *store.Failure {
	f := &store.Failure{Step: event.Step, Error: event.Error, Reason: reason(event)}
	f.Remedy = remedy(event, f.Reason)
	return f
}

// reason returns the message from Lambda's error object, which is the cause that the state machine has caught.
func reason(event Event) string {
	var lambda struct {
		Message string `json:"errorMessage"`
	}
	if err := json.Unmarshal([]byte(event.Cause), &lambda); err == nil && lambda.Message != "" {
		return lambda.Message
	}
	return cmp.Or(event.Cause, unexplained[event.Error], "no cause was given")
}

// unexplained has the reasons for errors that Step Functions gives no cause for.
var unexplained = map[string]string{
	"States.Timeout": "the call took longer than its time",
	Aborted:          "somebody stopped the execution",
	TimedOut:         "the execution took longer than a pass may",
}
