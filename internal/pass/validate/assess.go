package validate

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/canonical"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/internal/validation"
)

// verdict is what follows from an input.
type verdict struct {
	validation.Result
	outcome outcome.Outcome
	// state is the rack's state if no step runs.
	state outcome.State
	// due are the steps that a pass takes, steps those that this one takes.
	due, steps []plan.Step
	// why has the reason for each step that is due, and for what else is not as it should be.
	why map[string]string
	// values are those of the rack's parameters, with what they name in S3.
	values store.Values
	// change is what became of the last change, or nil if there was none.
	change *store.ChangeStatus
	// stopped means that the rack is paused or held, and no step changes anything.
	stopped bool
	// freeze is what karpenter_freeze asks for, or nil if its value was refused or not read.
	freeze *bool

	// records and plan are what to save, or nil if what is saved stays. claims means that the plan needs the cluster's claim.
	records *plan.Records
	plan    *plan.Plan
	claims  bool
	// report asks for a report. lost means that Parameter Store does not have the status that was written last.
	report, lost bool
	// begins means that the steps are announced.
	begins bool
}

// assess decides what is to be done with a rack. The same input has the same verdict.
func assess(in input) verdict {
	d := verdict{state: outcome.StateReconciled, why: map[string]string{}, change: in.changes.Last}
	switch {
	case in.unknown:
		d.outcome = outcome.PassUnchanged
		if in.served == 0 { // otherwise it existed: its lease keeps counting while records of its runs are kept
			d.outcome = outcome.PassUnknown
		}
		return d
	case in.isForgotten() && in.held(): // the audit finds that it is to be forgotten, once it is let go
		d.outcome = outcome.PassUnchanged
		return d
	case in.isForgotten():
		d.forget(in)
		return d
	}
	d.Result = validation.Validate(in.judged())
	d.values = in.values(d.Effective)
	d.Warnings, d.stopped = slices.Concat(in.holdAdvice, d.Warnings), d.Config.Paused || in.held()
	d.Plan.Generation, d.Plan.Force = in.generation, in.forced()
	d.Plan.Params, d.Plan.Digests = d.Effective, in.digests()
	if in.known(params.ParamFreeze) {
		d.freeze = new(in.parsed.Config.Freeze)
	}
	if in.records.Paused != d.Config.Paused || in.records.Held != in.held() {
		in.records.Paused, in.records.Held = d.Config.Paused, in.held()
		d.records = &in.records
	}
	if d.Plan.Goal != plan.GoalNone && len(d.Problems) == 0 {
		d.due, d.why = due(&d.Plan, in)
	}
	d.due = in.withChanges(d.due)
	if in.refusedOff && d.Plan.Goal != plan.GoalKarpenter && !d.stopped && len(d.Problems) == 0 && in.repairsFirst() {
		d.Problems = in.status.Problems // the refusal stays what the status says
		d.reject(in)
		return d
	}
	switch {
	case len(d.Problems) > 0:
		d.reject(in)
	case d.stopped:
		d.pause(in)
	case len(d.due) > 0:
		d.accept(in)
	default:
		d.unchanged(in)
	}
	if in.changes.Writing() || in.changes.differ || in.changes.more {
		d.why[plan.ChangeStep.Name] = "a change was not answered, or is not written to Parameter Store yet"
	}
	return d
}

// digests returns the digests of the objects that the parameters name, by URI; nil if they name none.
func (in input) digests() (all map[string]string) {
	for uri, object := range in.objects {
		if all == nil {
			all = map[string]string{}
		}
		all[uri] = digest(object)
	}
	return all
}

// repairsFirst reports whether an audit found that the plan with Karpenter, which stays in force because turning it off is refused,
// needs repairs. The pass then does these, and the next audit tries again to turn Karpenter off; so it also does where the repairs
// have failed. A request by force is for turning it off.
func (in input) repairsFirst() bool {
	if !in.full || !in.audited || in.status == nil || in.status.State != outcome.StateRejected || len(in.force) > 0 || in.proposed != nil {
		return false
	}
	steps, _ := in.repairs(in.inForce)
	return len(steps) > 0
}

// repairs returns the steps of the last good plan that are due. While turning Karpenter off is refused, nothing further is handed over
// to it: a step that is not recorded as done repairs nothing.
func (in input) repairs(p *plan.Plan) ([]plan.Step, map[string]string) {
	steps, why := due(p, in)
	if in.refusedOff {
		repairs := func(s plan.Step) bool {
			return s.HandsOver() && s.PrecheckFor == "" && in.records.Applied[s.Name] != ""
		}
		some := slices.ContainsFunc(steps, repairs) // only then what makes them safe
		steps = slices.DeleteFunc(steps, func(s plan.Step) bool { return s.HandsOver() && !repairs(s) && (s.PrecheckFor == "" || !some) })
		maps.DeleteFunc(why, func(name, _ string) bool { return !has(steps, name) })
	}
	return steps, why
}

// known reports whether the value of a brake was read and not refused. Otherwise the brake stays as it is, whatever is wrong
// with the other parameters.
func (in input) known(brake string) bool {
	_, read := in.tree.Values[brake]
	return !in.parsed.Config.HasRefused(brake) && (read || len(in.tree.Values) <= params.MostNames)
}

// paused reports whether passes change nothing of the rack.
func (in input) paused() bool {
	if !in.known(params.ParamPaused) {
		return in.records.Paused
	}
	return in.parsed.Config.Paused
}

// due returns the steps of a plan that a pass takes, with the reason for each: the steps whose part of the plan differs from
// what was applied, those that an audit found due, and the prechecks of both.
func due(p *plan.Plan, in input) ([]plan.Step, map[string]string) {
	why := maps.Clone(in.found)
	if why == nil {
		why = map[string]string{}
	}
	if in.full && !in.parsed.Config.Paused && !in.held() && !in.audited {
		for _, s := range p.Steps {
			why[s.Name] = "it was not audited"
		}
		return slices.Clone(p.Steps), why
	}
	if slices.ContainsFunc(in.forced(), func(word string) bool { return strings.HasPrefix(word, events.ForceRetire) }) {
		why["nodepools"] = "a request deletes a retiring pool"
	}
	if changed := p.Due(in.records.Applied); len(changed) > 0 {
		lines := differing(in.inForce, p)
		for _, s := range changed {
			why[s.Name] = cmp.Or(lines[s.Name], "it has not been done for this plan")
		}
	}
	applied := maps.Clone(in.records.Applied)
	maps.DeleteFunc(applied, func(step, _ string) bool { return why[step] != "" })
	for _, s := range p.Due(applied) {
		if why[s.Name] == "" {
			why[s.Name] = "it comes with a step that it makes safe"
		}
	}
	steps := slices.DeleteFunc(slices.Clone(p.Steps), func(s plan.Step) bool { return why[s.Name] == "" })
	maps.DeleteFunc(why, func(name, _ string) bool { return !has(steps, name) })
	return steps, why
}

func has(steps []plan.Step, name string) bool {
	return slices.ContainsFunc(steps, func(s plan.Step) bool { return s.Name == name })
}

// differing says, by step, where a plan differs from the one in force, which may be nil.
func differing(inForce, p *plan.Plan) map[string]string {
	lines := map[string]string{}
	if inForce == nil {
		return lines
	}
	for _, d := range plan.Differences(inForce, p) {
		lines[d.Step] = fmt.Sprintf("its part of the plan differs from that of the last pass in %d places: %s",
			len(d.Lines), outcome.ShortenTo(mostOfDifference, d.Lines[0]))
	}
	return lines
}

// mostOfDifference is the length in bytes to which the first difference is cut.
const mostOfDifference = 200

// withChanges returns the steps with the one that writes changes, if there are any to write. Only a freeze comes before it, which
// must not wait for Parameter Store. While a write that has failed rests, it comes last, so that it holds up nothing. Then it comes first
// again: another step may fail in each pass, and a change that cannot be written is given up in time all the same.
func (in input) withChanges(steps []plan.Step) []plan.Step {
	switch {
	case !in.changes.Writing():
		return steps
	case in.changes.rests:
		return append(slices.Clone(steps), plan.ChangeAgainStep)
	case len(steps) > 0 && steps[0].Name == plan.FreezeStep:
		return slices.Insert(slices.Clone(steps), 1, plan.ChangeStep)
	}
	return append([]plan.Step{plan.ChangeStep}, steps...)
}

// forget removes Sawhorse's access to the rack's cluster, and then the rack's records. The step access counts as not applied
// from here on, so that a rack that is created again before the end gets its access again.
func (d *verdict) forget(in input) {
	d.outcome, d.report = outcome.PassForgotten, true
	d.why["rack"] = "it has no parameters any more"
	if in.inForce == nil || in.records.Goal == "" { // no cluster was changed, or only the report is left
		return
	}
	in.records.Applied = maps.Clone(in.records.Applied)
	delete(in.records.Applied, "access")
	d.records, d.steps = &in.records, []plan.Step{plan.CloseStep}
}

// reject reports the problems, and goes on with the last good plan: every pass lays the freeze over it, or takes it off. A full
// pass also repairs what differs from it, and so does every pass while a change of Karpenter's version is under way, or
// the way back from one: nothing else would find out whether the new version works, or bring the old one back.
func (d *verdict) reject(in input) {
	d.outcome, d.state = outcome.PassRejected, outcome.StateRejected
	steps := d.repair(in)
	// The rest of a change that was valid when it was accepted is written too.
	d.steps = in.withChanges(steps)
	d.reportIfNew(in, nil)
	d.report = d.report || len(d.steps) > 0
}

// repair returns the steps of the last good plan that are due. They also count as not applied if the plan has changed.
func (d *verdict) repair(in input) []plan.Step {
	gone := d.Plan.Goal != plan.GoalNone && d.Plan.Cluster.Name == "" // there is no cluster to repair
	if in.inForce == nil || d.stopped || gone {
		return nil
	}
	last := *in.inForce
	last.Steps = slices.Clone(last.Steps)
	takenBack := last.TakeBack(in.records.Karpenter.RolledBack)
	if takenBack { // the pools of the other version were made anew
		validation.Keep(&last, in.earlier(last.Pooled(in.records.Applied)), in.facts)
	}
	freezes := d.freeze != nil && last.Freeze(*d.freeze)
	if freezes {
		known, applied := last.From == in.records.From(), in.records.Applied
		in.records.Applied, in.records.Params = maps.Clone(applied), maps.Clone(in.records.Params)
		for _, step := range []string{plan.FreezeStep, "nodepools"} {
			delete(in.records.Applied, step)
		}
		in.records.Params[params.ParamFreeze] = strconv.FormatBool(*d.freeze)
		if known { // the plan is still made from the parameters on record
			last.Params, last.From = in.records.Params, in.records.From()
		}
		last.Last = in.inForce.Before(last, applied)
		d.records, d.plan = &in.records, &last
	}
	steps, why := in.repairs(&last)
	if !in.full && !takenBack && !last.Changing(in.records.Applied) {
		steps = slices.DeleteFunc(steps, func(s plan.Step) bool { return s.Name != plan.FreezeStep })
	}
	d.why = why
	// Only an event of this pass decides whether the steps skip the checks that protect running pods, and not one of the
	// pass that made the plan.
	if len(steps) > 0 && (freezes || takenBack || in.refusedOff || !slices.Equal(last.Force, in.forced())) {
		last.Force = in.forced()
		d.plan = &last
		if in.refusedOff { // the table has the plan that turns Karpenter off, and its records
			d.records = &in.records
		}
	}
	return steps
}

// pause reports what a pass would do of a rack that is paused or held. The state machine takes none of the steps but the one
// that writes changes, also of such a rack.
func (d *verdict) pause(in input) {
	d.outcome, d.state, d.why = outcome.PassPaused, outcome.StatePaused, map[string]string{}
	if in.changes.Writing() {
		d.steps, d.report = in.withChanges(nil), true
		return
	}
	d.steps = d.due
	d.reportIfNew(in, d.due)
}

// accept puts the plan into force. The steps that are due count as not applied from here on, so that the next pass runs
// them whatever happens to this one.
func (d *verdict) accept(in input) {
	d.outcome, d.steps, d.report = outcome.PassPlanned, d.due, true
	if d.Plan.Goal != plan.GoalNone { // otherwise only changes are to be written
		d.record(in)
		d.begins = true
	}
}

// unchanged ends an iteration without steps. A full pass saves the plan and the records if they differ from those that
// were read, because most parameters can change without making a step due. Every pass does if karpenter_version does
// not ask any more for the version that failed: if it asks again later, that is another write.
func (d *verdict) unchanged(in input) {
	d.outcome = outcome.PassUnchanged
	forgets := in.records.Karpenter.RolledBack != d.accepted(in).Karpenter.RolledBack
	if d.Plan.Goal != plan.GoalNone && (in.full || forgets || in.refusedOff) && !d.isRecorded(in) {
		d.why["plan"] = "the plan or the records of the last pass differ from what the parameters say now"
		d.record(in)
	}
	d.reportIfNew(in, nil)
}

// record saves the plan and the records that belong to it.
func (d *verdict) record(in input) {
	records := d.accepted(in)
	d.Plan.From, d.Plan.Last = records.From(), in.inForce.Before(d.Plan, in.records.Applied)
	d.records, d.plan, d.claims = &records, &d.Plan, in.facts.Records.ClusterLock != in.rack
}

// accepted returns the rack's records as they are once the plan is in force.
func (d *verdict) accepted(in input) plan.Records {
	records := in.records
	records.Goal, records.Params, records.Checked, records.Objects = d.Plan.Goal, d.Plan.Params, d.Objects, d.Plan.Digests
	if d.Config.Enabled {
		records.WasOn = true
		records.Karpenter = in.records.Accept(d.Plan.Controller.Release.Version)
		if failed := records.Karpenter.RolledBack; failed != nil && failed.Version != d.Config.KarpenterVersion {
			records.Karpenter.RolledBack = nil
		}
		records.HadBuildRole = records.HadBuildRole || d.Plan.Infrastructure.BuildNodes != nil
		records.HadMigration = records.HadMigration || len(d.Plan.Nodegroups.Migration.Groups) > 0
		records.CNIIndependent = d.Plan.Infrastructure.CNIIndependent
		records.Credentials = "irsa"
		if d.Plan.Infrastructure.PodIdentity {
			records.Credentials = "podidentity"
		}
	}
	records.Applied = maps.Clone(records.Applied)
	for _, step := range d.due {
		delete(records.Applied, step.Name)
	}
	if !slices.ContainsFunc(d.Plan.Steps, func(s plan.Step) bool { return s.Name == plan.FreezeStep }) {
		delete(records.Applied, plan.FreezeStep) // it ends with the NodePools
	}
	records.Warnings = maps.Clone(records.Warnings)
	maps.DeleteFunc(records.Warnings, func(step string, _ []params.Problem) bool {
		return !slices.ContainsFunc(d.Plan.Steps, func(s plan.Step) bool { return s.Name == step })
	})
	return records
}

// isRecorded reports whether record would change nothing.
func (d *verdict) isRecorded(in input) bool {
	if in.inForce == nil || in.refusedOff || in.facts.Records.ClusterLock != in.rack {
		return false
	}
	now := d.accepted(in)
	return len(now.Warnings) == len(in.records.Warnings) && same(now, in.records) && same(ofAnyPass(*in.inForce), ofAnyPass(d.Plan))
}

// ofAnyPass returns a plan without the fields that belong to the pass that made it.
func ofAnyPass(p plan.Plan) plan.Plan {
	p.Generation, p.Force, p.From, p.Last, p.Effects = 0, nil, "", nil, nil
	return p
}

// same reports whether two values have the same JSON, because one was read from the table and the other was made now.
func same(a, b any) bool { return bytes.Equal(canonical.JSON(a), canonical.JSON(b)) }

// reportIfNew asks for a report if the status does not say what was found. A full request also compares what Parameter Store
// has. steps are those that a paused or held rack waits with.
func (d *verdict) reportIfNew(in input, steps []plan.Step) {
	run := d.in(store.Run{})
	// A rack that never asked for a change gets no status if there is nothing to warn of.
	if d.change == nil && in.reported.Findings == "" && !in.reported.Running &&
		d.state == outcome.StateReconciled && d.Plan.Goal == plan.GoalNone && len(d.Warnings) == 0 {
		return
	}
	var names []string
	for _, step := range steps {
		names = append(names, step.Name)
	}
	differs := ""
	switch {
	case in.reported.Running:
		differs = "the status still has a pass that waits"
	case in.reported.Findings != store.Digest(d.state, run, names):
		differs = "the status says something else"
	case run.Values != "" && run.Values != in.reported.Values:
		differs = "there is no snapshot of the values"
	case in.full:
		differs, d.lost = in.unpublished(store.Status{
			Rack: in.rack, State: d.state, Goal: run.Goal, Karpenter: in.records.InForce(),
			Problems: run.Problems, Warnings: warnings(run, in.records), Steps: names, Brakes: in.records.Brakes(), Change: run.Change,
		})
	}
	if d.report = differs != ""; d.report {
		d.why["status"] = differs
	}
}

// unpublished compares a status with the last one, and the last one and the outputs with what Parameter Store has. It returns
// what differs, and whether that is only in Parameter Store.
func (in input) unpublished(would store.Status) (differs string, lost bool) {
	if in.status == nil || !in.status.Same(would) {
		return "the status says something else", false
	}
	if lost := in.live.Differs(in.reported, in.outputs); lost != "" {
		return lost + " is not what was written last", true
	}
	return "", false
}

// warnings returns the warnings of a report without steps: those of the parameters, that of the freeze, and those of each
// step's last run.
func warnings(run store.Run, records plan.Records) []params.Problem {
	all := slices.Concat(run.Warnings, records.FreezeAdvice(run.Freeze))
	for _, of := range records.Warnings {
		all = append(all, of...)
	}
	return all
}

// values returns the values of parameters, with the objects that they name.
func (in input) values(texts map[string]string) store.Values {
	values := store.Values{Params: texts, Objects: map[string]string{}}
	for uri, object := range in.objects {
		if object.Problem == "" {
			values.Objects[uri] = object.Text
		}
	}
	return values
}

// in returns the record of the iteration with the verdict.
func (d *verdict) in(run store.Run) store.Run {
	run.Problems, run.Warnings, run.Goal, run.Effects = d.Problems, d.Warnings, string(d.Plan.Goal), d.Plan.Effects
	run.Paused, run.Freeze, run.Outcome, run.Change = d.stopped, d.freeze, d.outcome, d.change
	if d.state == outcome.StateReconciled && d.values.Params != nil {
		run.Values = d.values.Digest()
	}
	return run
}
