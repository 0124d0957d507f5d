package handler

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

// StepEvent is the state machine's call of a step.
type StepEvent struct {
	Rack       string    `json:"rack"`
	Generation int64     `json:"generation"`
	Execution  string    `json:"execution"`
	Step       plan.Step `json:"step"`
}

// About returns the attributes of a call for the log.
func (e StepEvent) About() []any {
	return []any{"rack", e.Rack, "generation", e.Generation, "step", e.Step.Name, "execution", e.Execution}
}

// StepAnswer is the result of one call of a step.
type StepAnswer struct {
	// Step is the step's name, for readers of the execution's history.
	Step string `json:"step"`
	// Status is done, wait or superseded.
	Status string `json:"status"`
	// WaitSeconds is the time until the next call, if Status is wait.
	WaitSeconds int `json:"waitSeconds"`
	// Note says what the step waits for.
	Note string `json:"note"`
}

// Values of StepAnswer.Status.
const (
	Done = "done"
	Wait = "wait"
	// Superseded ends the iteration early: the step waits, and there are requests that are newer than the plan.
	Superseded = "superseded"
)

// StartStep serves the calls of a step. For each call it renews the rack's lease, reads the plan, and records the result.
func StartStep(function string, build func(Env) (outcome.StepFunc, error)) {
	Start(function, func(env Env) (func(context.Context, StepEvent) (StepAnswer, error), error) {
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

func (s stepper) serve(ctx context.Context, event StepEvent) (StepAnswer, error) {
	lease, err := s.Store.Renew(ctx, event.Rack, event.Execution, s.Now())
	if err != nil {
		return StepAnswer{}, err
	}
	p, err := s.plan(ctx, event)
	if err != nil {
		return StepAnswer{}, err
	}
	progress, err := s.do(ctx, p, event.Step.Part)
	progress = progress.Shortened()
	if noteErr := s.note(ctx, event, progress, err); noteErr != nil {
		if err == nil {
			return StepAnswer{}, noteErr
		}
		// A Rejected of the step is not wrapped, because a report of it would lack its problems, which are not recorded.
		return StepAnswer{}, fmt.Errorf("%w (the step itself: %v)", noteErr, err)
	}
	if err != nil {
		return StepAnswer{}, err
	}
	if progress.Wait > 0 {
		answer := StepAnswer{Step: event.Step.Name, Status: Wait, WaitSeconds: int(math.Ceil(progress.Wait.Seconds())), Note: progress.Note}
		if lease.Requested > event.Generation && !event.Step.Uninterruptible {
			answer.Status = Superseded
		}
		return answer, nil
	}
	answer := StepAnswer{Step: event.Step.Name, Status: Done, Note: progress.Note}
	if progress.Unfinished || !planned(event.Step) {
		return answer, nil
	}
	return answer, s.Store.NoteApplied(ctx, event.Rack, event.Step, progress.Warnings)
}

// planned reports whether a step belongs to the rack's plan.
func planned(step plan.Step) bool { return step.Name != plan.ChangeStep.Name }

// plan returns the rack's plan. A step that does not belong to it gets an empty plan with the rack's name, because there
// may be no plan yet.
func (s stepper) plan(ctx context.Context, event StepEvent) (*plan.Plan, error) {
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
func (s stepper) note(ctx context.Context, event StepEvent, progress outcome.Progress, err error) error {
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
