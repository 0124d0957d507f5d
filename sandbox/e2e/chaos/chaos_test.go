// Package chaos runs a small part of `make chaos`. It has a sandbox of its own, because restarting the API server would
// disturb other scripts.
package chaos

import (
	"strings"
	"testing"

	"github.com/sawhorse-io/sawhorse/sandbox/chaos"
	"github.com/sawhorse-io/sawhorse/sandbox/e2e/stage"
	"github.com/sawhorse-io/sawhorse/sandbox/story"
)

var sandbox = stage.New("../../..", "e2e-chaos")

func TestMain(m *testing.M) { sandbox.Main(m) }

// Injects one fault of each kind during a change, and also repeats and drops events. Each time, the change must be in
// force at the end and nothing else may have changed.
func TestChaos(t *testing.T) {
	sandbox.Run(t, story.Enabled)
	var told strings.Builder
	if err := chaos.Slice(t.Context(), sandbox.Environment(t), &told); err != nil {
		t.Error(err)
	}
	t.Log(told.String())
}
