package refusals

import (
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/internal/outcome"
)

func TestUnmanagedNodePools(t *testing.T) {
	var progress outcome.Progress
	if err := UnmanagedNodePools(nil, false, &progress); err != nil || len(progress.Warnings) > 0 {
		t.Errorf("%v, %v", err, progress.Warnings)
	}
	if err := UnmanagedNodePools([]string{"a", "b"}, false, &progress); err == nil ||
		!strings.Contains(err.Error(), "did not make: a, b; ") || len(progress.Warnings) > 0 {
		t.Errorf("%v, %v", err, progress.Warnings)
	}
	if err := UnmanagedNodePools([]string{"a", "b"}, true, &progress); err != nil || len(progress.Warnings) != 1 {
		t.Errorf("%v, %v", err, progress.Warnings)
	}
}
