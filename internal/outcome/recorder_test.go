package outcome_test

import (
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
	"github.com/sawhorse-io/sawhorse/internal/testing/awsfake"
)

func TestRecorded(t *testing.T) {
	records := awsfake.NewBaselines(awsfake.New())
	read := func() (*map[string]int, error) {
		return outcome.Recorded[map[string]int](t.Context(), records, "demo", "sizes")
	}
	if before, err := read(); before != nil || err != nil {
		t.Errorf("no record: %v, %v", before, err)
	}
	if err := outcome.Record(t.Context(), records.RecordOnce, "demo", "sizes", map[string]int{"system": 2}); err != nil {
		t.Fatal(err)
	}
	if kept, err := read(); err != nil || (*kept)["system"] != 2 {
		t.Errorf("%v, %v", kept, err)
	}
	records.Kept["sizes"] = "{"
	if _, err := read(); err == nil || !strings.HasPrefix(err.Error(), "rack demo: record sizes: decode: ") {
		t.Error(err)
	}
}
