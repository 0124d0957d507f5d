// Package executions runs the end-to-end scripts of `make test` about executions that lose their lease or are stopped. Run
// one script by name, as in `make e2e NAME=ExecutionStopped`.
package executions

import (
	"testing"

	"github.com/sawhorse-io/sawhorse/sandbox/e2e/stage"
	"github.com/sawhorse-io/sawhorse/sandbox/story"
)

var sandbox = stage.New("../../..", "e2e-executions")

func TestMain(m *testing.M) { sandbox.Main(m) }

// Two executions hold one lease: the older one stops at its next step and changes nothing more.
func TestLeaseTakenOver(t *testing.T) { sandbox.Run(t, story.Enabled, story.LeaseTakenOver) }

// A stopped execution is reported, and another one continues its work. A dry run that fails is answered.
func TestExecutionStopped(t *testing.T) { sandbox.Run(t, story.Enabled, story.ExecutionStopped) }
