package awsfake

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/sawhorse-io/sawhorse/events"
)

// Documented fails a test if a step has an output that events.Outputs does not have.
func Documented(t *testing.T, outputs map[string]string) {
	t.Helper()
	text, err := json.Marshal(outputs)
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&events.Outputs{}); err != nil {
		t.Errorf("outputs %v, which other automation reads: %v", slices.Sorted(maps.Keys(outputs)), err)
	}
}
