package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/sawhorse-io/sawhorse/sandbox/chaos/passes"
	"github.com/sawhorse-io/sawhorse/sandbox/story"
)

// The API server rejects a function without an access entry. A full pass repairs that.
func TestLockedOut(t *testing.T) { pool.Take(t).Run(story.Enabled, story.LockedOut) }

// Events that arrive while a pass fails are served by the next iteration at once, and a failure does not loop. The
// schedule makes up for a lost event.
func TestFailing(t *testing.T) {
	sandbox := pool.Take(t)
	sandbox.Run(story.Enabled)
	since := time.Now()
	sandbox.Run(story.Failing)
	again := 0
	history, err := passes.Since(t.Context(), sandbox.Environment.AWS(), since, 0)
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
	sandbox.Run(story.LostEvents)
}

// Events that name no rack, or that try to reach another rack, leave nothing behind.
func TestHostile(t *testing.T) { pool.Take(t).Run(story.Enabled, story.Hostile) }
