package validate

import (
	"context"
	"slices"

	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/store"
)

// lay returns the rack's tree with its change requests applied. It validates each change request that is not validated
// yet, together with all accepted ones before it. A valid one is accepted; an invalid one is refused and changes no
// parameter. writing reports whether accepted changes are not written to Parameter Store yet. A dry run neither accepts
// nor refuses.
func (v *Validate) lay(ctx context.Context, run store.Run, in input, dry bool) (laid store.Tree, writing bool, err error) {
	var accepted []store.ChangeRequest
	for _, c := range in.changes {
		if c.State == store.ChangeRequested {
			problems, err := v.wrong(ctx, run.Rack, store.Overlay(in.tree, append(slices.Clone(accepted), c)), in, c)
			if err != nil {
				return in.tree, false, err
			}
			if len(problems) > 0 {
				if err := v.refuse(ctx, run, c, problems, dry); err != nil {
					return in.tree, false, err
				}
				continue
			}
			if !dry {
				if err := v.Store.Accept(ctx, run.Rack, c.ID); err != nil {
					return in.tree, false, err
				}
			}
		}
		accepted = append(accepted, c)
	}
	return store.Overlay(in.tree, accepted), len(accepted) > 0, nil
}

// wrong returns the problems of a change: those of the request itself, or those of the rack's parameters with the
// change applied.
func (v *Validate) wrong(ctx context.Context, name string, laid store.Tree, in input,
	c store.ChangeRequest) ([]params.Problem, error) {
	if problem, bad := c.Problem(); bad {
		return []params.Problem{problem}, nil
	}
	result, err := v.validate(ctx, name, laid, in)
	return result.Problems, err
}

// refuse sends the event before it records the refusal. If the pass is stopped in between, the event is sent twice; in
// the other order it might never be sent.
func (v *Validate) refuse(ctx context.Context, run store.Run, c store.ChangeRequest, problems []params.Problem, dry bool) error {
	if dry {
		return nil
	}
	if err := v.Bus.Refused(ctx, run, c.ID, problems); err != nil {
		return err
	}
	return v.Store.Refuse(ctx, run.Rack, c.ID)
}

// turnAway refuses the change requests for a rack that does not exist. If they were accepted, anybody who may put
// events on the bus could create racks of any name.
func (v *Validate) turnAway(ctx context.Context, run store.Run, changes []store.ChangeRequest, dry bool) error {
	if dry {
		return nil
	}
	for _, c := range changes {
		problem := params.NewProblem("rack", "",
			"there is no rack %s: it has no parameters, and a change request makes none; "+
				"run `sawhorse register %s`, or write one of its parameters, and send the request again",
			run.Rack, run.Rack)
		if err := v.Bus.Refused(ctx, run, c.ID, []params.Problem{problem}); err != nil {
			return err
		}
		if err := v.Store.Dismiss(ctx, run.Rack, c.ID, v.Now()); err != nil {
			return err
		}
	}
	return nil
}
