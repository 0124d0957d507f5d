package e2e

import (
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/sandbox/chaos"
	"github.com/sawhorse-io/sawhorse/sandbox/story"
)

// Injects one fault of each kind during a change, and also repeats and drops events. Each time, the change must be in
// force at the end and nothing else may have changed.
func TestChaos(t *testing.T) {
	sandbox := pool.Take(t)
	sandbox.Run(story.Enabled)
	var told strings.Builder
	if err := chaos.Slice(t.Context(), sandbox.Environment, &told); err != nil {
		t.Error(err)
	}
	t.Log(told.String())
}
