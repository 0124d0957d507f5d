package handler

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/statemachine"
)

// Each line of a step has rack, generation, step and execution, and each change has a line of its own.
func TestLogOfAStep(t *testing.T) {
	var out bytes.Buffer
	_, s := begin(t, "7", always(outcome.Progress{
		Changes: []outcome.Change{{Subject: "queue demo", Action: "created"}, {Subject: "rule demo", Action: "created"}},
	}, nil))
	s.Log = slog.New(slog.NewJSONHandler(&out, nil))
	if _, err := s.call(t); err != nil {
		t.Fatal(err)
	}
	subjects := map[any]int{}
	for _, line := range lines(t, &out) {
		if line["rack"] != "demo" || line["generation"] != 7.0 || line["step"] != "nodegroups/placement" || line["execution"] != "me" {
			t.Errorf("%v", line)
		}
		subjects[line["subject"]]++
	}
	if subjects["queue demo"] != 1 || subjects["rule demo"] != 1 || subjects[nil] != 1 {
		t.Errorf("lines by subject: %v", subjects)
	}
}

// An error is logged with the same attributes, if the input has them.
func TestLogOfAFailure(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewJSONHandler(&out, nil))
	fails := errors.New("queue demo: create: no")
	call := answer(log, func(context.Context, statemachine.StepCall) (statemachine.StepAnswer, error) {
		return statemachine.StepAnswer{}, fails
	})
	_, err := call(t.Context(), statemachine.StepCall{Rack: "demo", Generation: 7, Step: step})
	if !errors.As(err, new(StepFailed)) {
		t.Errorf("%T", err)
	}
	_, _ = answer(log, func(context.Context, struct{}) (statemachine.StepAnswer, error) {
		return statemachine.StepAnswer{}, fails
	})(t.Context(), struct{}{})
	got := lines(t, &out)
	if len(got) != 2 || got[0]["rack"] != "demo" || got[0]["step"] != "nodegroups/placement" ||
		got[0]["error"] != fails.Error() || got[1]["error"] != fails.Error() || got[1]["rack"] != nil {
		t.Errorf("%v", got)
	}
}

func lines(t *testing.T, out *bytes.Buffer) (all []map[string]any) {
	t.Helper()
	for decoder := json.NewDecoder(out); decoder.More(); {
		var line map[string]any
		if err := decoder.Decode(&line); err != nil {
			t.Fatal(err)
		}
		all = append(all, line)
	}
	return all
}
