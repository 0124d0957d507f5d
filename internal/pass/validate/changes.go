package validate

import (
	"context"
	"slices"

	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

// lay lays the rack's change requests over its tree. One that nobody has validated is validated here, over all that came before it:
// a good one counts from now on, a bad one is refused and leaves every parameter as it was. writing tells that some are not
// written to Parameter Store yet. A dry run only looks.
func (v *Validate) lay(ctx context.Context, run store.Run, tree store.Tree, records plan.Records, dry bool) (laid store.Tree, writing bool, err error) {
	changes, err := v.store.Changes(ctx, run.Rack)
	if err != nil {
		return tree, false, err
	}
	var accepted []store.ChangeRequest
	for _, c := range changes {
		if c.State == store.ChangeRequested {
			problems, err := v.wrong(ctx, run.Rack, store.Overlay(tree, append(slices.Clone(accepted), c)), records, c)
			if err != nil {
				return tree, false, err
			}
			if len(problems) > 0 {
				if err := v.refuse(ctx, run, c, problems, dry); err != nil {
					return tree, false, err
				}
				continue
			}
			if !dry {
				if err := v.store.Accept(ctx, run.Rack, c.ID); err != nil {
					return tree, false, err
				}
			}
		}
		accepted = append(accepted, c)
	}
	return store.Overlay(tree, accepted), len(accepted) > 0, nil
}

// wrong is what is wrong with a change, by itself or with what it makes of the rack.
func (v *Validate) wrong(ctx context.Context, name string, laid store.Tree, records plan.Records, c store.ChangeRequest) ([]params.Problem, error) {
	if problem, bad := c.Problem(); bad {
		return []params.Problem{problem}, nil
	}
	result, err := v.validate(ctx, name, laid, records)
	return result.Problems, err
}

// refuse tells before it notes: a pass that is stopped in between tells twice, and not never.
func (v *Validate) refuse(ctx context.Context, run store.Run, c store.ChangeRequest, problems []params.Problem, dry bool) error {
	if dry {
		return nil
	}
	if err := v.bus.Refused(ctx, run, c.ID, problems); err != nil {
		return err
	}
	return v.store.Refuse(ctx, run.Rack, c.ID)
}

// turnAway refuses the change requests of a rack that there is not: they would make one, parameter by parameter, of whatever name
// whoever may put events on the bus has made up.
func (v *Validate) turnAway(ctx context.Context, run store.Run, dry bool) error {
	if dry {
		return nil
	}
	changes, err := v.store.Changes(ctx, run.Rack)
	if err != nil {
		return err
	}
	for _, c := range changes {
		problem := params.NewProblem("rack", "", "there is no rack %s: it has no parameters, and a change request makes none; run `sawhorse register %s`, or write one of its parameters, and send the request again",
			run.Rack, run.Rack)
		if err := v.bus.Refused(ctx, run, c.ID, []params.Problem{problem}); err != nil {
			return err
		}
		if err := v.store.Dismiss(ctx, run.Rack, c.ID, v.now()); err != nil {
			return err
		}
	}
	return nil
}
