package handler

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/statemachine"
)

// StartStep serves the calls of a step. For each call it renews the rack's lease, reads the plan, and records the result.
func StartStep(function string, build func(Env) (outcome.StepFunc, error)) {
	Start(function, func(env Env) (func(context.Context, statemachine.StepCall) (statemachine.StepAnswer, error), error) {
		do, err := build(env)
		if err != nil {
			return nil, err
		}
		return stepper{env, do}.serve, nil
	})
}

type stepper struct {
	Env
	do outcome.StepFunc
}

func (s stepper) serve(ctx context.Context, event statemachine.StepCall) (statemachine.StepAnswer, error) {
	lease, err := s.Store.Renew(ctx, event.Rack, event.Execution, s.Now())
	if err != nil {
		return statemachine.StepAnswer{}, err
	}
	if lease.HeldAt > event.Generation && planned(event.Step) { // a hold stops a step wherever it is; a newer write only where it waits
		return statemachine.StepAnswer{Step: event.Step.Name, Status: statemachine.Superseded, Note: "the stack's hold was written"}, nil
	}
	p, err := s.plan(ctx, event)
	if err != nil {
		return statemachine.StepAnswer{}, err
	}
	progress, err := s.do(ctx, p, event.Step.Part)
	progress = progress.Shortened()
	if noteErr := s.note(ctx, event, progress, err); noteErr != nil {
		if err == nil {
			return statemachine.StepAnswer{}, noteErr
		}
		// A Rejected of the step is not wrapped, because a report of it would lack its problems, which are not recorded.
		return statemachine.StepAnswer{}, fmt.Errorf("%w (the step itself: %v)", noteErr, err)
	}
	if err != nil {
		return statemachine.StepAnswer{}, err
	}
	if progress.Wait > 0 {
		answer := statemachine.StepAnswer{
			Step: event.Step.Name, Status: statemachine.Wait, Note: progress.Note, WaitSeconds: int(math.Ceil(progress.Wait.Seconds())),
		}
		if lease.Requested > event.Generation && !event.Step.Uninterruptible {
			answer.Status = statemachine.Superseded
		}
		return answer, nil
	}
	answer := statemachine.StepAnswer{Step: event.Step.Name, Status: statemachine.Done, Note: progress.Note}
	if progress.Unfinished || !planned(event.Step) {
		return answer, nil
	}
	return answer, s.Store.NoteApplied(ctx, event.Rack, event.Step, progress.Warnings)
}

// planned reports whether a step belongs to the rack's plan.
func planned(step plan.Step) bool { return step.Name != plan.ChangeStep.Name }

// plan returns the rack's plan. A step that does not belong to it gets an empty plan with the rack's name, because there
// may be no plan yet.
func (s stepper) plan(ctx context.Context, event statemachine.StepCall) (*plan.Plan, error) {
	if !planned(event.Step) {
		return &plan.Plan{Rack: event.Rack}, nil
	}
	p, err := s.Store.Plan(ctx, event.Rack)
	if err == nil && p == nil {
		err = fmt.Errorf("rack %s: step %s: there is no plan of format %d: "+
			"another version of Sawhorse made the last one, as while a deployment goes on; the next pass makes a new one",
			event.Rack, event.Step.Name, plan.Format)
	}
	return p, err
}

// note logs the result of a call, with one line for each change, and adds it to the run's record.
func (s stepper) note(ctx context.Context, event statemachine.StepCall, progress outcome.Progress, err error) error {
	log := s.Log.With(event.About()...)
	for _, c := range progress.Changes {
		log.Info("change", "subject", c.Subject, "action", c.Action)
	}
	record := store.StepRecord{
		Step: event.Step.Name, Changes: progress.Changes, Note: progress.Note, Warnings: progress.Warnings, Incidents: progress.Incidents,
	}
	var rejected *outcome.Rejected
	if errors.As(err, &rejected) {
		record.Problems, record.Refused = rejected.Problems, rejected.Change
	}
	log.Info("step", "changes", len(progress.Changes), "waitSeconds", progress.Wait.Seconds(), "note", progress.Note)
	if len(progress.Outputs) > 0 {
		if err := s.Store.NoteOutputs(ctx, event.Rack, progress.Outputs); err != nil {
			return err
		}
	}
	if len(record.Changes)+len(record.Warnings)+len(record.Incidents)+len(record.Problems) == 0 {
		return nil
	}
	return s.Store.NoteStep(ctx, event.Rack, event.Generation, s.Now(), record)
}
