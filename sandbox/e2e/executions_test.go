package e2e

import (
	"testing"

	"github.com/sawhorse-io/sawhorse/sandbox/story"
)

// Two executions hold one lease: the older one stops at its next step and changes nothing more.
func TestLeaseTakenOver(t *testing.T) { pool.Take(t).Run(story.Enabled, story.LeaseTakenOver) }

// A stopped execution is reported, and another one continues its work. A dry run that fails is answered.
func TestExecutionStopped(t *testing.T) { pool.Take(t).Run(story.Enabled, story.ExecutionStopped) }
