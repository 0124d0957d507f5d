package validate

import (
	"context"
	"fmt"
	"slices"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

// save saves what follows from a verdict, and returns what the state machine does next.
func (v *Validate) save(ctx context.Context, run store.Run, in input, d verdict) (Answer, error) {
	answer := Answer{Generation: in.generation, Outcome: d.outcome, Report: d.report, Steps: []plan.Step{}, Versions: in.tree.Versions}
	answer.Steps = append(answer.Steps, d.steps...)
	run = d.in(run)
	if err := v.saveChanges(ctx, run, in); err != nil {
		return answer, err
	}
	if d.claims {
		owner, err := v.Store.LockCluster(ctx, d.Plan.Cluster.ARN, run.Rack)
		if err != nil {
			return answer, err
		}
		if owner != run.Rack {
			return answer, fmt.Errorf("cluster %s: rack %s has just locked it; the next pass reports what to do", d.Plan.Cluster.Name, owner)
		}
	}
	if err := v.noteBaseline(ctx, in, d); err != nil {
		return answer, err
	}
	// The records come first. If the plan were saved while its steps still count as applied, and the pass stopped
	// there, later passes would repair towards a plan that was never in force.
	if d.records != nil {
		if err := v.Store.SaveRecords(ctx, run.Rack, *d.records); err != nil {
			return answer, err
		}
	}
	if d.plan != nil {
		if err := v.Store.SavePlan(ctx, d.plan); err != nil {
			return answer, err
		}
	}
	// While a change is written, also of a rack that is paused, of which no snapshot is made: who wrote is known only as long.
	if d.report && (run.Values != "" || in.changes.Writing()) && d.values.Digest() != in.reported.Values {
		if err := v.saveSettings(ctx, in, d); err != nil {
			return answer, err
		}
	}
	if d.lost { // otherwise the report would not write the same status again
		if err := v.Store.ClearPublished(ctx, run.Rack); err != nil {
			return answer, err
		}
	}
	if !d.report {
		return answer, v.Bus.Quiet(run, d.state)
	}
	if err := v.Store.SaveRun(ctx, run); err != nil {
		return answer, err
	}
	if d.begins {
		before, err := in.reported.Status()
		if err != nil {
			before = nil // a status that cannot be read has told nothing
		}
		return answer, v.Bus.Started(ctx, run, d.steps, before)
	}
	return answer, nil
}

// noteBaseline records what the node groups run before the first plan with Karpenter comes into force. The step that removes what
// was made for Karpenter removes it.
func (v *Validate) noteBaseline(ctx context.Context, in input, d verdict) error {
	nodes := in.facts.BaselineNodes()
	if d.records == nil || !d.records.WasOn || in.records.WasOn || nodes == "" {
		return nil
	}
	return v.Store.NoteOutputs(ctx, in.rack, map[string]string{plan.OutputBaseline: nodes})
}

// saveSettings saves the values for the snapshot that the report makes of them, if the rack is then Reconciled.
func (v *Validate) saveSettings(ctx context.Context, in input, d verdict) error {
	settings := store.Settings{Rack: in.rack, Values: d.values}
	before, err := v.Store.Settings(ctx, in.rack)
	if err != nil {
		return err
	}
	if before != nil && before.Of != in.reported.Values { // no snapshot was made of them
		settings.Changes = before.Changes
	}
	settings.Changes = in.changes.WroteSince(settings.Changes)
	return v.Store.SaveSettings(ctx, settings)
}

// dryRun answers a dry run with the steps that a pass would take, and with the differences from the plan in force.
func (v *Validate) dryRun(ctx context.Context, run store.Run, in input, d verdict) (Answer, error) {
	// Without versions: Step Functions takes 256 KB, and the event may have nearly as many.
	answer := Answer{Generation: in.generation, Outcome: outcome.PassDryRun, Steps: []plan.Step{}}
	run = d.in(run)
	run.Warnings = slices.Concat(run.Warnings, in.records.FreezeAdvice(run.Freeze))
	var differences []plan.Difference
	if len(run.Problems) == 0 {
		differences = plan.Differences(in.inForce, &d.Plan)
	}
	var err error
	answer.DryRun, err = v.Bus.DryRun(ctx, run, d.due, differences)
	return answer, err
}
