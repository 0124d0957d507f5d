// Package failures runs the end-to-end scripts of `make test` about passes that fail and events that do harm. Run one
// script by name, as in `make e2e NAME=Failing`.
package failures

import (
	"strings"
	"testing"
	"time"

	"github.com/sawhorse-io/sawhorse/sandbox/chaos/passes"
	"github.com/sawhorse-io/sawhorse/sandbox/e2e/stage"
	"github.com/sawhorse-io/sawhorse/sandbox/story"
)

var sandbox = stage.New("../../..", "e2e-failures")

func TestMain(m *testing.M) { sandbox.Main(m) }

// The API server rejects a function without an access entry. A full pass repairs that.
func TestLockedOut(t *testing.T) { sandbox.Run(t, story.Enabled, story.LockedOut) }

// Events that arrive while a pass fails are served by the next iteration at once, and a failure does not loop. The
// schedule makes up for a lost event.
func TestFailing(t *testing.T) {
	sandbox.Run(t, story.Enabled)
	since := time.Now()
	sandbox.Run(t, story.Failing)
	again := 0
	history, err := passes.Since(t.Context(), sandbox.AWS(t), since)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range history.Paths {
		again += strings.Count(strings.Join(path, " "), "ReportFailure Reported Release Again Enough Debounce Renew Validate")
	}
	t.Logf("%d failed iterations were followed by another at once", again)
	if again == 0 {
		t.Error("no iteration follows one that failed while a write arrived")
	}
	sandbox.Run(t, story.LostEvents)
}

// Events that name no rack, or that try to reach another rack, leave nothing behind.
func TestHostile(t *testing.T) { sandbox.Run(t, story.Enabled, story.Hostile) }
