package validate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/store"
	"github.com/sawhorse-io/sawhorse/internal/validation"
)

// changes is what is known of a rack's changes.
type changes struct {
	store.Changes
	// exists means that the rack has the parameter change.
	exists bool
	// refused are the changes that this iteration refuses or gives up, with the problems.
	refused []refused
	// forces are the guards that the accepted changes override.
	forces events.Force
	// differ means that the record of the changes is to be saved, and more that there are versions that were not read yet.
	differ, more bool
	// rests means that a write has failed and is not to be tried again yet.
	rests bool
}

// refused is a change that is not in force, or not any more.
type refused struct {
	version  int64
	problems []params.Problem
}

// has reports whether the parameter change was read after a write to it.
func (c changes) has(w store.Written) bool {
	return store.IsAsNew(c.Modified, c.exists || w.Operation != "Delete", w)
}

// mostChanges is how many changes an iteration judges. Each costs as much as a validation of the rack.
const mostChanges = 10

// readChanges reads a rack's changes, with the versions of the parameter change that are new.
func (v *Validate) readChanges(ctx context.Context, rack string) (c changes, err error) {
	var present *store.Version
	reads, reading := errgroup.WithContext(ctx)
	reads.Go(func() (err error) {
		c.Changes, err = v.Store.Changes(reading, rack)
		return err
	})
	reads.Go(func() (err error) {
		present, err = store.ReadVersion(reading, v.Parameters, v.Paths.Change(rack))
		return err
	})
	if err := reads.Wait(); err != nil {
		return c, err
	}
	versions, more, err := c.ReadChange(ctx, v.Parameters, v.Paths.Change(rack), present, v.Now())
	if err != nil {
		return c, err
	}
	had := len(c.List)
	c.exists, c.more = present != nil, !c.Take(versions, mostChanges) || more
	c.differ = len(c.List) > had
	for i := range c.List {
		if err := v.readObject(ctx, rack, &c.List[i]); err != nil {
			return c, err
		}
	}
	return c, nil
}

// readObject reads the change that the parameter names in S3.
func (v *Validate) readObject(ctx context.Context, rack string, c *store.Change) error {
	if c.Object == "" {
		return nil
	}
	object, err := v.object(ctx, rack, c.Object)
	switch {
	case err != nil:
		return err
	case object.Problem != "":
		c.Requested = store.Requested{Malformed: []params.Problem{params.NewProblem(store.ParameterChange, "",
			"change is %s, %s", params.Quoted(c.Object), object.Problem)}}
	default:
		c.Requested = store.ParseChange(object.Text)
	}
	return nil
}

// overlaid returns the input with its changes laid over the tree. It judges each change that was not judged yet, on top of those
// before it. A bad one changes no parameter. One between whose writes somebody else has written is given up.
func (v *Validate) overlaid(ctx context.Context, in input) (input, error) {
	c := &in.changes
	c.List = slices.Clone(c.List)
	c.Recognize(in.tree)
	c.differ = c.Supersede(in.tree, in.writes) || c.differ
	c.rests = c.Rests(v.Now())
	for i := 0; i < len(c.List); i++ {
		c.differ = c.differ || len(c.List[i].Ends) > 0
		c.List[i].Ends = nil
		tree := c.Overlay(in.tree, i, in.writes, v.Now())
		if edited := c.List[i].Edited(in.tree); len(edited) > 0 {
			problem := params.NewProblem(store.ParameterChange, "", "the change %d is given up, because somebody else has written %s "+
				"while it was being written; what it had written is put back; write it again if it is still wanted",
				c.List[i].Version, strings.Join(edited, ", "))
			c.refuse(c.List[i], problem)
			c.GiveUp(i, v.Now(), problem)
		}
		if c.List[i].State != store.ChangeRequested {
			continue
		}
		before := in.force
		in.force = in.with(c.List[i].Force)
		problems, err := v.problems(ctx, in, tree, i)
		if err != nil {
			return in, err
		}
		c.differ = true
		if len(problems) > 0 {
			c.refuse(c.List[i], problems...)
			c.Refuse(i, problems)
			in.force = before
			i--
			continue
		}
		c.Accept(i, tree, v.Now())
		c.forces = append(c.forces, c.List[i].Force...)
	}
	in.tree = c.Overlay(in.tree, len(c.List), in.writes, v.Now())
	if in.proposed != nil {
		in.tree = proposed(*in.proposed, in.tree, v.Now())
	}
	return in, nil
}

// with returns the guards that requests override, with those of a change.
func (in input) with(words events.Force) map[string]int64 {
	force := maps.Clone(in.force)
	for _, word := range words {
		if force == nil {
			force = map[string]int64{}
		}
		force[word] = in.generation
	}
	return force
}

func (c *changes) refuse(change store.Change, problems ...params.Problem) {
	c.refused = append(c.refused, refused{change.Version, problems})
	c.differ = true
}

// problems returns the problems of a change: those of the change itself, what was written after it, or the problems that the rack's
// parameters have with the change on top of a tree, and without it have not, or that are of what it sets. So a brake is never refused
// for what is wrong elsewhere.
func (v *Validate) problems(ctx context.Context, in input, tree store.Tree, i int) ([]params.Problem, error) {
	change := in.changes.List[i]
	if len(change.Malformed) > 0 {
		return change.Malformed, nil
	}
	if outdated := in.changes.Outdated(i, in.tree, in.writes); len(outdated) > 0 {
		var problems []params.Problem
		for _, name := range outdated {
			problems = append(problems, params.NewProblem(name, "", "somebody else has written or deleted %s after the change %d, and that counts; "+
				"write the change again if it is still wanted", params.Quoted(name), change.Version))
		}
		return problems, nil
	}
	if unexpected, err := v.unexpected(ctx, in, tree, change.Expect); err != nil || len(unexpected) > 0 {
		return unexpected, err
	}
	after, err := v.judge(ctx, in, proposed(change.Requested, tree, v.Now()))
	if err != nil || len(after) == 0 {
		return nil, err
	}
	before, err := v.judge(ctx, in, tree)
	return slices.DeleteFunc(after, func(p params.Problem) bool {
		_, sets := change.Set[p.Parameter]
		return !sets && slices.Contains(before, p)
	}), err
}

// unexpected returns the problem of a change that was made from a snapshot if the tree has other values.
func (v *Validate) unexpected(ctx context.Context, in input, tree store.Tree, expect int64) ([]params.Problem, error) {
	if expect == 0 {
		return nil, nil
	}
	snapshot, err := v.Store.Snapshot(ctx, in.rack, expect)
	if err != nil {
		return nil, err
	}
	if snapshot == nil {
		return []params.Problem{params.NewProblem(store.ParameterChange, "expect", "expect is %d, and the rack has no such snapshot (any more); "+
			"`sawhorse history %s` lists those that there are; write one of them, or leave expect out", expect, in.rack)}, nil
	}
	in.tree = tree
	if in, err = v.read(ctx, in); err != nil {
		return nil, err
	}
	now := in.values(in.parsed.Effective)
	differs := snapshot.Differ(now)
	if len(differs) == 0 {
		return nil, nil
	}
	return []params.Problem{params.NewProblem(store.ParameterChange, "expect", "expect is %d, and the rack's values have changed since "+
		"snapshot %d: %s; make the change again from what the rack has now, or leave expect out",
		expect, expect, differences(snapshot.Values, now, differs))}, nil
}

// mostDiffering is how many parameters the problem of a change shows.
const mostDiffering = 5

// differences returns a text that says from what to what parameters have changed.
func differences(before, now store.Values, names []string) string {
	var all []string
	for _, name := range names[:min(len(names), mostDiffering)] {
		switch from, to := valueText(before, name), valueText(now, name); {
		case from == to: // what is cut off, or what is in S3
			all = append(all, name+" to another text than it was, now "+to)
		default:
			all = append(all, name+" from "+from+" to "+to)
		}
	}
	if more := len(names) - len(all); more > 0 {
		all = append(all, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(all, ", ")
}

func valueText(values store.Values, name string) string {
	if value, is := values.Params[name]; is {
		return params.Quoted(value)
	}
	return params.Unset
}

// judge returns the problems of the rack with a tree.
func (v *Validate) judge(ctx context.Context, in input, tree store.Tree) ([]params.Problem, error) {
	in.tree = tree
	in, err := v.read(ctx, in)
	if err == nil {
		in.facts, err = v.facts(ctx, in)
		in.facts.Records.Checked = "" // what is in force may be wrong since, and is then wrong without the change too
		v.inCluster(ctx, &in)
	}
	return validation.Validate(in.judged()).Problems, err
}

// proposedBy returns the change of which a dry run is asked, and whether it is asked of one.
func proposedBy(event Event) (change store.Requested, requested bool) {
	if len(event.Proposed) == 0 {
		return change, false
	}
	change = store.ParseChange(string(event.Proposed))
	return change, len(change.Set)+len(change.Unset) > 0
}

// proposed returns a tree with a change laid over it that is not one of the rack's.
func proposed(change store.Requested, tree store.Tree, now time.Time) store.Tree {
	alone := store.Changes{List: []store.Change{{Requested: change}}}
	alone.Accept(0, tree, now)
	return alone.Overlay(tree, 1, nil, now)
}

// saveChanges saves what became of the changes. The event of a refusal comes first: if the pass is stopped in between, the event
// is sent twice; in the other order it might never be sent.
func (v *Validate) saveChanges(ctx context.Context, run store.Run, in input) error {
	for _, r := range in.changes.refused {
		if err := v.Bus.Refused(ctx, run, r.version, r.problems); err != nil {
			return err
		}
	}
	if err := v.Store.Force(ctx, run.Rack, in.changes.forces, in.generation); err != nil {
		return err
	}
	if in.changes.differ {
		if err := v.Store.SaveChanges(ctx, run.Rack, &in.changes.Changes, v.Now()); err != nil {
			return err
		}
	}
	if in.changes.more {
		return v.Store.Request(ctx, run.Rack)
	}
	return nil
}
