package validate

import (
	"context"

	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/internal/validation"
)

// change is a change request, with the problems for which it is refused.
type change struct {
	store.ChangeRequest
	problems []params.Problem
}

// overlaid returns the input with its change requests applied to the tree. It judges each request that was not judged yet,
// together with all accepted ones before it. A bad one changes no parameter.
func (v *Validate) overlaid(ctx context.Context, in input) (input, error) {
	if in.unknown {
		// If they were accepted, anybody who may put events on the bus could create racks of any name.
		for i := range in.changes {
			in.changes[i].problems = []params.Problem{params.NewProblem("rack", "",
				"there is no rack %s: it has no parameters, and a change request makes none; "+
					"run `sawhorse register %s`, or write one of its parameters, and send the request again", in.rack, in.rack)}
		}
		return in, nil
	}
	tree := in.tree
	var accepted []store.ChangeRequest
	for i, c := range in.changes {
		with := append(accepted[:len(accepted):len(accepted)], c.ChangeRequest)
		if c.State == store.ChangeRequested {
			problems, err := v.problems(ctx, in, store.Overlay(tree, with), c)
			if err != nil {
				return in, err
			}
			if in.changes[i].problems = problems; len(problems) > 0 {
				continue
			}
		}
		accepted = with
	}
	in.tree, in.writing = store.Overlay(tree, accepted), len(accepted) > 0
	return in, nil
}

// problems returns the problems of a change: those of the request itself, or those of the rack's parameters with the
// change applied.
func (v *Validate) problems(ctx context.Context, in input, overlaid store.Tree, c change) ([]params.Problem, error) {
	if problem, bad := c.Problem(); bad {
		return []params.Problem{problem}, nil
	}
	in.tree = overlaid
	in, err := v.read(ctx, in)
	if err == nil {
		in.facts, err = v.facts(ctx, in)
	}
	return validation.Validate(in.judged()).Problems, err
}

// saveChanges refuses or accepts the change requests that were judged. The event of a refusal comes before its record: if the
// pass is stopped in between, the event is sent twice; in the other order it might never be sent.
func (v *Validate) saveChanges(ctx context.Context, run store.Run, in input) error {
	for _, c := range in.changes {
		if c.State != store.ChangeRequested {
			continue
		}
		if len(c.problems) == 0 {
			if err := v.Store.Accept(ctx, run.Rack, c.ID); err != nil {
				return err
			}
			continue
		}
		if err := v.Bus.Refused(ctx, run, c.ID, c.problems); err != nil {
			return err
		}
		end := v.Store.Refuse
		if in.unknown {
			end = func(ctx context.Context, rack, id string) error { return v.Store.Dismiss(ctx, rack, id, v.Now()) }
		}
		if err := end(ctx, run.Rack, c.ID); err != nil {
			return err
		}
	}
	return nil
}
