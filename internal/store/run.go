package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/sawhorse-io/sawhorse/events"
	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
)

// Run is the record of one iteration of a pass: the result of validate and what each step did.
type Run struct {
	Rack       string          `json:"rack"`
	Generation int64           `json:"generation"`
	Execution  string          `json:"execution"`
	Started    time.Time       `json:"started"`
	Outcome    outcome.Outcome `json:"outcome"`
	// Versions maps the parameters that the iteration read to their versions in Parameter Store. They show which writes
	// a generation includes.
	Versions map[string]int64 `json:"versions,omitempty"`
	// Values is the Digest of the settings in force, or "" unless the rack is Reconciled with them.
	Values string `json:"values,omitempty"`
	// Goal is the goal of the accepted plan.
	Goal     string           `json:"goal,omitempty"`
	Problems []params.Problem `json:"problems,omitempty"`
	Warnings []params.Problem `json:"warnings,omitempty"`
	// Paused means that the iteration changes nothing.
	Paused bool `json:"paused,omitempty"`
	// Change is what became of the last change, or nil if there was none.
	Change *ChangeStatus `json:"change,omitempty"`
	// Freeze is what karpenter_freeze asks for, or nil if that is not known.
	Freeze *bool `json:"freeze,omitempty"`
	// Effects are the changes to the pools.
	Effects []plan.Effect `json:"effects,omitempty"`
	Steps   []StepRecord  `json:"-"`
	// Request is the text by which the sender of a dry run recognizes the answer.
	Request string `json:"-"`
}

// StepRecord is what one step of a run did, over all its calls.
type StepRecord struct {
	Step     string           `json:"step"`
	Changes  []outcome.Change `json:"changes,omitempty"`
	Note     string           `json:"note,omitempty"`
	Problems []params.Problem `json:"problems,omitempty"`
	Warnings []params.Problem `json:"warnings,omitempty"`
	// Incidents are events that happened in the iteration.
	Incidents []params.Problem `json:"incidents,omitempty"`
	// Refused is the version of the change that the Problems are about, or 0.
	Refused int64 `json:"refused,omitempty"`
}

// KeepRuns is how long DynamoDB keeps the records of a run. The lease is kept longer, so that a rack that is forgotten
// and created again does not use the same generations again.
const KeepRuns = 30 * 24 * time.Hour

func runKey(generation int64) string { return fmt.Sprintf("run#%012d", generation) }

// SaveRun creates the record of an iteration.
func (s *Store) SaveRun(ctx context.Context, run Run) error {
	return s.saveRunPart(ctx, run.Rack, runKey(run.Generation), run.Started, run)
}

// NoteStep adds the result of one call to a step's record. Calls of one step are sequential, so read and write back
// loses nothing. The repeated calls of a step that waits do not write a record that stays the same.
func (s *Store) NoteStep(ctx context.Context, rack string, generation int64, now time.Time, call StepRecord) error {
	place := runKey(generation) + "#" + call.Step
	record := StepRecord{Step: call.Step}
	found, err := s.load(ctx, key(rack, place), rack, "record", "run", &record)
	if err != nil {
		return err
	}
	before := record
	record.Changes, record.Incidents = append(record.Changes, call.Changes...), append(record.Incidents, call.Incidents...)
	record.Note, record.Problems, record.Warnings, record.Refused = call.Note, call.Problems, call.Warnings, call.Refused
	if found && reflect.DeepEqual(record, before) {
		return nil
	}
	return s.saveRunPart(ctx, rack, place, now, record)
}

func (s *Store) saveRunPart(ctx context.Context, rack, place string, now time.Time, part any) error {
	values := key(rack, place)
	values["record"], values["ttl"] = packed(part), number(now.Add(KeepRuns).Unix())
	return wrap(s.put(ctx, values, nil), "rack %s: save run", rack)
}

// Order sorts the records of the steps by the order of the names in a list.
func (r *Run) Order(names []string) {
	slices.SortStableFunc(r.Steps, func(a, b StepRecord) int {
		return cmp.Compare(slices.Index(names, a.Step), slices.Index(names, b.Step))
	})
}

// Recall sets the warnings of applied steps to those of their last completed run, also of earlier passes. These are
// valid until the step runs again.
func (r *Run) Recall(records plan.Records) {
	underWay := map[string]bool{}
	for i, step := range r.Steps {
		_, ended := records.Applied[step.Step]
		if underWay[step.Step] = !ended; ended {
			r.Steps[i].Warnings = nil
		}
	}
	for _, step := range slices.Sorted(maps.Keys(records.Warnings)) {
		if !underWay[step] {
			r.Steps = append(r.Steps, StepRecord{Step: step, Warnings: records.Warnings[step]})
		}
	}
}

// Run reads the record of an iteration with all its steps. It adds what steps did in the iterations after since, and
// the effects of those on the pools, because the iterations of a pass are reported together.
func (s *Store) Run(ctx context.Context, rack string, since, generation int64) (Run, error) {
	var run Run
	place := runKey(generation)
	items, err := s.query(ctx, partition(rack), runKey(min(since+1, generation)), place+end)
	if err != nil {
		return run, fmt.Errorf("rack %s: read run: %w", rack, err)
	}
	for _, values := range items {
		if err := run.add(values, place); err != nil {
			return run, fmt.Errorf("rack %s: decode run: %w", rack, err)
		}
	}
	return run, nil
}

// add adds one item of the record of this iteration or of an earlier one.
func (r *Run) add(values item, place string) error {
	iteration, step, _ := strings.Cut(strings.TrimPrefix(stringOf(values, "sk"), "run#"), "#")
	own := "run#"+iteration == place
	if step == "" {
		var one Run
		if err := unpack(values, "record", &one); err != nil {
			return err
		}
		switch {
		case own:
			one.Effects, one.Steps = together(r.Effects, one.Effects), r.Steps
			*r = one
		case one.Outcome == outcome.PassPlanned: // other iterations did not change the pools
			r.Effects = together(r.Effects, one.Effects)
		}
		return nil
	}
	var one StepRecord
	if err := unpack(values, "record", &one); err != nil {
		return err
	}
	if !own {
		one = StepRecord{Step: step, Changes: one.Changes, Incidents: one.Incidents}
	}
	i := slices.IndexFunc(r.Steps, func(s StepRecord) bool { return s.Step == step })
	if i < 0 {
		r.Steps = append(r.Steps, one)
		return nil
	}
	one.Changes, one.Incidents = append(r.Steps[i].Changes, one.Changes...), append(r.Steps[i].Incidents, one.Incidents...)
	r.Steps[i] = one
	return nil
}

// together combines the effects of two iterations on the pools. Each iteration compares with what was applied before it. What the
// one before was to do stays, because it may have begun.
func together(before, after []plan.Effect) []plan.Effect {
	all := slices.Clone(after)
	for _, earlier := range before {
		ofGroup := func(e plan.Effect) bool { return e.Change == events.GroupEmptied }
		i := slices.IndexFunc(all, func(e plan.Effect) bool { return e.Pool == earlier.Pool && ofGroup(e) == ofGroup(earlier) })
		switch {
		case i < 0:
			all = append(all, earlier)
		case earlier.Change == events.PoolCreated && all[i].Change == events.PoolChanged:
			all[i] = plan.Effect{Pool: earlier.Pool, Change: events.PoolCreated}
		case earlier.Change == events.PoolRetired: // it was taken back, or deleted by force
		case earlier.Replaces || earlier.MayReplace:
			all[i] = joined(earlier, all[i])
		}
	}
	slices.SortFunc(all, func(a, b plan.Effect) int { return cmp.Compare(a.Pool, b.Pool) })
	return all
}

// joined combines the effects of two iterations on one pool. If both replace nodes, it is unknown how many of them are
// the same.
func joined(before, after plan.Effect) plan.Effect {
	switch {
	case !after.Replaces && !after.MayReplace:
		after.Replaced = before.Replaced
	case after.Change != events.PoolRemoved:
		after.Replaced = nil
	}
	after.Replaces, after.MayReplace = after.Replaces || before.Replaces, after.MayReplace || before.MayReplace
	after.Reasons = slices.Compact(slices.Sorted(slices.Values(slices.Concat(before.Reasons, after.Reasons))))
	return after
}
