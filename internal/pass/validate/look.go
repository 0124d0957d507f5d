package validate

import (
	"context"
	"maps"
	"slices"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

// Look returns what a full pass over a rack would do: the steps that are due, and what else is not as it should be,
// with the reason for each. It is empty if the pass would find nothing to do. Look takes no lease and writes nothing.
// generation is the generation that the pass would have.
func (v *Validate) Look(ctx context.Context, name string, generation int64) (map[string]string, error) {
	run := store.Run{Rack: name, Generation: generation, Started: v.Now()}
	in, err := v.read(ctx, name)
	if err != nil {
		return nil, err
	}
	f, err := v.find(ctx, run, in, true, true)
	switch {
	case err != nil || f.unknown:
		return nil, err
	case f.forgotten:
		return map[string]string{"rack": "it has no parameters any more"}, nil
	case f.writing:
		return map[string]string{plan.ChangeStep.Name: "a change request is not written to Parameter Store yet"}, nil
	}
	return v.differences(ctx, f.in(run), f)
}

// differences compares what was found with what is recorded and published.
func (v *Validate) differences(ctx context.Context, run store.Run, f finding) (map[string]string, error) {
	why, state := map[string]string{}, outcome.StateReconciled
	switch {
	case len(f.Problems) > 0:
		state = outcome.StateRejected
		r, err := v.repairs(ctx, run.Rack, f, true)
		if err != nil {
			return nil, err
		}
		maps.Copy(why, r.why)
	case f.Config.Paused:
		state = outcome.StatePaused
	case len(f.due) > 0:
		return f.why, nil
	case f.Plan.Goal != plan.GoalNone:
		kept, err := v.kept(ctx, run.Rack, f)
		if err != nil {
			return nil, err
		}
		if !kept {
			why["plan"] = "the plan or the records of the last pass differ from what the parameters say now"
		}
	}
	reason, err := v.reportReason(ctx, run, f, state, true)
	if reason.why != "" {
		why["status"] = reason.why
	}
	if err != nil || len(why) > 0 || state == outcome.StateReconciled {
		return why, err
	}
	return why, v.Bus.Quiet(run, state) // no pass runs that would write the metrics of this rack
}

// reportReason says why a report is due. It is zero if the status already says what was found.
type reportReason struct {
	why string
	// lost means that Parameter Store does not have the status that was written last.
	lost bool
}

// reportReason compares the status with what was found. state is the rack's state after that. If published is set, it also
// compares the whole status, and what Parameter Store has of the rack.
func (v *Validate) reportReason(ctx context.Context, run store.Run, f finding, state outcome.State, published bool) (reportReason, error) {
	reported, err := v.Store.ReportedDigest(ctx, run.Rack)
	if err != nil {
		return reportReason{}, err
	}
	// A rack that never asked for a change gets no status if there is nothing to warn of.
	if reported == "" && state == outcome.StateReconciled && run.Goal == string(plan.GoalNone) && len(run.Warnings) == 0 {
		return reportReason{}, nil
	}
	var steps []string
	if state == outcome.StatePaused {
		for _, step := range f.due {
			steps = append(steps, step.Name)
		}
	}
	if reported != store.Digest(state, run, steps) {
		return reportReason{why: "the status says something else"}, nil
	}
	if !published {
		return reportReason{}, nil
	}
	would := store.Status{
		Rack: run.Rack, State: state, Goal: run.Goal, Karpenter: f.records.InForce(),
		Problems: run.Problems, Warnings: warnings(run, f.records), Steps: steps, Brakes: f.records.Brakes(),
	}
	return v.unpublished(ctx, would)
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

// unpublished compares a status with the last one, and the last one and the outputs with what Parameter Store has.
func (v *Validate) unpublished(ctx context.Context, would store.Status) (reportReason, error) {
	last, err := v.Store.Status(ctx, would.Rack)
	if err != nil {
		return reportReason{}, err
	}
	if last == nil || !last.Same(would) {
		return reportReason{why: "the status says something else"}, nil
	}
	outputs, err := v.Store.Outputs(ctx, would.Rack)
	if err != nil {
		return reportReason{}, err
	}
	reported, err := v.Store.Reported(ctx, would.Rack, "", 0)
	if err != nil {
		return reportReason{}, err
	}
	differs, err := store.PublishedDiffers(ctx, v.Parameters, v.Paths, would.Rack, reported, outputs)
	if err != nil || differs == "" {
		return reportReason{}, err
	}
	return reportReason{why: differs + " is not what was written last", lost: true}, nil
}
