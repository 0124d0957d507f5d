// Package chaos tries a slice of what `make chaos` does, on a sandbox of its own: an API server that is started again would
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

// One fault of each kind while a change is made, and events that are repeated and lost: each time the change is in force in the
// end, and nothing else has changed.
func TestChaos(t *testing.T) {
	sandbox.Play(t, story.Enabled)
	var told strings.Builder
	if err := chaos.Slice(t.Context(), sandbox.Environment(t), &told); err != nil {
		t.Error(err)
	}
	t.Log(told.String())
}
