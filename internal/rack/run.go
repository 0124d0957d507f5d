package rack

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sawhorse-io/sawhorse/internal/params"
	"github.com/sawhorse-io/sawhorse/internal/plan"
	"github.com/sawhorse-io/sawhorse/internal/steps"
)

// Run is the record of one round of a pass: what validate made of the input, then what each step did.
type Run struct {
	Rack       string    `json:"rack"`
	Generation int64     `json:"generation"`
	Execution  string    `json:"execution"`
	Started    time.Time `json:"started"`
	Outcome    string    `json:"outcome"`
	// Goal is how far the accepted plan takes the rack.
	Goal     string           `json:"goal,omitempty"`
	Problems []params.Problem `json:"problems,omitempty"`
	Warnings []params.Problem `json:"warnings,omitempty"`
	// Effects are what becomes of the pools.
	Effects []plan.Effect `json:"effects,omitempty"`
	Steps   []StepRecord  `json:"-"`
}

// StepRecord is what one step of a run did, all its calls together.
type StepRecord struct {
	Step     string           `json:"step"`
	Changes  []steps.Change   `json:"changes,omitempty"`
	Note     string           `json:"note,omitempty"`
	Problems []params.Problem `json:"problems,omitempty"`
	Warnings []params.Problem `json:"warnings,omitempty"`
	// Refused is the id of the change request that the Problems are about, if they are about one.
	Refused string `json:"refused,omitempty"`
}

// keepRuns is how long DynamoDB keeps the records of a run.
const keepRuns = 30 * 24 * time.Hour

func runKey(rack string, generation int64) string { return fmt.Sprintf("run#%012d", generation) }

// SaveRun begins the record of a round.
func (s *Store) SaveRun(ctx context.Context, run Run) error {
	return s.saveRunPart(ctx, run.Rack, runKey(run.Rack, run.Generation), run.Started, run)
}

// NoteStep adds one call's part to what a step did in this round. Calls of one step follow each other, so reading and
// writing back loses nothing.
func (s *Store) NoteStep(ctx context.Context, rack string, generation int64, now time.Time, call StepRecord) error {
	place := runKey(rack, generation) + "#" + call.Step
	values, err := s.get(ctx, key(rack, place))
	if err != nil {
		return fmt.Errorf("rack %s: read run: %w", rack, err)
	}
	record := StepRecord{Step: call.Step}
	if values != nil {
		if err := json.Unmarshal([]byte(stringOf(values, "record")), &record); err != nil {
			return fmt.Errorf("rack %s: decode run: %w", rack, err)
		}
	}
	record.Changes = append(record.Changes, call.Changes...)
	record.Note, record.Problems, record.Warnings, record.Refused = call.Note, call.Problems, call.Warnings, call.Refused
	return s.saveRunPart(ctx, rack, place, now, record)
}

func (s *Store) saveRunPart(ctx context.Context, rack, place string, now time.Time, part any) error {
	encoded, err := json.Marshal(part)
	if err != nil {
		return fmt.Errorf("rack %s: encode run: %w", rack, err)
	}
	values := key(rack, place)
	values["record"] = text(string(encoded))
	values["ttl"] = number(now.Add(keepRuns).Unix())
	return wrap(s.put(ctx, values, nil), "rack %s: save run", rack)
}

// Order brings the records of the steps into the order of their names in a list.
func (r *Run) Order(names []string) {
	slices.SortStableFunc(r.Steps, func(a, b StepRecord) int {
		return cmp.Compare(slices.Index(names, a.Step), slices.Index(names, b.Step))
	})
}

// Recall adds what steps warned of that earlier passes took: it is as true as they are done.
func (r *Run) Recall(warnings map[string][]params.Problem) {
	for _, step := range slices.Sorted(maps.Keys(warnings)) {
		if !slices.ContainsFunc(r.Steps, func(s StepRecord) bool { return s.Step == step }) {
			r.Steps = append(r.Steps, StepRecord{Step: step, Warnings: warnings[step]})
		}
	}
}

// Run reads the record of a round with all its steps.
func (s *Store) Run(ctx context.Context, rack string, generation int64) (Run, error) {
	place := runKey(rack, generation)
	var run Run
	items, err := s.query(ctx, rack, place)
	if err != nil {
		return run, fmt.Errorf("rack %s: read run: %w", rack, err)
	}
	for _, values := range items {
		if err := run.add(stringOf(values, "sk"), place, []byte(stringOf(values, "record"))); err != nil {
			return run, fmt.Errorf("rack %s: decode run: %w", rack, err)
		}
	}
	return run, nil
}

func (r *Run) add(sk, place string, encoded []byte) error {
	if !strings.HasPrefix(sk, place+"#") {
		return json.Unmarshal(encoded, r)
	}
	var step StepRecord
	if err := json.Unmarshal(encoded, &step); err != nil {
		return err
	}
	r.Steps = append(r.Steps, step)
	return nil
}
